/* The line and the headers of a request: how many, how large, how slow, and what must not be in them (B115). */
#include "tests/unit/http_fixture.h"

#define LATE_MS 40

/* Answered with that error, and closed. */
static void assert_refused(fixture_t *f, const char *data, size_t size, int status, const char *code)
{
    client_t c = client_send_first(f, "");
    client_watch(&c);
    client_send(&c, data, size);
    response_t r = client_response(&c, false);
    assert_error(&r, status, code);
    UNTIL(f, c.closed);
    client_close(&c);
}

static char *request_with_headers(unsigned count, size_t *size)
{
    text_buffer_t text = {0};
    text_buffer_text(&text, "GET /whole HTTP/1.1\r\nHost: x\r\n");
    for (unsigned i = 1; i < count; i++)
        text_buffer_format(&text, "A: %u\r\n", i);
    text_buffer_text(&text, "\r\n");
    *size = text.size;
    return text.data;
}

static void as_many_headers_as_the_limit_are_served(void **state)
{
    fixture_t *f = *state;
    size_t size;
    start_server(f, (http_server_options_t){.max_headers = 50});
    char *request = request_with_headers(50, &size);
    client_t c = client_send_first(f, "");
    client_watch(&c);
    client_send(&c, request, size);
    response_t r = client_response(&c, false);
    assert_body(&r, "hello\n", 6);
    client_close(&c);
    free(request);
    request = request_with_headers(51, &size);
    assert_refused(f, request, size, 431, "header_too_large");
    free(request);
}

/* libmicrohttpd says so by itself, in words of its own. */
static void a_head_that_does_not_fit_is_refused(void **state)
{
    static const char *const beginnings[] = {"GET /whole HTTP/1.1\r\nHost: x\r\nA: ", "GET /"};
    fixture_t *f = *state;
    size_t size = 1 << 20;
    char *flood = malloc(size);
    assert_non_null(flood);
    start_server(f, (http_server_options_t){.max_header_bytes = 4096});
    for (size_t i = 0; i < 2; i++) {
        memset(flood, 'a', size);
        memcpy(flood, beginnings[i], strlen(beginnings[i]));
        client_t c = client_send_first(f, "");
        client_watch(&c);
        send(c.fd, flood, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        UNTIL(f, c.closed);
        if (c.received.size > 0) /* a reset can overtake it */
            assert_memory_equal(c.received.data, i == 0 ? "HTTP/1.1 431 " : "HTTP/1.1 414 ", 13);
        client_close(&c);
    }
    free(flood);
    UNTIL(f, stats(f).connections == 0);
    assert_int_equal(stats(f).requests, 0);
}

/* In the line, libmicrohttpd may wait for what would make it one: then it is late. */
static void a_nul_byte_is_refused_wherever_it_stands(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = 200});
#define ROW(text)                                                                                            \
    {                                                                                                        \
        text, sizeof text - 1                                                                                \
    }
    static const struct {
        const char *text;
        size_t size;
    } rows[] = {
        ROW("GET /whole HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n"),
        ROW("GET /whole HTTP/1.1\r\nHost: x\r\nA\0B: c\r\n\r\n"),
        ROW("GET /who\0le HTTP/1.1\r\nHost: x\r\n\r\n"),
        ROW("GET /whole\0 HTTP/1.1\r\nHost: x\r\n\r\n"),
        ROW("G\0T /whole HTTP/1.1\r\nHost: x\r\n\r\n"),
        ROW("GET /whole HTTP/1.1\r\nHost: x\r\nContent-Length: 0\0 1\r\n\r\n"),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        client_t c = client_send_first(f, "");
        client_watch(&c);
        client_send(&c, rows[i].text, rows[i].size);
        UNTIL(f, c.closed || c.received.size > 0);
        if (c.received.size < 13 || memcmp(c.received.data, "HTTP/1.1 40", 11) != 0)
            fail_msg("row %zu: %.*s", i, (int)c.received.size, c.received.data);
        UNTIL(f, c.closed);
        client_close(&c);
    }
    assert_int_equal(stats(f).requests, 0);
}

/* --- time --- */

static void drip(client_t *c, const char *text)
{
    for (const char *at = text; *at && !c->closed; at++) {
        send(c->fd, at, 1, MSG_NOSIGNAL);
        run_loop(c->fixture, 5);
    }
}

static void a_head_that_drips_in_is_late(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = LATE_MS});
    client_t c = client_send_first(f, "");
    client_watch(&c);
    drip(&c, "GET /whole HTTP/1.1\r\nHost: x\r\nA: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    assert_true(c.closed);
    response_t r = client_response(&c, false);
    assert_error(&r, 408, "request_timeout");
    client_close(&c);
}

static void a_body_that_drips_in_is_late(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.body_timeout_ms = LATE_MS});
    client_t c = client_send_first(f, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
    client_watch(&c);
    drip(&c, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    assert_true(c.closed);
    response_t r = client_response(&c, false);
    assert_error(&r, 408, "request_timeout");
    assert_int_equal(stats(f).requests, 0);
    client_close(&c);
}

static void a_connection_that_is_kept_has_time_between_requests_but_not_within_one(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = LATE_MS});
    client_t c = client_send_first(f, "GET /whole HTTP/1.1\r\nHost: x\r\n\r\n");
    client_watch(&c);
    response_t r = client_response(&c, false);
    assert_body(&r, "hello\n", 6);
    run_loop(f, LATE_MS);
    assert_false(c.closed);
    text_buffer_clear(&c.received);
    client_send(&c, "GET /whole HTTP/1.1\r\nHos", 24);
    UNTIL(f, c.closed);
    r = client_response(&c, false);
    assert_error(&r, 408, "request_timeout");
    client_close(&c);
}

static void a_request_that_has_arrived_may_be_answered_later_than_that(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.header_timeout_ms = LATE_MS, .body_timeout_ms = LATE_MS});
    client_t c = client_send_first(f, "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab");
    client_watch(&c);
    UNTIL(f, f->handled == 1);
    zloop_timer(f->loop, 2 * LATE_MS, 1, on_answer_time, f);
    response_t r = client_response(&c, false);
    assert_body(&r, "late", 4);
    client_close(&c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_without_server, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(as_many_headers_as_the_limit_are_served),
        TEST(a_head_that_does_not_fit_is_refused),
        TEST(a_nul_byte_is_refused_wherever_it_stands),
        TEST(a_head_that_drips_in_is_late),
        TEST(a_body_that_drips_in_is_late),
        TEST(a_connection_that_is_kept_has_time_between_requests_but_not_within_one),
        TEST(a_request_that_has_arrived_may_be_answered_later_than_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
