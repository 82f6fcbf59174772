/* Engines come, serve and go, over real sockets in one loop. What peers do wrong is
 * engine_link_faults_test.c's. */
#include "tests/unit/engine_link_fixture.h"

static void test_a_registration_brings_the_route_up(void **state)
{
    fixture_t *f = *state;
    assert_false(engine_link_route_up(f->link, 0));
    engine_t engine = engine_of(f, 0);
    send_text(engine.input, "a");
    wait_for(f, "up 0");
    assert_seen(f, "registered 0 a; up 0; ");
    assert_true(engine_link_route_up(f->link, 0));
    assert_false(engine_link_route_up(f->link, 1));
    assert_false(engine_link_route_up(f->link, 7)); /* not one of ours */
    engine_close(&engine);
}

static void test_the_route_is_up_while_a_registration_is_told(void **state)
{
    fixture_t *f = *state;
    engine_t engine = engine_of(f, 0);
    send_text(engine.input, "a");
    wait_for(f, "up 0");
    engine_close(&engine);
    assert_true(f->up_on_register);
}

static void test_an_empty_registration_is_one(void **state)
{
    fixture_t *f = *state;
    engine_t engine = engine_of(f, 258);
    send_text(engine.input, "");
    wait_for(f, "up 258");
    assert_seen(f, "registered 258 ; up 258; ");
    engine_close(&engine);
}

static void test_a_request_reaches_its_engine_and_no_other(void **state)
{
    fixture_t *f = *state;
    engine_t first = engine_of(f, 0);
    engine_t second = engine_of(f, 258);
    engine_listen(&first);
    engine_listen(&second);
    send_text(first.input, "a");
    wait_for(f, "up 0");
    send_text(second.input, "b");
    wait_for(f, "up 258");
    assert_int_equal(engine_link_send(f->link, 258, WIRE_REQUEST_ADD, "request", 7, NULL), WG_OK);
    wait_for(f, "258 got 00 request");
    assert_int_equal(engine_link_send(f->link, 0, WIRE_REQUEST_ABORT, "abort", 5, NULL), WG_OK);
    wait_for(f, "0 got 01 abort");
    assert_seen(f, "registered 0 a; up 0; registered 258 b; up 258; 258 got 00 request; 0 got 01 abort; ");
    engine_close(&first);
    engine_close(&second);
}

static void test_a_callback_may_send(void **state)
{
    fixture_t *f = *state;
    f->on_register = "welcome";
    engine_t engine = engine_of(f, 0);
    engine_listen(&engine);
    send_text(engine.input, "a");
    wait_for(f, "0 got 00 welcome");
    engine_close(&engine);
}

static void test_outputs_come_with_their_frames(void **state)
{
    fixture_t *f = *state;
    static const wire_bytes_t frames[] = {
        {(const uint8_t *)"outputs", 7}, {(const uint8_t *)"tensor 1", 8}, {(const uint8_t *)"", 0}};
    engine_t engine = engine_of(f, 0);
    send_text(engine.output, "alone");
    assert_int_equal(message_send(engine.output, frames, 3), 0);
    send_text(engine.output, "last");
    wait_for(f, "last; ");
    assert_seen(f, "output alone; output outputs + tensor 1 + ; output last; ");
    engine_close(&engine);
}

/* --- routes that are found by a probe --- */

static void test_a_watched_rank_is_found_without_a_registration(void **state)
{
    fixture_t *f = *state;
    engine_link_watch(f->link, 0);
    engine_t engine = engine_of(f, 0);
    wait_for(f, "up 0");
    assert_seen(f, "up 0; ");
    engine_link_watch(f->link, 0); /* again, which changes nothing */
    engine_link_watch(f->link, 7); /* not one of ours */
    engine_close(&engine);
}

static void test_a_rank_that_nobody_watches_is_not_probed(void **state)
{
    fixture_t *f = *state;
    engine_t unwatched = engine_of(f, 0);
    engine_t watched = engine_of(f, 1);
    engine_link_watch(f->link, 1);
    wait_for(f, "up 1");
    engine_link_sweep(f->link);
    assert_seen(f, "up 1; ");
    assert_false(engine_link_route_up(f->link, 0));
    engine_close(&unwatched);
    engine_close(&watched);
}

