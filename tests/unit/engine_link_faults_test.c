/* What peers do wrong to a link, and engines that say that they are dying. */
#include "tests/unit/engine_link_fixture.h"

/* --- registrations that are none --- */

static int on_check(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    fixture_t *f = context;
    if (faults_count(f->faults, FAULTS_INPUT, WG_E_UNEXPECTED_HANDSHAKE_IDENTITY) > f->probes)
        test_loop_end(&f->loop);
    return 0;
}

/* Faults have no callback. f->probes is free here, and holds the count that is too few. */
static void wait_for_fault(fixture_t *f, size_t count)
{
    f->probes = count - 1;
    int timer = zloop_timer(f->loop.loop, 1, 0, on_check, f);
    test_loop_run(&f->loop);
    zloop_timer_end(f->loop.loop, timer);
    assert_int_equal(faults_count(f->faults, FAULTS_INPUT, WG_E_UNEXPECTED_HANDSHAKE_IDENTITY), count);
}

static void test_foreign_ids_are_counted(void **state)
{
    fixture_t *f = *state;
    static const struct {
        const char *id;
        size_t size;
    } rows[] = {
        {"fe0", 3},      {"a", 1},        {"\x05\x00\x00", 3},
        {"\x02\x00", 2}, {"\xff\xff", 2}, {NULL, 0}, /* libzmq makes one of five bytes */
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        zsock_t *peer = dial(&f->input, ZMQ_DEALER, rows[i].id, rows[i].size);
        send_text(peer, "a");
        wait_for_fault(f, ++count);
        zsock_destroy(&peer);
    }
    assert_seen(f, "");
}

static void test_a_registration_has_one_frame(void **state)
{
    fixture_t *f = *state;
    static const wire_bytes_t two[] = {{(const uint8_t *)"a", 1}, {(const uint8_t *)"b", 1}};
    engine_t engine = engine_of(f, 0);
    assert_int_equal(message_send(engine.input, two, 2), 0);
    send_text(engine.input, "right");
    wait_for(f, "up 0");
    assert_seen(f, "registered 0 right; up 0; ");
    assert_int_equal(faults_count(f->faults, FAULTS_INPUT, WG_E_UNEXPECTED_HANDSHAKE_IDENTITY), 1);
    engine_close(&engine);
}

static void test_an_output_of_too_many_frames_is_counted(void **state)
{
    fixture_t *f = *state;
    size_t count = MESSAGE_FRAMES_MAX + 1;
    wire_bytes_t *frames = calloc(count, sizeof *frames);
    assert_non_null(frames);
    engine_t engine = engine_of(f, 0);
    assert_int_equal(message_send(engine.output, frames, count), 0);
    send_text(engine.output, "next");
    wait_for(f, "output next");
    assert_seen(f, "output next; ");
    assert_int_equal(faults_count(f->faults, FAULTS_OUTPUT, WG_E_DECODE), 1);
    free(frames);
    engine_close(&engine);
}

/* --- sending --- */

static void assert_send_fails(fixture_t *f, uint32_t rank, const char *message)
{
    wg_error_t error = {0};
    assert_int_equal(engine_link_send(f->link, rank, WIRE_REQUEST_ADD, "request", 7, &error),
                     WG_E_DISPATCHER_CLOSED);
    assert_string_equal(error.message, message);
    assert_int_equal(engine_link_send(f->link, rank, WIRE_REQUEST_ADD, "request", 7, NULL),
                     WG_E_DISPATCHER_CLOSED);
}

static void test_nothing_is_sent_to_a_rank_that_is_not_there(void **state)
{
    fixture_t *f = *state;
    assert_send_fails(f, 0, "engine-core output dispatcher of rank 0 closed: it is not connected");
    assert_send_fails(f, 7, "engine-core output dispatcher of rank 7 closed: it is not connected");
    assert_send_fails(f, WG_RANK_MAX + 1,
                      "engine-core output dispatcher of rank 65536 closed: it is not connected");
}

static void test_a_full_queue_is_no_loss(void **state)
{
    fixture_t *f = *state;
    wg_engine_id_t id;
    wg_status_t status = WG_OK;
    wg_error_t error = {0};
    int sent = 0;
    assert_int_equal(wg_engine_id_from_rank(&id, 0), WG_OK);
    zsock_t *slow = zsock_new(ZMQ_DEALER);
    zsock_set_rcvhwm(slow, 1);
    assert_int_equal(zmq_setsockopt(zsock_resolve(slow), ZMQ_ROUTING_ID, id.bytes, sizeof id.bytes), 0);
    assert_int_equal(zmq_connect(zsock_resolve(slow), f->input.bind), 0);
    send_text(slow, "a");
    wait_for(f, "up 0");
    while (sent < PLENTY && status == WG_OK) {
        status = engine_link_send(f->link, 0, WIRE_REQUEST_ADD, "request", 7, &error);
        sent += status == WG_OK;
    }
    assert_in_range((uintmax_t)sent, 1, 10); /* what both ends together may hold */
    assert_int_equal(status, WG_E_DISPATCHER_CLOSED);
    assert_string_equal(error.message,
                        "engine-core output dispatcher of rank 0 closed: its input queue is full");
    engine_link_sweep(f->link);
    assert_true(engine_link_route_up(f->link, 0));
    assert_seen(f, "registered 0 a; up 0; ");
    zsock_destroy(&slow);
}

