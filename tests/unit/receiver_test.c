/* A socket in the loop: bounded work per turn, whole messages, and the errors of binding and connecting. */
#include "common/receiver.h"

#include "common/turn.h"
#include "tests/unit/loop_fixture.h"

typedef struct {
    test_loop_t loop;
    config_endpoint_t endpoint;
    receiver_t *receiver;
    zsock_t *peer;
    turn_t *turn;
    size_t received;
    size_t wanted;      /* messages, then the loop ends */
    size_t most_a_turn; /* messages between two turns */
    size_t at_turn;     /* received, when the last turn began */
    size_t counts[8];   /* frames of the first messages */
    char texts[8][32];  /* and their last frames */
} fixture_t;

static void on_turn(void *context)
{
    fixture_t *f = context;
    if (f->received - f->at_turn > f->most_a_turn)
        f->most_a_turn = f->received - f->at_turn;
    f->at_turn = f->received;
}

static void on_message(void *context, const message_t *message)
{
    fixture_t *f = context;
    turn_schedule(f->turn);
    if (f->received < 8) {
        f->counts[f->received] = message->count;
        if (message->count > 0) {
            wire_bytes_t last = message->frames[message->count - 1];
            snprintf(f->texts[f->received], sizeof f->texts[0], "%.*s", (int)last.size,
                     (const char *)last.data);
        }
    }
    if (++f->received == f->wanted)
        test_loop_end(&f->loop);
}

static const socket_options_t pull = {.type = ZMQ_PULL};
static const socket_options_t push = {.type = ZMQ_PUSH};

static int setup(void **state)
{
    fixture_t *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    test_loop_init(&f->loop);
    f->turn = turn_new(f->loop.loop, on_turn, f);
    snprintf(f->endpoint.bind, sizeof f->endpoint.bind, "inproc://receiver-%u", fresh_number());
    *state = f;
    wg_error_t error;
    return receiver_bind(&f->receiver, f->loop.loop, &pull, &f->endpoint, on_message, f, &error) == WG_OK &&
                   socket_connect(&f->peer, &push, f->endpoint.bind, &error) == WG_OK
               ? 0
               : -1;
}

static int teardown(void **state)
{
    fixture_t *f = *state;
    zsock_destroy(&f->peer);
    receiver_destroy(&f->receiver);
    assert_null(f->receiver);
    receiver_destroy(&f->receiver);
    turn_destroy(&f->turn);
    test_loop_free(&f->loop);
    free(f);
    return 0;
}

static void send_text(fixture_t *f, const char *text)
{
    const wire_bytes_t frame = {(const uint8_t *)text, strlen(text)};
    assert_int_equal(message_send(f->peer, &frame, 1), 0);
}

static void send_frames(fixture_t *f, size_t count)
{
    wire_bytes_t *frames = calloc(count, sizeof *frames);
    assert_non_null(frames);
    for (size_t i = 0; i < count; i++)
        frames[i] = (wire_bytes_t){(const uint8_t *)"frame", 5};
    assert_int_equal(message_send(f->peer, frames, count), 0);
    free(frames);
}

static void test_a_message_comes_with_all_its_frames(void **state)
{
    fixture_t *f = *state;
    static const wire_bytes_t frames[] = {
        {(const uint8_t *)"one", 3}, {(const uint8_t *)"", 0}, {(const uint8_t *)"three", 5}};
    send_text(f, "alone");
    assert_int_equal(message_send(f->peer, frames, 3), 0);
    send_frames(f, 1000);
    f->wanted = 3;
    test_loop_run(&f->loop);
    assert_int_equal(f->counts[0], 1);
    assert_string_equal(f->texts[0], "alone");
    assert_int_equal(f->counts[1], 3);
    assert_string_equal(f->texts[1], "three");
    assert_int_equal(f->counts[2], 1000);
    assert_string_equal(f->texts[2], "frame");
}