/* The probe may find the connection just before its registration is read. */
static void test_a_registration_right_after_the_probe_is_of_the_same_engine(void **state)
{
    fixture_t *f = *state;
    engine_link_watch(f->link, 0);
    engine_t engine = engine_of(f, 0);
    wait_for(f, "up 0");
    send_text(engine.input, "a");
    wait_for(f, "registered 0");
    assert_seen(f, "up 0; registered 0 a; ");
    assert_true(engine_link_route_up(f->link, 0));
    engine_close(&engine);
}

/* --- loss --- */

static void test_a_closed_connection_is_a_loss(void **state)
{
    fixture_t *f = *state;
    engine_t stays = engine_of(f, 1);
    engine_t goes = engine_of(f, 0);
    send_text(stays.input, "s");
    wait_for(f, "up 1");
    send_text(goes.input, "g");
    wait_for(f, "up 0");
    engine_close(&goes);
    wait_for(f, "down 0");
    assert_seen(f, "registered 1 s; up 1; registered 0 g; up 0; down 0; ");
    assert_false(engine_link_route_up(f->link, 0));
    assert_true(engine_link_route_up(f->link, 1));
    engine_close(&stays);
}

/* The rank is watched by then, so that a probe may find the route before the registration is read. */
static void test_the_next_engine_brings_the_route_up_again(void **state)
{
    fixture_t *f = *state;
    for (int life = 0; life < 3; life++) {
        engine_t engine = engine_of(f, 0);
        text_buffer_clear(&f->seen);
        send_text(engine.input, "a");
        wait_for(f, "up 0; ");
        wait_for(f, "registered 0 a; ");
        engine_close(&engine);
        wait_for(f, "down 0; ");
        assert_true(has_seen(f, "registered 0 a; up 0; down 0; ") ||
                    has_seen(f, "up 0; registered 0 a; down 0; "));
        assert_int_equal(f->seen.size, strlen("registered 0 a; up 0; down 0; "));
    }
}

/* As where an engine's connection breaks for a moment: it does not register again. */
static void test_a_lost_route_is_found_again_by_the_probe(void **state)
{
    fixture_t *f = *state;
    engine_t engine = engine_of(f, 0);
    send_text(engine.input, "a");
    wait_for(f, "up 0");
    engine_close(&engine);
    wait_for(f, "down 0");
    engine = engine_of(f, 0);
    text_buffer_clear(&f->seen);
    wait_for(f, "up 0");
    assert_seen(f, "up 0; ");
    engine_close(&engine);
}

/* The loop does not turn here, so that the outputs wait on the PULL while the sweep finds the loss. */
static void test_the_last_outputs_come_before_the_loss(void **state)
{
    enum { OUTPUTS = 1000 };
    fixture_t *f = *state;
    engine_t engine = engine_of(f, 0);
    send_text(engine.input, "a");
    wait_for(f, "up 0");
    text_buffer_clear(&f->seen);
    for (int i = 0; i < OUTPUTS; i++)
        send_text(engine.output, "x");
    zsock_destroy(&engine.input);
    int64_t deadline_ms = zclock_mono() + LOOP_SAFETY_MS;
    while (engine_link_route_up(f->link, 0) && zclock_mono() < deadline_ms)
        engine_link_sweep(f->link); /* libzmq closes in a thread of its own */
    text_buffer_t expected = {0};
    for (int i = 0; i < OUTPUTS; i++)
        text_buffer_text(&expected, "output x; ");
    text_buffer_bytes(&expected, "down 0; ", sizeof "down 0; ");
    assert_seen(f, expected.data);
    text_buffer_free(&expected);
    zsock_destroy(&engine.output);
}

/* --- output connections --- */

/* Longer than the link takes to tell a cut from a loss. */
static int on_settled(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    see(context, "settled; ");
    return 0;
}

