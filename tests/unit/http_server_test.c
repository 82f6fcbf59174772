/* The server's whole answers and its life. Bodies and refusals: http_body_test.c. Streams:
 * http_stream_test.c. Clients that leave: http_leave_test.c. Limits: http_limit_test.c. */
#include "tests/unit/http_fixture.h"

static response_t ask(fixture_t *f, const char *request)
{
    client_t c = client_send_first(f, request);
    client_watch(&c);
    response_t r = client_response(&c, false);
    client_close(&c);
    return r;
}

static void a_request_gets_its_answer(void **state)
{
    fixture_t *f = *state;
    response_t r = ask(f, GET("/whole"));
    assert_int_equal(r.status, 200);
    assert_non_null(strstr(r.head, "\r\nContent-Type: text/plain\r\n"));
    assert_body(&r, "hello\n", 6);
    assert_int_equal(stats(f).requests, 1);
}

static void a_connection_serves_one_request_after_the_other(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, GET("/whole"));
    client_watch(&c);
    for (int i = 0; i < 3; i++) {
        response_t r = client_response(&c, false);
        assert_body(&r, "hello\n", 6);
        client_send(&c, GET("/whole"), strlen(GET("/whole")));
    }
    response_t r = client_response(&c, false);
    assert_body(&r, "hello\n", 6);
    assert_int_equal(c.received.size, 0);
    assert_int_equal(stats(f).connections, 1);
    client_close(&c);
}

static void requests_sent_ahead_are_answered_in_order(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, GET("/later") GET("/whole") GET("/error"));
    client_watch(&c);
    UNTIL(f, f->handled == 1);
    http_respond(f->exchange, 200, &plain_text, 1, "first", 5);
    response_t r = client_response(&c, false);
    assert_body(&r, "first", 5);
    r = client_response(&c, false);
    assert_body(&r, "hello\n", 6);
    r = client_response(&c, false);
    assert_error(&r, 429, "overloaded");
    client_close(&c);
}

static void close_and_http_1_0_are_honoured(void **state)
{
    fixture_t *f = *state;
    static const char *const requests[] = {
        "GET /whole HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET /whole HTTP/1.0\r\n\r\n",
    };
    for (size_t i = 0; i < 2; i++) {
        client_t c = client_send_first(f, requests[i]);
        client_watch(&c);
        UNTIL(f, c.closed);
        assert_int_equal(c.error, 0);
        response_t r = parse(&c, false);
        assert_body(&r, "hello\n", 6);
        client_close(&c);
    }
}

static void headers_are_found_in_any_case_and_counted(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, "GET /later HTTP/1.1\r\nhost: x\r\nX-Data-Parallel-Rank: 3\r\n"
                                      "x-data-parallel-rank: 4\r\nX-Empty:\r\n\r\n");
    UNTIL(f, f->handled == 1);
    assert_string_equal(http_header(f->exchange, "X-data-parallel-rank"), "3");
    assert_int_equal(http_header_count(f->exchange, "X-data-parallel-rank"), 2);
    assert_string_equal(http_header(f->exchange, "x-empty"), "");
    assert_null(http_header(f->exchange, "X-Request-Id"));
    assert_int_equal(http_header_count(f->exchange, "X-Request-Id"), 0);
    client_close(&c);
    UNTIL(f, f->gone == 1);
}

static void an_error_is_json_and_says_when_to_retry(void **state)
{
    fixture_t *f = *state;
    response_t r = ask(f, GET("/error"));
    assert_non_null(strstr(r.head, "\r\nRetry-After: 1\r\n"));
    assert_error(&r, 429, "overloaded");
}

static void the_json_form_of_an_error(void **state)
{
    (void)state;
    wg_error_t error;
    text_buffer_t json = {0};
    wg_invalid_field(&error, "top_p", "1.5 is not in (0, 1]");
    http_error_json(&json, &error);
    text_buffer_bytes(&json, "", 1);
    assert_string_equal(json.data,
                        "{\"error\":{\"message\":\"top_p: 1.5 is not in (0, 1]\",\"type\":\"invalid_request_"
                        "error\",\"param\":\"top_p\",\"code\":\"invalid_request\"}}");
    text_buffer_clear(&json);
    WG_FAIL(&error, MODEL_NOT_FOUND, "a \"b\"");
    http_error_json(&json, &error);
    text_buffer_bytes(&json, "", 1);
    assert_string_equal(
        json.data, "{\"error\":{\"message\":\"the model `a \\\"b\\\"` does not exist\",\"type\":\"invalid_"
                   "request_error\",\"param\":null,\"code\":\"model_not_found\"}}");
    text_buffer_free(&json);
}