static void test_a_turn_handles_a_bounded_number_of_messages(void **state)
{
    enum { MESSAGES = 1000, A_TURN = 64 };
    fixture_t *f = *state;
    for (int i = 0; i < MESSAGES; i++)
        send_text(f, "x");
    f->wanted = MESSAGES;
    test_loop_run(&f->loop);
    assert_int_equal(f->received, MESSAGES);
    assert_int_equal(f->most_a_turn, A_TURN);
}

static void test_draining_takes_what_is_there_and_no_more_than_asked(void **state)
{
    fixture_t *f = *state;
    assert_int_equal(receiver_drain(f->receiver, 10), 0);
    for (int i = 0; i < 150; i++)
        send_text(f, "x");
    assert_int_equal(receiver_drain(f->receiver, 0), 0);
    assert_int_equal(receiver_drain(f->receiver, 100), 100);
    assert_int_equal(receiver_drain(f->receiver, 100), 50);
    assert_int_equal(receiver_drain(f->receiver, 100), 0);
    assert_int_equal(f->received, 150);
}

static void test_a_message_of_too_many_frames_comes_without_any(void **state)
{
    fixture_t *f = *state;
    send_text(f, "before");
    send_frames(f, MESSAGE_FRAMES_MAX + 1);
    send_text(f, "after");
    send_frames(f, MESSAGE_FRAMES_MAX);
    assert_int_equal(receiver_drain(f->receiver, 10), 4);
    assert_int_equal(f->counts[0], 1);
    assert_int_equal(f->counts[1], 0);
    assert_int_equal(f->counts[2], 1);
    assert_string_equal(f->texts[2], "after");
    assert_int_equal(f->counts[3], MESSAGE_FRAMES_MAX);
}

static void test_sending_does_not_block(void **state)
{
    (void)state;
    const socket_options_t nobody = {.type = ZMQ_PUSH, .send_hwm = 1};
    const wire_bytes_t frames[] = {{(const uint8_t *)"a", 1}, {(const uint8_t *)"b", 1}};
    zsock_t *lonely = NULL;
    assert_int_equal(socket_connect(&lonely, &nobody, "tcp://127.0.0.1:1", NULL), WG_OK);
    assert_int_equal(message_send(lonely, frames, 2), 0); /* waits for a connection */
    assert_int_equal(message_send(lonely, frames, 2), -1);
    assert_int_equal(errno, EAGAIN);
    zsock_destroy(&lonely);
}

static void test_a_router_says_where_nobody_is(void **state)
{
    (void)state;
    const socket_options_t options = {.type = ZMQ_ROUTER, .mandatory = true};
    const config_endpoint_t endpoint = {.bind = "inproc://receiver-test-router"};
    const wire_bytes_t frames[] = {{(const uint8_t *)"\x00\x00", 2}, {(const uint8_t *)"x", 1}};
    zsock_t *router = NULL;
    assert_int_equal(socket_bind(&router, &options, &endpoint, NULL), WG_OK);
    assert_int_equal(message_send(router, frames, 2), -1);
    assert_int_equal(errno, EHOSTUNREACH);
    zsock_destroy(&router);
}

/* --- what cannot be opened --- */

static void test_an_address_that_cannot_be_opened_is_named(void **state)
{
    fixture_t *f = *state;
    static const char *const addresses[] = {"nonsense", "ipc:///nowhere/at/all", "tcp://256.0.0.1:1", ""};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        config_endpoint_t endpoint = {0};
        wg_error_t error = {0};
        receiver_t *receiver = f->receiver; /* must not be left as it was */
        char begin[160];
        snprintf(endpoint.bind, sizeof endpoint.bind, "%s", addresses[i]);
        snprintf(begin, sizeof begin, "%s: ", addresses[i]);
        if (receiver_bind(&receiver, f->loop.loop, &pull, &endpoint, on_message, f, &error) != WG_E_SYSTEM)
            fail_msg("bound: `%s`", addresses[i]);
        assert_null(receiver);
        assert_memory_equal(error.message, begin, strlen(begin));
        assert_true(strlen(error.message) > strlen(begin));
    }
    receiver_t *receiver = f->receiver;
    wg_error_t error = {0};
    assert_int_equal(receiver_connect(&receiver, f->loop.loop, &push, "nonsense", on_message, f, &error),
                     WG_E_SYSTEM);
    assert_null(receiver);
    assert_string_equal(error.message, "nonsense: Invalid argument");
}

