/* Writing to a stream whenever its reader has taken everything. */
#include "tests/unit/http_fixture.h"

typedef enum { WRITE_NOTHING, WRITE_ON, WRITE_AND_END, END, CUT } in_room_t;

#define PIECES 500u
#define PIECE "0123456789"

/* What on_room is to do, and how often it was called. Of the one stream that a test has. */
static struct {
    in_room_t what;
    unsigned calls;
    unsigned written;
} room;

static int setup_room(void **state)
{
    memset(&room, 0, sizeof room);
    return setup(state);
}

static void on_room(void *context, http_exchange_t *exchange)
{
    fixture_t *f = context;
    assert_ptr_equal(exchange, f->exchange);
    assert_int_equal(http_stream_waiting(exchange), 0);
    room.calls++;
    if (room.what == WRITE_ON && room.written < PIECES) {
        assert_int_equal(http_stream_write(exchange, PIECE, 10), 10);
        room.written++;
    } else if (room.what == WRITE_ON || room.what == END) {
        http_stream_end(exchange);
    } else if (room.what == WRITE_AND_END) {
        http_stream_write(exchange, "last", 4);
        http_stream_end(exchange);
    } else if (room.what == CUT) {
        http_stream_cut(exchange);
        assert_int_equal(http_stream_write(exchange, "x", 1), 0);
    }
}

static client_t open_room(fixture_t *f, in_room_t what)
{
    room.what = what;
    client_t c = open_stream(f, GET("/later"));
    http_exchange_on_room(f->exchange, on_room);
    http_stream_begin(f->exchange, 200, &plain_text, 1);
    return c;
}

static void it_is_called_once_after_writes_and_not_before(void **state)
{
    fixture_t *f = *state;
    client_t c = open_room(f, WRITE_NOTHING);
    client_watch(&c);
    run_loop(f, 5);
    assert_int_equal(room.calls, 0);
    for (unsigned i = 1; i <= 3; i++) {
        http_stream_write(f->exchange, "a", 1);
        http_stream_write(f->exchange, "bc", 2);
        assert_int_equal(http_stream_waiting(f->exchange), 3);
        UNTIL(f, room.calls == i);
        run_loop(f, 2);
        uint64_t runs = stats(f).runs;
        run_loop(f, 10);
        assert_int_equal(room.calls, i);
        assert_int_equal(stats(f).runs, runs);
    }
    http_stream_end(f->exchange);
    response_t r = client_response(&c, false);
    assert_body(&r, "abcabcabc", 9);
    assert_int_equal(room.calls, 3);
    client_close(&c);
}

static void what_it_writes_arrives_and_calls_it_again(void **state)
{
    fixture_t *f = *state;
    client_t c = open_room(f, WRITE_ON);
    client_watch(&c);
    http_stream_write(f->exchange, PIECE, 10);
    response_t r = client_response(&c, false);
    assert_true(r.complete);
    assert_int_equal(r.body.size, (PIECES + 1) * 10);
    for (size_t at = 0; at < r.body.size; at += 10)
        assert_memory_equal(r.body.data + at, PIECE, 10);
    text_buffer_free(&r.body);
    assert_int_equal(room.calls, PIECES + 1);
    assert_int_equal(f->gone, 0);
    assert_int_equal(stats(f).buffered_bytes, 0);
    client_close(&c);
}

static void assert_ends(fixture_t *f, in_room_t what, const char *body)
{
    room.calls = 0;
    client_t c = open_room(f, what);
    client_watch(&c);
    http_stream_write(f->exchange, "first", 5);
    response_t r = client_response(&c, false);
    assert_body(&r, body, strlen(body));
    client_send(&c, GET("/whole"), strlen(GET("/whole")));
    r = client_response(&c, false);
    assert_body(&r, "hello\n", 6);
    assert_int_equal(room.calls, 1);
    assert_int_equal(f->gone, 0);
    assert_int_equal(stats(f).exchanges, 0);
    client_close(&c);
}

static void it_may_end_the_stream_and_the_connection_serves_on(void **state)
{
    assert_ends(*state, END, "first");
    assert_ends(*state, WRITE_AND_END, "firstlast");
}

static void it_may_cut_the_stream(void **state)
{
    fixture_t *f = *state;
    client_t c = open_room(f, CUT);
    client_watch(&c);
    http_stream_write(f->exchange, "first", 5);
    UNTIL(f, c.closed);
    assert_int_equal(c.error, ECONNRESET);
    UNTIL(f, stats(f).connections == 0);
    assert_int_equal(room.calls, 1);
    assert_int_equal(f->gone, 0);
    assert_int_equal(stats(f).exchanges, 0);
    assert_int_equal(stats(f).buffered_bytes, 0);
    client_close(&c);
}