static void a_line_break_cannot_make_a_header_of_its_own(void **state)
{
    fixture_t *f = *state;
    const http_header_t headers[] = {{"X-Request-Id", "1\r\nSet-Cookie: a=b"}, plain_text};
    client_t c = client_send_first(f, GET("/later"));
    client_watch(&c);
    UNTIL(f, f->handled == 1);
    http_respond(f->exchange, 200, headers, 2, "ok", 2);
    response_t r = client_response(&c, false);
    assert_null(strstr(r.head, "Set-Cookie"));
    assert_non_null(strstr(r.head, "\r\nContent-Type: text/plain\r\n"));
    assert_body(&r, "ok", 2);
    client_close(&c);
}

static void a_status_without_http_status_is_500(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, GET("/later"));
    client_watch(&c);
    UNTIL(f, f->handled == 1);
    wg_error_t error;
    WG_FAIL(&error, HANDSHAKE_TIMEOUT, "HELLO", "0, 1", 30LL);
    http_respond_error(f->exchange, &error, NULL, 0);
    response_t r = client_response(&c, false);
    assert_error(&r, 500, "handshake_timeout");
    client_close(&c);
}

static void an_unknown_path_is_404_and_the_connection_goes_on(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, "POST /v1/\xff HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
    client_watch(&c);
    response_t r = client_response(&c, false);
    assert_non_null(memmem(r.body.data, r.body.size, "`/v1/?`", 7));
    assert_error(&r, 404, "route_not_found");
    client_send(&c, GET("/whole"), strlen(GET("/whole")));
    r = client_response(&c, false);
    assert_body(&r, "hello\n", 6);
    client_close(&c);
    assert_int_equal(stats(f).refused, 1);
}

static void another_method_is_405_and_names_the_right_ones(void **state)
{
    fixture_t *f = *state;
    response_t r = ask(f, "DELETE /later HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_non_null(strstr(r.head, "\r\nAllow: GET, HEAD, POST\r\n"));
    assert_error(&r, 405, "method_not_allowed");
    r = ask(f, GET("/echo"));
    assert_non_null(strstr(r.head, "\r\nAllow: POST\r\n"));
    assert_error(&r, 405, "method_not_allowed");
}

static void head_is_get_without_a_body(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, "HEAD /whole HTTP/1.1\r\nHost: x\r\n\r\n" GET("/whole"));
    client_watch(&c);
    response_t r = client_response(&c, true);
    assert_int_equal(r.status, 200);
    assert_non_null(strstr(r.head, "\r\nContent-Length: 6\r\n"));
    r = client_response(&c, false);
    assert_body(&r, "hello\n", 6);
    client_close(&c);
}

static void the_stream_of_a_head_has_no_body_either(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, "HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n" GET("/whole"));
    client_watch(&c);
    UNTIL(f, f->gone == 1);
    response_t r = client_response(&c, true);
    assert_int_equal(r.status, 200);
    r = client_response(&c, false);
    assert_body(&r, "hello\n", 6);
    client_close(&c);
}

/* --- the server's life --- */

static void an_answer_may_come_later_from_a_timer(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, GET("/later"));
    client_watch(&c);
    UNTIL(f, f->handled == 1);
    assert_int_equal(stats(f).exchanges, 1);
    zloop_timer(f->loop, 5, 1, on_answer_time, f);
    response_t r = client_response(&c, false);
    assert_body(&r, "late", 4);
    assert_int_equal(stats(f).exchanges, 0);
    assert_int_equal(stats(f).buffered_bytes, 0);
    client_close(&c);
    assert_int_equal(f->gone, 0);
}

static void a_thousand_requests_leave_nothing_behind(void **state)
{
    fixture_t *f = *state;
    for (int i = 0; i < 1000; i++) {
        response_t r = ask(f, GET("/whole"));
        assert_body(&r, "hello\n", 6);
    }
    assert_int_equal(stats(f).requests, 1000);
    assert_int_equal(stats(f).exchanges, 0);
    assert_int_equal(stats(f).buffered_bytes, 0);
}

static void an_idle_server_does_not_run(void **state)
{
    fixture_t *f = *state;
    client_t idle = client_send_first(f, GET("/whole"));
    client_watch(&idle);
    response_t r = client_response(&idle, false);
    assert_body(&r, "hello\n", 6);
    client_t waiting = client_send_first(f, GET("/later") "sent ahead of time, and no request at all");
    UNTIL(f, f->handled == 1);
    client_t streaming = client_send_first(f, GET("/stream") "the same\r\n\r\n");
    UNTIL(f, f->handled == 2);
    client_send(&waiting, "more", 4);
    client_send(&streaming, "more", 4);
    run_loop(f, 5); /* what was begun comes to its end */

    uint64_t before = stats(f).runs;
    run_loop(f, 25);
    assert_int_equal(stats(f).runs, before);
    client_close(&idle);
    client_close(&waiting);
    client_close(&streaming);
    UNTIL(f, f->gone == 2);
}

