/* Clients that are slow to send: each part of a request has its time, however steadily it comes (B115).
 * Silence is http_limit_test.c's. */
#include "tests/unit/http_fixture.h"

#include <time.h>

#define LATE_MS 40
#define LONGER_MS ((size_t)2 * LATE_MS)
#define DRIP_MS 3

/* Sends byte after byte until the server closes, which must be long before the end of the text. */
static void drip(client_t *c, const char *text)
{
    for (const char *at = text; *at && !c->closed; at++) {
        send(c->fd, at, 1, MSG_NOSIGNAL);
        run_loop(c->fixture, DRIP_MS);
    }
    assert_true(c->closed);
}

static void assert_late(client_t *c, const char *what)
{
    char wanted[128];
    UNTIL(c->fixture, c->closed);
    response_t r = client_response(c, false);
    snprintf(wanted, sizeof wanted, "the request's %s did not arrive within %d ms", what, LATE_MS);
    assert_true(r.complete);
    assert_non_null(strstr(r.head, "\r\nConnection: close\r\n"));
    assert_non_null(memmem(r.body.data, r.body.size, wanted, strlen(wanted)));
    assert_error(&r, 408, "request_timeout");
    assert_int_equal(c->received.size, 0);
    assert_int_equal(c->error, 0);
}

#define AS "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define MANY_AS AS AS AS AS AS AS AS AS

/* --- the head --- */

static void a_head_that_drips_in_is_late(void **state)
{
    static const char *const heads[] = {"GET /" MANY_AS, "GET /whole HTTP/1.1\r\nHost: x\r\nA: " MANY_AS};
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = LATE_MS});
    for (size_t i = 0; i < 2; i++) {
        client_t c = client_send_first(f, "");
        client_watch(&c);
        drip(&c, heads[i]);
        assert_late(&c, "line and headers");
        client_close(&c);
    }
    UNTIL(f, stats(f).connections == 0);
    assert_int_equal(stats(f).refused, 2);
}

static void a_connection_that_sends_nothing_is_late(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = LATE_MS});
    client_t c = client_send_first(f, "");
    client_watch(&c);
    assert_late(&c, "line and headers");
    client_close(&c);
}

/* libmicrohttpd forgets, while it reads the line, that it has refused it, and waits for more. */
static void more_parameters_than_there_is_memory_for_are_late(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = LATE_MS});
    text_buffer_t request = {0};
    text_buffer_text(&request, "GET /whole?");
    for (int i = 0; i < 1000; i++)
        text_buffer_text(&request, "a&");
    text_buffer_text(&request, " HTTP/1.1\r\nHost: x\r\n\r\n");
    client_t c = client_send_first(f, "");
    client_watch(&c);
    client_send(&c, request.data, request.size);
    assert_late(&c, "line and headers");
    assert_int_equal(stats(f).requests, 0);
    client_close(&c);
    text_buffer_free(&request);
}

/* The loop holds the client's address. */
static void keep_connection(client_t *c, fixture_t *f)
{
    *c = client_send_first(f, GET("/whole"));
    client_watch(c);
    response_t r = client_response(c, false);
    assert_body(&r, "hello\n", 6);
}

static void between_requests_a_kept_connection_has_the_idle_time(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = LATE_MS});
    client_t c;
    keep_connection(&c, f);
    run_loop(f, LONGER_MS);
    assert_false(c.closed);
    client_send(&c, GET("/whole"), strlen(GET("/whole")));
    response_t r = client_response(&c, false);
    assert_body(&r, "hello\n", 6);
    run_loop(f, LONGER_MS);
    assert_false(c.closed);
    client_close(&c);
}

static void an_idle_connection_is_closed_without_an_answer(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.idle_timeout_ms = LATE_MS, .header_timeout_ms = 1000000});
    client_t c;
    keep_connection(&c, f);
    UNTIL(f, c.closed);
    assert_int_equal(c.received.size, 0);
    client_close(&c);
}

/* Also without an idle time, and already before its line is complete. */
static void the_next_head_of_a_kept_connection_is_late_from_its_first_byte_on(void **state)
{
    static const char *const heads[] = {"GET /" MANY_AS, "GET /whole HTTP/1.1\r\nHost: x\r\nA: " MANY_AS};
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = LATE_MS});
    for (size_t i = 0; i < 2; i++) {
        client_t c;
        keep_connection(&c, f);
        drip(&c, heads[i]);
        assert_late(&c, "line and headers");
        client_close(&c);
        keep_connection(&c, f);
        client_send(&c, heads[i], 40);
        assert_late(&c, "line and headers");
        client_close(&c);
    }
}

static void a_head_that_was_begun_ahead_of_time_is_late(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = LATE_MS});
    client_t c = open_stream(f, GET("/later"));
    client_watch(&c);
    client_send(&c, "GET /who", 8);
    run_loop(f, LATE_MS);
    assert_false(c.closed);
    http_respond(f->exchange, 200, &plain_text, 1, "first", 5);
    response_t r = client_response(&c, false);
    assert_body(&r, "first", 5);
    assert_late(&c, "line and headers");
    client_close(&c);
}

/* --- the body --- */

#define POST(path) "POST " path " HTTP/1.1\r\nHost: x\r\n"