/* Once more all that the link does after a connection has come or gone. */
static void settle(fixture_t *f)
{
    engine_t other = engine_of(f, 1);
    send_text(other.input, "z");
    wait_for(f, "up 1; ");
    engine_close(&other);
    wait_for(f, "down 1; ");
    zloop_timer(f->loop.loop, 50, 1, on_settled, f);
    wait_for(f, "settled; ");
}

static engine_t engine_with_outputs(fixture_t *f)
{
    engine_t engine = engine_of(f, 0);
    send_text(engine.input, "a");
    wait_for(f, "up 0; ");
    send_text(engine.output, "rank 0");
    wait_for(f, "output rank 0; ");
    text_buffer_clear(&f->seen);
    return engine;
}

static void test_an_output_connection_that_breaks_alone_is_a_cut(void **state)
{
    fixture_t *f = *state;
    engine_t engine = engine_with_outputs(f);
    send_text(engine.output, "last");
    wait_for(f, "output last; ");
    zsock_destroy(&engine.output);
    wait_for(f, "cut 0; ");
    settle(f);
    assert_seen(f, "output last; cut 0; registered 1 z; up 1; down 1; settled; ");
    assert_true(engine_link_route_up(f->link, 0));
    engine_close(&engine);
}

static void test_both_connections_that_break_are_a_loss_and_no_cut(void **state)
{
    fixture_t *f = *state;
    engine_t engine = engine_with_outputs(f);
    engine_close(&engine);
    wait_for(f, "down 0; ");
    settle(f);
    assert_seen(f, "down 0; registered 1 z; up 1; down 1; settled; ");
}

/* The end of a connection may be noticed long after its successor is in use. */
static void test_a_second_output_connection_is_a_cut_of_the_first(void **state)
{
    fixture_t *f = *state;
    engine_t engine = engine_with_outputs(f);
    zsock_t *first = engine.output;
    engine.output = dial(&f->output, ZMQ_PUSH, NULL, 0);
    send_text(engine.output, "rank 0 again");
    wait_for(f, "output rank 0 again; ");
    assert_seen(f, "cut 0; output rank 0 again; ");
    zsock_destroy(&first);
    settle(f);
    assert_seen(f, "cut 0; output rank 0 again; registered 1 z; up 1; down 1; settled; ");
    engine_close(&engine);
}

static void test_an_output_that_cannot_be_read_is_a_cut(void **state)
{
    fixture_t *f = *state;
    engine_t engine = engine_with_outputs(f);
    zsock_t *stranger = dial(&f->output, ZMQ_PUSH, NULL, 0);
    send_text(stranger, "! of a stranger");
    wait_for(f, "stranger; ");
    send_text(engine.output, "! of the engine");
    wait_for(f, "cut 0; ");
    assert_seen(f, "output ! of a stranger; output ! of the engine; cut 0; ");
    zsock_destroy(&stranger);
    engine_close(&engine);
}

/* PULL names no sender, so its end says nothing of a rank whose connection is another. */
static void test_a_strangers_connection_is_no_cut_of_a_rank_whose_own_is_known(void **state)
{
    fixture_t *f = *state;
    engine_t engine = engine_with_outputs(f);
    zsock_t *stranger = dial(&f->output, ZMQ_PUSH, NULL, 0);
    send_text(stranger, "hello");
    wait_for(f, "output hello; ");
    zsock_destroy(&stranger);
    settle(f);
    assert_false(has_seen(f, "cut 0; "));
    engine_close(&engine);
}

/* --- a second engine with the same id --- */