static void a_closed_listener_lets_connections_go_on(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, GET("/later"));
    client_watch(&c);
    UNTIL(f, f->handled == 1);
    http_server_close_listener(f->server);
    http_server_close_listener(f->server);

    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(http_server_port(f->server))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(fd);

    http_respond(f->exchange, 200, &plain_text, 1, "still here", 10);
    response_t r = client_response(&c, false);
    assert_body(&r, "still here", 10);
    client_close(&c);
}

static void a_taken_port_is_named_with_the_reason(void **state)
{
    fixture_t *f = *state;
    http_server_t *second;
    wg_error_t error;
    char expected[128];
    http_server_options_t options = {.listen = {"127.0.0.1", http_server_port(f->server)},
                                     .max_connections = 1};
    assert_int_equal(http_server_new(&second, f->loop, &options, &error), WG_E_SYSTEM);
    assert_null(second);
    snprintf(expected, sizeof expected, "listen on http://127.0.0.1:%u: Address already in use",
             (unsigned)http_server_port(f->server));
    assert_string_equal(error.message, expected);
}

static void an_address_that_is_not_ours_is_named_with_the_reason(void **state)
{
    fixture_t *f = *state;
    static const struct {
        const char *host;
        const char *message;
    } rows[] = {
        {"192.0.2.1", "listen on http://192.0.2.1:80: Cannot assign requested address"},
        {"2001:db8::1", "listen on http://[2001:db8::1]:80: "},
        {"localhost", "listen on http://localhost:80: Name or service not known"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        http_server_t *server;
        wg_error_t error;
        http_server_options_t options = {.listen = {.port = 80}, .max_connections = 1};
        snprintf(options.listen.host, sizeof options.listen.host, "%s", rows[i].host);
        assert_int_equal(http_server_new(&server, f->loop, &options, &error), WG_E_SYSTEM);
        assert_memory_equal(error.message, rows[i].message, strlen(rows[i].message));
    }
}

static void an_ipv6_listener_leaves_the_ipv4_port_free(void **state)
{
    fixture_t *f = *state;
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool has_ipv6 = probe != -1 && bind(probe, (struct sockaddr *)&loopback, sizeof loopback) == 0;
    if (probe != -1)
        close(probe);
    if (!has_ipv6)
        skip();
    start_server(f, (http_server_options_t){.listen = {.host = "::"}});
    http_server_t *second;
    wg_error_t error;
    http_server_options_t options = {.listen = {"0.0.0.0", http_server_port(f->server)},
                                     .max_connections = 1};
    assert_int_equal(http_server_new(&second, f->loop, &options, &error), WG_OK);
    http_server_destroy(&second);

    client_t c = {.fixture = f, .fd = socket(AF_INET6, SOCK_STREAM, 0)};
    loopback.sin6_port = htons(http_server_port(f->server));
    assert_int_equal(connect(c.fd, (struct sockaddr *)&loopback, sizeof loopback), 0);
    client_watch(&c);
    client_send(&c, GET("/whole"), strlen(GET("/whole")));
    response_t r = client_response(&c, false);
    assert_body(&r, "hello\n", 6);
    client_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(a_request_gets_its_answer),
        WITH_SERVER(a_connection_serves_one_request_after_the_other),
        WITH_SERVER(requests_sent_ahead_are_answered_in_order),
        WITH_SERVER(close_and_http_1_0_are_honoured),
        WITH_SERVER(headers_are_found_in_any_case_and_counted),
        WITH_SERVER(an_error_is_json_and_says_when_to_retry),
        cmocka_unit_test(the_json_form_of_an_error),
        WITH_SERVER(a_line_break_cannot_make_a_header_of_its_own),
        WITH_SERVER(a_status_without_http_status_is_500),
        WITH_SERVER(an_unknown_path_is_404_and_the_connection_goes_on),
        WITH_SERVER(another_method_is_405_and_names_the_right_ones),
        WITH_SERVER(head_is_get_without_a_body),
        WITH_SERVER(the_stream_of_a_head_has_no_body_either),
        WITH_SERVER(an_answer_may_come_later_from_a_timer),
        WITH_SERVER(a_thousand_requests_leave_nothing_behind),
        WITH_SERVER(an_idle_server_does_not_run),
        WITH_SERVER(a_closed_listener_lets_connections_go_on),
        WITH_SERVER(a_taken_port_is_named_with_the_reason),
        WITH_SERVER(an_address_that_is_not_ours_is_named_with_the_reason),
        WITHOUT_SERVER(an_ipv6_listener_leaves_the_ipv4_port_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