static void test_sending_to_a_rank_that_has_gone_finds_the_loss(void **state)
{
    fixture_t *f = *state;
    engine_t engine = engine_of(f, 0);
    send_text(engine.input, "a");
    wait_for(f, "up 0");
    engine_close(&engine);
    int64_t deadline_ms = zclock_mono() + LOOP_SAFETY_MS;
    while (engine_link_send(f->link, 0, WIRE_REQUEST_ADD, "request", 7, NULL) == WG_OK &&
           zclock_mono() < deadline_ms)
        ;                                     /* libzmq closes in a thread of its own */
    assert_seen(f, "registered 0 a; up 0; "); /* not from inside the call */
    wait_for(f, "down 0");
    assert_seen(f, "registered 0 a; up 0; down 0; ");
}

/* --- the death sentinel --- */

typedef struct {
    engine_t engine;
    int rounds;
} dying_t;

static int on_probe(zloop_t *loop, zsock_t *socket, void *context)
{
    dying_t *self = context;
    size_t before = self->engine.fixture->probes;
    on_request(loop, socket, &self->engine);
    if (self->engine.fixture->probes == before)
        return 0;
    if (--self->rounds > 0)
        send_text(self->engine.output, "ENGINE_CORE_DEAD");
    else
        test_loop_end(&self->engine.fixture->loop);
    return 0;
}

/* Each sentinel is answered by a probe at once. The timer that sweeps once a second would need longer for these
 * rounds than the loop has. */
static void test_a_sentinel_checks_every_route_and_loses_nobody(void **state)
{
    fixture_t *f = *state;
    dying_t dying = {.engine = engine_of(f, 0), .rounds = 3 * LOOP_SAFETY_MS / 1000};
    engine_t other = engine_of(f, 1);
    send_text(dying.engine.input, "a");
    wait_for(f, "up 0");
    send_text(other.input, "b");
    wait_for(f, "up 1");
    assert_false(engine_link_death_reported(f->link));
    zloop_reader(f->loop.loop, dying.engine.input, on_probe, &dying);
    send_text(dying.engine.output, "ENGINE_CORE_DEAD");
    test_loop_run(&f->loop);
    assert_true(engine_link_death_reported(f->link));
    assert_seen(f, "registered 0 a; up 0; registered 1 b; up 1; ");
    assert_true(engine_link_route_up(f->link, 0) && engine_link_route_up(f->link, 1));
    engine_close(&dying.engine);
    engine_close(&other);
}

static void test_only_the_sentinel_itself_is_one(void **state)
{
    fixture_t *f = *state;
    static const wire_bytes_t two[] = {{(const uint8_t *)"ENGINE_CORE_DEAD", 16}, {(const uint8_t *)"x", 1}};
    engine_t engine = engine_of(f, 0);
    send_text(engine.output, "ENGINE_CORE_DEA");
    send_text(engine.output, "ENGINE_CORE_DEAD!");
    send_text(engine.output, "engine_core_dead");
    assert_int_equal(message_send(engine.output, two, 2), 0);
    wait_for(f, " + x; ");
    assert_seen(f, "output ENGINE_CORE_DEA; output ENGINE_CORE_DEAD!; output engine_core_dead; "
                   "output ENGINE_CORE_DEAD + x; ");
    assert_false(engine_link_death_reported(f->link));
    engine_close(&engine);
}

/* --- addresses --- */

static void test_an_address_that_cannot_be_bound_is_named(void **state)
{
    fixture_t *f = *state;
    config_endpoint_t *const endpoints[] = {&f->input, &f->output};
    for (int i = 0; i < 2; i++) {
        wg_error_t error = {0};
        engine_link_t *first = f->link;
        config_endpoint_t whole = *endpoints[i];
        config_endpoint_t other = *endpoints[1 - i];
        strcpy(endpoints[i]->bind, "nonsense");
        snprintf(endpoints[1 - i]->bind, sizeof other.bind, "inproc://other-%d", i);
        assert_int_equal(open_link(f, PLENTY, &error), WG_E_SYSTEM);
        assert_null(f->link);
        assert_string_equal(error.message, "nonsense: Invalid argument");
        *endpoints[i] = whole;
        *endpoints[1 - i] = other;
        f->link = first;
    }
}

static int setup_short_queue(void **state)
{
    return setup_at(state, "inproc://", 1);
}

int main(void)
{
#define INPROC(name) cmocka_unit_test_setup_teardown(name, setup_inproc, teardown)
#define IPC(name) cmocka_unit_test_setup_teardown(name, setup_ipc, teardown)
    const struct CMUnitTest tests[] = {
        INPROC(test_foreign_ids_are_counted),
        IPC(test_foreign_ids_are_counted),
        INPROC(test_a_registration_has_one_frame),
        INPROC(test_an_output_of_too_many_frames_is_counted),
        INPROC(test_nothing_is_sent_to_a_rank_that_is_not_there),
        cmocka_unit_test_setup_teardown(test_a_full_queue_is_no_loss, setup_short_queue, teardown),
        INPROC(test_sending_to_a_rank_that_has_gone_finds_the_loss),
        INPROC(test_a_sentinel_checks_every_route_and_loses_nobody),
        INPROC(test_only_the_sentinel_itself_is_one),
        INPROC(test_an_address_that_cannot_be_bound_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