static void test_an_address_that_is_taken_is_refused(void **state)
{
    fixture_t *f = *state;
    receiver_t *second;
    wg_error_t error = {0};
    assert_int_equal(receiver_bind(&second, f->loop.loop, &pull, &f->endpoint, on_message, f, &error),
                     WG_E_SYSTEM);
    assert_non_null(strstr(error.message, "Address already in use"));
    send_text(f, "still here");
    assert_int_equal(receiver_drain(f->receiver, 1), 1);
}

/* libzmq alone would take the path from the socket that is bound there. */
static void test_an_ipc_path_in_use_is_not_stolen(void **state)
{
    fixture_t *f = *state;
    char folder[] = "/tmp/wavegate-receiver-XXXXXX";
    char file[64];
    config_endpoint_t endpoint = {0};
    receiver_t *first = NULL;
    receiver_t *second = NULL;
    wg_error_t error = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(endpoint.bind, sizeof endpoint.bind, "ipc://%s/s", folder);
    assert_int_equal(receiver_bind(&first, f->loop.loop, &pull, &endpoint, on_message, f, NULL), WG_OK);
    assert_int_equal(receiver_bind(&second, f->loop.loop, &pull, &endpoint, on_message, f, &error),
                     WG_E_SYSTEM);
    assert_null(second);
    assert_non_null(strstr(error.message, "Address already in use"));
    zsock_destroy(&f->peer);
    assert_int_equal(socket_connect(&f->peer, &push, endpoint.bind, NULL), WG_OK);
    send_text(f, "to the first");
    f->wanted = 1;
    test_loop_run(&f->loop);
    assert_string_equal(f->texts[0], "to the first");
    receiver_destroy(&first);
    snprintf(file, sizeof file, "%s/s.lock", folder);
    assert_int_equal(unlink(file), 0);
    snprintf(file, sizeof file, "%s/s", folder);
    unlink(file); /* libzmq may have done it */
    assert_int_equal(rmdir(folder), 0);
}

static void test_a_receiver_can_connect(void **state)
{
    fixture_t *f = *state;
    const config_endpoint_t endpoint = {.bind = "inproc://receiver-test-connect"};
    receiver_t *receiver = NULL;
    zsock_destroy(&f->peer);
    assert_int_equal(socket_bind(&f->peer, &push, &endpoint, NULL), WG_OK);
    assert_int_equal(receiver_connect(&receiver, f->loop.loop, &pull, endpoint.bind, on_message, f, NULL),
                     WG_OK);
    send_text(f, "hello");
    f->wanted = 1;
    test_loop_run(&f->loop);
    assert_string_equal(f->texts[0], "hello");
    receiver_destroy(&receiver);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_message_comes_with_all_its_frames),
        TEST(test_a_turn_handles_a_bounded_number_of_messages),
        TEST(test_draining_takes_what_is_there_and_no_more_than_asked),
        TEST(test_a_message_of_too_many_frames_comes_without_any),
        cmocka_unit_test(test_sending_does_not_block),
        cmocka_unit_test(test_a_router_says_where_nobody_is),
        TEST(test_an_address_that_cannot_be_opened_is_named),
        TEST(test_an_address_that_is_taken_is_refused),
        TEST(test_an_ipc_path_in_use_is_not_stolen),
        TEST(test_a_receiver_can_connect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
