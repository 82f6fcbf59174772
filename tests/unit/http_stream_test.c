/* The server's streams, and clients that do not read. Requests and whole answers: http_server_test.c. Clients
 * that leave: http_leave_test.c. */
#include "tests/unit/http_fixture.h"

/* Bytes from which a lost, repeated or foreign piece can be told. */
static void pattern(text_buffer_t *out, unsigned stream, size_t size)
{
    size_t end = out->size + size;
    while (out->size < end)
        text_buffer_format(out, "%u:%zu,", stream, out->size);
    out->size = end;
}

/* --- what is written arrives --- */

static void assert_stream_arrives(fixture_t *f, const char *request)
{
    client_t c = open_stream(f, request);
    client_watch(&c);
    text_buffer_t sent = {0};
    for (size_t i = 0; i < 3000; i++) {
        size_t begin = sent.size;
        pattern(&sent, 1, 1 + i * 7 % 400);
        http_stream_write(f->exchange, sent.data + begin, sent.size - begin);
        if (i % 5 == 0)
            run_loop(f, 0);
    }
    http_stream_end(f->exchange);
    response_t r = client_response(&c, false);
    assert_int_equal(r.status, 200);
    assert_body(&r, sent.data, sent.size);
    assert_int_equal(stats(f).buffered_bytes, 0);
    assert_int_equal(f->gone, 0);
    client_close(&c);
    text_buffer_free(&sent);
}

static void every_byte_of_a_stream_arrives(void **state)
{
    assert_stream_arrives(*state, GET("/stream"));
}

static void every_byte_of_a_stream_arrives_at_an_http_1_0_client(void **state)
{
    assert_stream_arrives(*state, OLD_GET("/stream"));
}

static void after_a_stream_the_connection_serves_on(void **state)
{
    fixture_t *f = *state;
    client_t c = open_stream(f, GET("/stream"));
    client_watch(&c);
    http_stream_end(f->exchange);
    response_t r = client_response(&c, false);
    assert_body(&r, "", 0);
    client_send(&c, GET("/whole"), strlen(GET("/whole")));
    r = client_response(&c, false);
    assert_body(&r, "hello\n", 6);
    client_close(&c);
}

static void a_stream_may_begin_late(void **state)
{
    fixture_t *f = *state;
    client_t c = open_stream(f, GET("/later"));
    client_watch(&c);
    run_loop(f, 0);
    http_stream_begin(f->exchange, 200, &plain_text, 1);
    http_stream_write(f->exchange, "now", 3);
    http_stream_end(f->exchange);
    response_t r = client_response(&c, false);
    assert_body(&r, "now", 3);
    client_close(&c);
}

#define STREAMS 50u

static void streams_at_the_same_time_keep_apart(void **state)
{
    fixture_t *f = *state;
    static client_t clients[STREAMS];
    http_exchange_t *exchanges[STREAMS];
    text_buffer_t sent[STREAMS] = {{0}};
    for (unsigned i = 0; i < STREAMS; i++) {
        clients[i] = open_stream(f, GET("/stream"));
        client_watch(&clients[i]);
        exchanges[i] = f->exchange;
    }
    for (unsigned round = 0; round < 40; round++) {
        for (unsigned i = 0; i < STREAMS; i++) {
            size_t begin = sent[i].size;
            pattern(&sent[i], i, 20);
            http_stream_write(exchanges[i], sent[i].data + begin, 20);
        }
        run_loop(f, 0);
    }
    for (unsigned i = 0; i < STREAMS; i++) {
        http_stream_end(exchanges[i]);
        response_t r = client_response(&clients[i], false);
        assert_body(&r, sent[i].data, sent[i].size);
        client_close(&clients[i]);
        text_buffer_free(&sent[i]);
    }
    assert_int_equal(stats(f).exchanges, 0);
}

static void many_writes_in_one_turn_are_one_flush(void **state)
{
    fixture_t *f = *state;
    client_t c = open_stream(f, GET("/stream"));
    client_watch(&c);
    run_loop(f, 0);
    uint64_t before = stats(f).runs;
    for (int i = 0; i < 100; i++)
        http_stream_write(f->exchange, "0123456789", 10);
    assert_int_equal(stats(f).runs, before);
    assert_int_equal(stats(f).buffered_bytes, 1000);
    UNTIL(f, c.received.size > 0 && stats(f).buffered_bytes == 0);
    assert_in_range(stats(f).runs - before, 1, 4);
    http_stream_end(f->exchange);
    response_t r = client_response(&c, false);
    assert_int_equal(r.body.size, 1000);
    text_buffer_free(&r.body);
    client_close(&c);
}

/* --- clients that do not read --- */

/* Writes until the transport has stopped taking; returns all that was written. */
static void write_until_stuck(fixture_t *f, text_buffer_t *sent)
{
    size_t waiting = 0;
    for (size_t stuck = 0; stuck < 20;) {
        size_t begin = sent->size;
        pattern(sent, 1, 65536);
        size_t now = http_stream_write(f->exchange, sent->data + begin, 65536);
        stuck = now == waiting + 65536 ? stuck + 1 : 0;
        waiting = now;
        run_loop(f, 0);
    }
    assert_true(waiting >= (size_t)20 * 65536);
    assert_int_equal(stats(f).buffered_bytes, waiting);
}

