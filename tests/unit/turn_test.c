/* Work that is done once after the handlers of a loop turn. */
#include "common/turn.h"

#include "tests/unit/loop_fixture.h"

typedef struct {
    test_loop_t loop;
    turn_t *turn;
    turn_t *other;
    zsock_t *senders[2];
    zsock_t *readers[2];
    int handled; /* messages */
    int worked;  /* of turn */
    int others;  /* of other */
    int seen[8]; /* handled, at each time that turn worked */
    int rounds;  /* how often turn is still to schedule itself, or other */
} fixture_t;

static void on_work(void *context)
{
    fixture_t *f = context;
    f->seen[f->worked % 8] = f->handled;
    f->worked++;
    test_loop_end(&f->loop);
}

static int setup(void **state)
{
    fixture_t *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    test_loop_init(&f->loop);
    f->turn = turn_new(f->loop.loop, on_work, f);
    *state = f;
    return f->turn ? 0 : -1;
}

static int teardown(void **state)
{
    fixture_t *f = *state;
    turn_destroy(&f->turn);
    turn_destroy(&f->other);
    assert_null(f->turn);
    turn_destroy(&f->turn);
    for (int i = 0; i < 2; i++) {
        zsock_destroy(&f->senders[i]);
        zsock_destroy(&f->readers[i]);
    }
    test_loop_free(&f->loop);
    free(f);
    return 0;
}

static void test_work_is_done_once_however_often_it_is_scheduled(void **state)
{
    fixture_t *f = *state;
    for (int i = 0; i < 5; i++)
        turn_schedule(f->turn);
    test_loop_run(&f->loop);
    assert_int_equal(f->worked, 1);
    turn_schedule(f->turn);
    test_loop_run(&f->loop);
    assert_int_equal(f->worked, 2);
}

/* --- readers --- */

/* One message a turn, so that a second one is handled in the next turn. */
static int on_readable(zloop_t *loop, zsock_t *socket, void *context)
{
    (void)loop;
    fixture_t *f = context;
    char byte;
    assert_int_equal(zmq_recv(zsock_resolve(socket), &byte, 1, ZMQ_DONTWAIT), 1);
    f->handled++;
    turn_schedule(f->turn);
    return 0;
}

static void open_reader(fixture_t *f, int at, int messages)
{
    f->readers[at] = zsock_new(ZMQ_PAIR);
    f->senders[at] = zsock_new(ZMQ_PAIR);
    unsigned number = fresh_number();
    assert_true(zsock_bind(f->readers[at], "inproc://turn-%u", number) == 0);
    assert_true(zsock_connect(f->senders[at], "inproc://turn-%u", number) == 0);
    for (int i = 0; i < messages; i++)
        assert_int_equal(zmq_send(zsock_resolve(f->senders[at]), "x", 1, ZMQ_DONTWAIT), 1);
    zloop_reader(f->loop.loop, f->readers[at], on_readable, f);
}

static void test_work_comes_after_all_handlers_of_the_turn(void **state)
{
    fixture_t *f = *state;
    open_reader(f, 0, 1);
    open_reader(f, 1, 1);
    test_loop_run(&f->loop);
    assert_int_equal(f->worked, 1);
    assert_int_equal(f->seen[0], 2);
}

static void test_work_comes_before_the_handlers_of_the_next_turn(void **state)
{
    fixture_t *f = *state;
    open_reader(f, 0, 3);
    while (f->handled < 3 || f->worked < 3)
        test_loop_run(&f->loop);
    assert_int_equal(f->worked, 3);
    assert_int_equal(f->seen[0], 1);
    assert_int_equal(f->seen[1], 2);
    assert_int_equal(f->seen[2], 3);
}

/* --- work that schedules --- */

static void on_other_work(void *context)
{
    fixture_t *f = context;
    f->others++;
    if (f->others < f->rounds)
        turn_schedule(f->other);
    else
        test_loop_end(&f->loop);
}

static void test_work_may_schedule_the_next_turn(void **state)
{
    fixture_t *f = *state;
    f->rounds = 100;
    f->other = turn_new(f->loop.loop, on_other_work, f);
    assert_non_null(f->other);
    turn_schedule(f->other);
    test_loop_run(&f->loop);
    assert_int_equal(f->others, 100);
    assert_int_equal(f->worked, 0); /* what nobody asked for is not done */
}

/* From a handler: a timer that is ended outside of the loop fires once more when the loop starts again. */
static int on_readable_destroy(zloop_t *loop, zsock_t *socket, void *context)
{
    fixture_t *f = context;
    on_readable(loop, socket, context);
    turn_destroy(&f->turn);
    turn_schedule(f->other);
    return 0;
}

static void test_destroying_cancels_the_work(void **state)
{
    fixture_t *f = *state;
    f->rounds = 10;
    f->other = turn_new(f->loop.loop, on_other_work, f);
    assert_non_null(f->other);
    open_reader(f, 0, 1);
    zloop_reader_end(f->loop.loop, f->readers[0]);
    zloop_reader(f->loop.loop, f->readers[0], on_readable_destroy, f);
    test_loop_run(&f->loop);
    assert_int_equal(f->handled, 1);
    assert_int_equal(f->others, 10);
    assert_int_equal(f->worked, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_work_is_done_once_however_often_it_is_scheduled),
        TEST(test_work_comes_after_all_handlers_of_the_turn),
        TEST(test_work_comes_before_the_handlers_of_the_next_turn),
        TEST(test_work_may_schedule_the_next_turn),
        TEST(test_destroying_cancels_the_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
