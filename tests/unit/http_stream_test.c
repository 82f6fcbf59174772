/* The server's streams, and clients that leave or do not read. Requests and whole answers:
 * http_server_test.c. */
#include "tests/unit/http_fixture.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define OLD_GET(path) "GET " path " HTTP/1.0\r\n\r\n"

/* Bytes from which a lost, repeated or foreign piece can be told. */
static void pattern(text_buffer_t *out, unsigned stream, size_t size)
{
    size_t end = out->size + size;
    while (out->size < end)
        text_buffer_format(out, "%u:%zu,", stream, out->size);
    out->size = end;
}

static client_t open_stream(fixture_t *f, const char *request)
{
    unsigned before = f->handled;
    client_t c = client_send_first(f, request);
    UNTIL(f, f->handled == before + 1);
    return c;
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

/* --- clients that leave --- */

typedef enum { FIN, RST, HALF_CLOSE, HOWS } how_t;

static void leave(client_t *c, how_t how)
{
    if (how == FIN)
        client_close(c);
    else if (how == RST)
        client_reset(c);
    else
        shutdown(c->fd, SHUT_WR);
}

/* The exchange ends once, whatever the client does: before the answer and in a stream, quiet and with bytes
 * sent ahead, noticed in the loop's first turn after it or when there is more to send. */
static void assert_gone_is_reported_once(fixture_t *f, const char *request, how_t how, bool writes)
{
    f->gone = 0;
    client_t c = open_stream(f, request);
    run_loop(f, 0);
    assert_int_equal(f->gone, 0);
    leave(&c, how);
    if (writes)
        http_stream_write(f->exchange, "data", 4);
    UNTIL(f, f->gone == 1);
    UNTIL(f, stats(f).connections == 0);
    run_loop(f, 0);
    assert_int_equal(f->gone, 1);
    assert_int_equal(stats(f).exchanges, 0);
    assert_int_equal(stats(f).buffered_bytes, 0);
    if (how == HALF_CLOSE)
        client_close(&c);
}

static void a_client_that_leaves_before_the_answer_is_reported_once(void **state)
{
    for (how_t how = FIN; how < HOWS; how++) {
        assert_gone_is_reported_once(*state, GET("/later"), how, false);
        assert_gone_is_reported_once(*state, GET("/later") "bytes sent ahead", how, false);
    }
}

static void a_client_that_leaves_a_stream_is_reported_once(void **state)
{
    for (how_t how = FIN; how < HOWS; how++) {
        assert_gone_is_reported_once(*state, GET("/stream"), how, false);
        assert_gone_is_reported_once(*state, GET("/stream"), how, true);
        assert_gone_is_reported_once(*state, GET("/stream") GET("/whole"), how, true);
        assert_gone_is_reported_once(*state, OLD_GET("/stream"), how, true);
    }
}

/* Then the server hears of the end before it knows that there is a request. */
static void a_client_that_leaves_with_its_request_is_reported(void **state)
{
    fixture_t *f = *state;
    static const char *const beginnings[] = {"GET /later HTTP/1.1\r\n", "GET /stream HTTP/1.1\r\n",
                                             "GET /stream HTTP/1.0\r\n"};
    for (unsigned i = 0; i < 3; i++) {
        client_t closed = client_send_first(f, beginnings[i]);
        client_t half_closed = client_send_first(f, beginnings[i]);
        UNTIL(f, stats(f).connections == 2);
        client_send(&closed, "Host: x\r\n\r\n", 11);
        client_send(&half_closed, "Host: x\r\n\r\n", 11);
        leave(&closed, FIN);
        leave(&half_closed, HALF_CLOSE);
        UNTIL(f, f->gone == 2 * (i + 1));
        client_close(&half_closed);
        UNTIL(f, stats(f).connections == 0);
        assert_int_equal(f->handled, 2 * (i + 1));
        assert_int_equal(f->gone, 2 * (i + 1));
    }
}

static void a_client_that_leaves_right_after_connecting_is_reported(void **state)
{
    fixture_t *f = *state;
    client_t later = client_send_first(f, GET("/later"));
    client_t stream = client_send_first(f, GET("/stream"));
    leave(&later, FIN);
    leave(&stream, HALF_CLOSE);
    UNTIL(f, f->gone == 2);
    assert_int_equal(f->handled, 2);
    client_close(&stream);
}

static void a_half_closed_client_still_gets_an_answer_given_at_once(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, GET("/whole"));
    shutdown(c.fd, SHUT_WR);
    client_watch(&c);
    response_t r = client_response(&c, false);
    assert_body(&r, "hello\n", 6);
    client_close(&c);
}

static void after_the_answer_was_given_nothing_is_reported(void **state)
{
    fixture_t *f = *state;
    for (how_t how = FIN; how < HOWS; how++) {
        client_t whole = open_stream(f, GET("/later"));
        http_exchange_t *first = f->exchange;
        client_t stream = open_stream(f, GET("/stream"));
        leave(&whole, how);
        leave(&stream, how);
        http_respond(first, 200, &plain_text, 1, "too late", 8);
        http_stream_end(f->exchange);
        UNTIL(f, stats(f).exchanges == 0);
        if (how == HALF_CLOSE) {
            client_close(&whole);
            client_close(&stream);
        }
    }
    UNTIL(f, stats(f).connections == 0);
    assert_int_equal(f->gone, 0);
}

static void on_gone_and_answer(void *context, http_exchange_t *exchange)
{
    assert_string_equal(http_header(exchange, "Host"), "x");
    http_respond(exchange, 200, &plain_text, 1, "to nobody", 9);
    assert_int_equal(http_stream_write(exchange, "nor this", 8), 0);
    http_stream_end(exchange);
    http_stream_cut(exchange);
    on_gone(context, exchange);
}

static void what_on_gone_answers_goes_nowhere(void **state)
{
    fixture_t *f = *state;
    client_t c = open_stream(f, GET("/later"));
    http_exchange_watch(f->exchange, on_gone_and_answer, f);
    client_close(&c);
    UNTIL(f, f->gone == 1);
    assert_int_equal(stats(f).buffered_bytes, 0);
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

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define WITHOUT_SERVER(test) cmocka_unit_test_setup_teardown(test, setup_without_server, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(every_byte_of_a_stream_arrives),
        WITH_SERVER(every_byte_of_a_stream_arrives_at_an_http_1_0_client),
        WITH_SERVER(after_a_stream_the_connection_serves_on),
        WITH_SERVER(a_stream_may_begin_late),
        WITH_SERVER(streams_at_the_same_time_keep_apart),
        WITH_SERVER(many_writes_in_one_turn_are_one_flush),
        WITH_SERVER(a_client_that_leaves_before_the_answer_is_reported_once),
        WITH_SERVER(a_client_that_leaves_a_stream_is_reported_once),
        WITH_SERVER(a_client_that_leaves_with_its_request_is_reported),
        WITH_SERVER(a_client_that_leaves_right_after_connecting_is_reported),
        WITH_SERVER(a_half_closed_client_still_gets_an_answer_given_at_once),
        WITH_SERVER(after_the_answer_was_given_nothing_is_reported),
        WITH_SERVER(what_on_gone_answers_goes_nowhere),
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