static void a_body_that_drips_in_is_late(void **state)
{
    static const char *const heads[] = {
        POST("/echo") "Content-Length: 1000\r\n\r\n",
        POST("/echo") "Transfer-Encoding: chunked\r\n\r\n200\r\n",
        POST("/nowhere") "Content-Length: 1000\r\n\r\n",
    };
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.body_timeout_ms = LATE_MS});
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        client_t c = client_send_first(f, heads[i]);
        client_watch(&c);
        drip(&c, MANY_AS);
        assert_late(&c, "body");
        client_close(&c);
    }
    UNTIL(f, stats(f).connections == 0);
    assert_int_equal(stats(f).requests, 0);
}

static void the_trailer_of_a_body_that_drips_in_is_late(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.body_timeout_ms = LATE_MS});
    client_t c = client_send_first(f, POST("/echo") "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n");
    client_watch(&c);
    drip(&c, "A: " MANY_AS);
    assert_late(&c, "body");
    assert_int_equal(stats(f).requests, 0);
    client_close(&c);
}

static void the_time_of_the_body_begins_after_the_head(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = LATE_MS, .body_timeout_ms = 1000000});
    client_t c = client_send_first(f, POST("/echo") "Content-Length: 2\r\n\r\na");
    client_watch(&c);
    run_loop(f, LONGER_MS);
    assert_false(c.closed);
    client_send(&c, "b", 1);
    response_t r = client_response(&c, false);
    assert_body(&r, "ab", 2);
    client_close(&c);
}

/* What it still sends is read for no longer than a body may take, and it hears one answer only. */
static void a_body_refused_already_is_late_without_a_second_answer(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.body_timeout_ms = LATE_MS});
    client_t c = client_send_first(f, POST("/echo") "Content-Length: 10001\r\n\r\n");
    UNTIL(f, stats(f).refused == 1);
    assert_int_equal(stats(f).connections, 1);
    UNTIL(f, stats(f).connections == 0);
    client_watch(&c);
    UNTIL(f, c.closed);
    response_t r = client_response(&c, false);
    assert_error(&r, 413, "body_too_large");
    assert_int_equal(c.received.size, 0);
    assert_int_equal(stats(f).refused, 1);
    client_close(&c);
}

/* --- on time --- */

static void a_request_that_has_arrived_may_be_answered_later_than_that(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = LATE_MS, .body_timeout_ms = LATE_MS});
    client_t c = client_send_first(f, POST("/later") "Content-Length: 2\r\n\r\nab");
    client_watch(&c);
    UNTIL(f, f->handled == 1);
    zloop_timer(f->loop, LONGER_MS, 1, on_answer_time, f);
    response_t r = client_response(&c, false);
    assert_body(&r, "late", 4);
    client_close(&c);
}

static void a_stream_may_last_longer_than_that(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = LATE_MS, .body_timeout_ms = LATE_MS});
    client_t c = open_stream(f, GET("/stream"));
    client_watch(&c);
    http_stream_write(f->exchange, "a", 1);
    run_loop(f, LATE_MS);
    client_send(&c, "GET /who", 8);
    run_loop(f, LATE_MS);
    http_stream_write(f->exchange, "b", 1);
    http_stream_end(f->exchange);
    response_t r = client_response(&c, false);
    assert_body(&r, "ab", 2);
    client_close(&c);
}

/* The rest is here when the server looks, but its answer has been given. */
static void a_request_that_is_complete_too_late_reaches_no_handler(void **state)
{
    static const char *const parts[][2] = {
        {"GET /who", "le HTTP/1.1\r\nHost: x\r\n\r\n"},
        {POST("/echo") "Content-Length: 8\r\n\r\nhalf", "rest"},
    };
    const struct timespec late = {.tv_nsec = (long)LONGER_MS * 1000000};
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = LATE_MS, .body_timeout_ms = LATE_MS});
    for (size_t i = 0; i < 2; i++) {
        client_t c = client_send_first(f, parts[i][0]);
        UNTIL(f, stats(f).connections == 1);
        run_loop(f, 1);
        nanosleep(&late, NULL);
        send(c.fd, parts[i][1], strlen(parts[i][1]), MSG_NOSIGNAL);
        UNTIL(f, stats(f).connections == 0);
        client_watch(&c);
        UNTIL(f, c.closed);
        assert_true(c.received.size > 12);
        assert_memory_equal(c.received.data, "HTTP/1.1 408", 12);
        client_close(&c);
    }
    assert_int_equal(stats(f).requests, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITHOUT_SERVER(a_head_that_drips_in_is_late),
        WITHOUT_SERVER(a_connection_that_sends_nothing_is_late),
        WITHOUT_SERVER(more_parameters_than_there_is_memory_for_are_late),
        WITHOUT_SERVER(between_requests_a_kept_connection_has_the_idle_time),
        WITHOUT_SERVER(an_idle_connection_is_closed_without_an_answer),
        WITHOUT_SERVER(the_next_head_of_a_kept_connection_is_late_from_its_first_byte_on),
        WITHOUT_SERVER(a_head_that_was_begun_ahead_of_time_is_late),
        WITHOUT_SERVER(a_body_that_drips_in_is_late),
        WITHOUT_SERVER(the_trailer_of_a_body_that_drips_in_is_late),
        WITHOUT_SERVER(the_time_of_the_body_begins_after_the_head),
        WITHOUT_SERVER(a_body_refused_already_is_late_without_a_second_answer),
        WITHOUT_SERVER(a_request_that_has_arrived_may_be_answered_later_than_that),
        WITHOUT_SERVER(a_stream_may_last_longer_than_that),
        WITHOUT_SERVER(a_request_that_is_complete_too_late_reaches_no_handler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