static void a_slow_reader_makes_the_count_grow_and_gets_all_in_the_end(void **state)
{
    fixture_t *f = *state;
    text_buffer_t sent = {0};
    client_t c = open_stream(f, GET("/stream"));
    write_until_stuck(f, &sent);
    http_stream_end(f->exchange);
    client_watch(&c);
    response_t r = client_response(&c, false);
    assert_body(&r, sent.data, sent.size);
    assert_int_equal(stats(f).buffered_bytes, 0);
    assert_int_equal(f->gone, 0);
    client_close(&c);
    text_buffer_free(&sent);
}

static void a_slow_reader_that_leaves_is_reported_once(void **state)
{
    fixture_t *f = *state;
    for (how_t how = FIN; how < HOWS; how++) {
        text_buffer_t sent = {0};
        f->gone = 0;
        client_t c = open_stream(f, GET("/stream"));
        write_until_stuck(f, &sent);
        leave(&c, how);
        UNTIL(f, f->gone == 1);
        UNTIL(f, stats(f).connections == 0);
        assert_int_equal(f->gone, 1);
        assert_int_equal(stats(f).buffered_bytes, 0);
        if (how == HALF_CLOSE)
            client_close(&c);
        text_buffer_free(&sent);
    }
}

static void a_slow_reader_is_given_up_after_the_idle_time(void **state)
{
    fixture_t *f = *state;
    text_buffer_t sent = {0};
    start_server(f, (http_server_options_t){.idle_timeout_ms = 20});
    client_t c = open_stream(f, GET("/stream"));
    write_until_stuck(f, &sent);
    UNTIL(f, f->gone == 1);
    client_close(&c);
    text_buffer_free(&sent);
}

static void assert_cut_resets(fixture_t *f, const char *request, bool is_stuck)
{
    text_buffer_t sent = {0};
    client_t c = open_stream(f, request);
    if (is_stuck)
        write_until_stuck(f, &sent);
    run_loop(f, 0);
    http_stream_cut(f->exchange);
    UNTIL(f, stats(f).connections == 0);
    client_watch(&c);
    UNTIL(f, c.closed);
    assert_int_equal(c.error, ECONNRESET);
    assert_int_equal(stats(f).exchanges, 0);
    assert_int_equal(stats(f).buffered_bytes, 0);
    assert_int_equal(f->gone, 0);
    client_close(&c);
    text_buffer_free(&sent);
}

static void a_cut_resets_the_connection_and_is_not_reported(void **state)
{
    assert_cut_resets(*state, GET("/later"), false);
    assert_cut_resets(*state, GET("/stream"), false);
    assert_cut_resets(*state, GET("/stream"), true);
}

/* Such a client takes the end of the connection for the end of the body. */
static void a_cut_is_no_clean_end_for_an_http_1_0_client(void **state)
{
    assert_cut_resets(*state, OLD_GET("/stream"), false);
    assert_cut_resets(*state, OLD_GET("/stream"), true);
}

/* --- the server stops --- */

static void destroying_the_server_reports_every_open_exchange(void **state)
{
    fixture_t *f = *state;
    text_buffer_t sent = {0};
    client_t waiting = open_stream(f, GET("/later"));
    client_t streaming = open_stream(f, GET("/stream"));
    http_stream_write(f->exchange, "a", 1);
    run_loop(f, 0);
    client_t stuck = open_stream(f, GET("/stream"));
    write_until_stuck(f, &sent);
    client_t arriving = client_send_first(f, "POST /echo HTTP/1.1\r\nContent-Length: 4\r\n\r\nha");
    UNTIL(f, stats(f).connections == 4);
    http_server_destroy(&f->server);
    assert_null(f->server);
    assert_int_equal(f->gone, 3);
    client_close(&waiting);
    client_close(&streaming);
    client_close(&stuck);
    client_close(&arriving);
    text_buffer_free(&sent);
}

static void destroying_the_server_still_hands_over_what_was_answered(void **state)
{
    fixture_t *f = *state;
    client_t whole = open_stream(f, GET("/later"));
    http_respond(f->exchange, 200, &plain_text, 1, "goodbye", 7);
    client_t stream = open_stream(f, GET("/stream"));
    http_stream_write(f->exchange, "the end", 7);
    http_stream_end(f->exchange);
    http_server_destroy(&f->server);
    client_watch(&whole);
    client_watch(&stream);
    response_t r = client_response(&whole, false);
    assert_body(&r, "goodbye", 7);
    r = client_response(&stream, false);
    assert_body(&r, "the end", 7);
    assert_int_equal(f->gone, 0);
    client_close(&whole);
    client_close(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(every_byte_of_a_stream_arrives),
        WITH_SERVER(every_byte_of_a_stream_arrives_at_an_http_1_0_client),
        WITH_SERVER(after_a_stream_the_connection_serves_on),
        WITH_SERVER(a_stream_may_begin_late),
        WITH_SERVER(streams_at_the_same_time_keep_apart),
        WITH_SERVER(many_writes_in_one_turn_are_one_flush),
        WITH_SERVER(a_slow_reader_makes_the_count_grow_and_gets_all_in_the_end),
        WITH_SERVER(a_slow_reader_that_leaves_is_reported_once),
        WITHOUT_SERVER(a_slow_reader_is_given_up_after_the_idle_time),
        WITH_SERVER(a_cut_resets_the_connection_and_is_not_reported),
        WITH_SERVER(a_cut_is_no_clean_end_for_an_http_1_0_client),
        WITH_SERVER(destroying_the_server_reports_every_open_exchange),
        WITH_SERVER(destroying_the_server_still_hands_over_what_was_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