static void an_end_before_there_is_room_leaves_nothing_to_call(void **state)
{
    fixture_t *f = *state;
    client_t c = open_room(f, WRITE_ON);
    client_watch(&c);
    http_stream_write(f->exchange, "all", 3);
    http_stream_end(f->exchange);
    response_t r = client_response(&c, false);
    assert_body(&r, "all", 3);
    assert_int_equal(room.calls, 0);
    client_close(&c);
}

#define BLOCK_BYTES ((size_t)65536)

/* Until the system takes no more for a client that does not read. Returns all that was written. */
static size_t write_until_stuck(fixture_t *f)
{
    static const char block[BLOCK_BYTES];
    size_t written = 0;
    size_t waiting = 0;
    for (size_t stuck = 0; stuck < 20; written += sizeof block) {
        size_t now = http_stream_write(f->exchange, block, sizeof block);
        stuck = now == waiting + sizeof block ? stuck + 1 : 0;
        waiting = now;
        run_loop(f, 0);
    }
    return written;
}

static void a_reader_that_does_not_read_makes_no_room(void **state)
{
    fixture_t *f = *state;
    client_t c = open_room(f, WRITE_NOTHING);
    size_t written = write_until_stuck(f);
    unsigned calls = room.calls;
    run_loop(f, 10);
    assert_int_equal(room.calls, calls);
    assert_int_equal(http_stream_waiting(f->exchange), stats(f).buffered_bytes);
    room.what = END;
    client_watch(&c);
    response_t r = client_response(&c, false);
    assert_int_equal(r.body.size, written);
    assert_int_equal(room.calls, calls + 1);
    text_buffer_free(&r.body);
    client_close(&c);
}

static void a_client_that_leaves_is_reported_and_makes_no_room(void **state)
{
    fixture_t *f = *state;
    for (how_t how = FIN; how < HOWS; how++) {
        f->gone = 0;
        client_t c = open_room(f, WRITE_NOTHING);
        http_stream_write(f->exchange, "a", 1);
        leave(&c, how);
        UNTIL(f, f->gone == 1);
        unsigned calls = room.calls;
        UNTIL(f, stats(f).connections == 0);
        assert_int_equal(room.calls, calls);
        assert_int_equal(f->gone, 1);
        if (how == HALF_CLOSE)
            client_close(&c);
    }
}

static void a_server_that_stops_makes_no_room(void **state)
{
    fixture_t *f = *state;
    client_t c = open_room(f, WRITE_NOTHING);
    write_until_stuck(f);
    unsigned calls = room.calls;
    http_server_destroy(&f->server);
    assert_int_equal(room.calls, calls);
    assert_int_equal(f->gone, 1);
    client_close(&c);
}

static void it_is_not_called_for_a_head_or_once_taken_back(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, "HEAD /later HTTP/1.1\r\nHost: x\r\n\r\n");
    client_watch(&c);
    UNTIL(f, f->handled == 1);
    http_exchange_on_room(f->exchange, on_room);
    http_stream_begin(f->exchange, 200, &plain_text, 1);
    http_stream_write(f->exchange, "no", 2);
    response_t r = client_response(&c, true);
    assert_int_equal(r.status, 200);
    UNTIL(f, f->gone == 1);
    client_close(&c);
    c = open_room(f, END);
    http_exchange_on_room(f->exchange, NULL);
    client_watch(&c);
    http_stream_write(f->exchange, "a", 1);
    UNTIL(f, stats(f).buffered_bytes == 0);
    run_loop(f, 5);
    http_stream_end(f->exchange);
    r = client_response(&c, false);
    assert_body(&r, "a", 1);
    client_close(&c);
    assert_int_equal(room.calls, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_room, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_called_once_after_writes_and_not_before),
        TEST(what_it_writes_arrives_and_calls_it_again),
        TEST(it_may_end_the_stream_and_the_connection_serves_on),
        TEST(it_may_cut_the_stream),
        TEST(an_end_before_there_is_room_leaves_nothing_to_call),
        TEST(a_reader_that_does_not_read_makes_no_room),
        TEST(a_client_that_leaves_is_reported_and_makes_no_room),
        TEST(a_server_that_stops_makes_no_room),
        TEST(it_is_not_called_for_a_head_or_once_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