static void test_a_second_engine_replaces_the_first(void **state)
{
    fixture_t *f = *state;
    engine_t first = engine_of(f, 0);
    engine_listen(&first);
    send_text(first.input, "first");
    wait_for(f, "up 0");
    engine_t second = engine_of(f, 0);
    engine_listen(&second);
    send_text(second.input, "second");
    wait_for(f, "second; up 0");
    assert_seen(f, "registered 0 first; up 0; down 0; registered 0 second; up 0; ");
    zloop_reader_end(f->loop.loop, first.input); /* a request must not reach it */
    assert_int_equal(engine_link_send(f->link, 0, WIRE_REQUEST_ADD, "request", 7, NULL), WG_OK);
    wait_for(f, "0 got 00 request");
    char rest[16];
    while (zmq_recv(zsock_resolve(first.input), rest, sizeof rest, ZMQ_DONTWAIT) >= 0)
        assert_memory_not_equal(rest, "request", 7);
    engine_close(&first);
    engine_close(&second);
}

/* More outputs than one handler reads in a turn, so that the registration comes between them. */
static void test_the_replaced_engines_outputs_come_before_its_loss(void **state)
{
    enum { OUTPUTS = 500 };
    fixture_t *f = *state;
    text_buffer_t expected = {0};
    engine_t first = engine_of(f, 0);
    send_text(first.input, "first");
    wait_for(f, "up 0");
    text_buffer_clear(&f->seen);
    for (int i = 0; i < OUTPUTS; i++) {
        send_text(first.output, "x");
        text_buffer_text(&expected, "output x; ");
    }
    engine_t second = engine_of(f, 0);
    send_text(second.input, "second");
    wait_for(f, "second; up 0; ");
    text_buffer_text(&expected, "down 0; registered 0 second; up 0; ");
    text_buffer_bytes(&expected, "", 1);
    assert_seen(f, expected.data);
    text_buffer_free(&expected);
    engine_close(&first);
    engine_close(&second);
}

/* libzmq drops it, or gives it to an id of five bytes (engine_link_faults_test.c). */
static void test_what_the_replaced_engine_had_queued_is_discarded(void **state)
{
    fixture_t *f = *state;
    engine_t first = engine_of(f, 0);
    send_text(first.input, "first");
    wait_for(f, "up 0");
    text_buffer_clear(&f->seen);
    send_text(first.input, "left over");
    engine_t second = engine_of(f, 0);
    send_text(second.input, "second");
    wait_for(f, "second; up 0");
    send_text(second.output, "end");
    wait_for(f, "output end");
    assert_seen(f, "down 0; registered 0 second; up 0; output end; ");
    engine_close(&first);
    engine_close(&second);
}

int main(void)
{
#define INPROC(name) cmocka_unit_test_setup_teardown(name, setup_inproc, teardown)
#define IPC(name) cmocka_unit_test_setup_teardown(name, setup_ipc, teardown)
    const struct CMUnitTest tests[] = {
        INPROC(test_a_registration_brings_the_route_up),
        IPC(test_a_registration_brings_the_route_up),
        INPROC(test_the_route_is_up_while_a_registration_is_told),
        INPROC(test_an_empty_registration_is_one),
        INPROC(test_a_request_reaches_its_engine_and_no_other),
        IPC(test_a_request_reaches_its_engine_and_no_other),
        INPROC(test_a_callback_may_send),
        INPROC(test_outputs_come_with_their_frames),
        IPC(test_a_watched_rank_is_found_without_a_registration),
        IPC(test_a_rank_that_nobody_watches_is_not_probed),
        IPC(test_a_registration_right_after_the_probe_is_of_the_same_engine),
        IPC(test_a_closed_connection_is_a_loss),
        IPC(test_the_next_engine_brings_the_route_up_again),
        IPC(test_a_lost_route_is_found_again_by_the_probe),
        INPROC(test_the_last_outputs_come_before_the_loss),
        IPC(test_an_output_connection_that_breaks_alone_is_a_cut),
        IPC(test_both_connections_that_break_are_a_loss_and_no_cut),
        IPC(test_a_second_output_connection_is_a_cut_of_the_first),
        IPC(test_an_output_that_cannot_be_read_is_a_cut),
        IPC(test_a_strangers_connection_is_no_cut_of_a_rank_whose_own_is_known),
        INPROC(test_a_second_engine_replaces_the_first),
        INPROC(test_the_replaced_engines_outputs_come_before_its_loss),
        INPROC(test_what_the_replaced_engine_had_queued_is_discarded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
