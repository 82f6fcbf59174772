/* The server's limits: connections, and the time that a client may take. */
#include "tests/unit/http_fixture.h"

/* --- time --- */

static void a_request_that_does_not_arrive_is_given_up(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.idle_timeout_ms = 20});
    static const char *const beginnings[] = {
        "GET /who", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"};
    for (size_t i = 0; i < 2; i++) {
        client_t c = client_send_first(f, beginnings[i]);
        client_watch(&c);
        UNTIL(f, c.closed);
        client_close(&c);
    }
    UNTIL(f, stats(f).connections == 0);
}

static void an_answer_in_the_making_is_not_idle(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.idle_timeout_ms = 20});
    client_t c = client_send_first(f, GET("/later"));
    client_watch(&c);
    UNTIL(f, f->handled == 1);
    zloop_timer(f->loop, 60, 1, on_answer_time, f);
    response_t r = client_response(&c, false);
    assert_body(&r, "late", 4);
    client_close(&c);
}

/* --- connections --- */

#define PLACES 2u
#define SURPLUS 64u
#define BUSY "{\"error\":{\"message\":\"2 connections are open, the limit; retry later\","
#define HALF "GET /who"
#define REST "le HTTP/1.1\r\nHost: x\r\n\r\n"

static void fill_places(fixture_t *f, client_t *clients)
{
    start_server(f, (http_server_options_t){.max_connections = PLACES});
    for (unsigned i = 0; i < PLACES; i++)
        clients[i] = open_stream(f, GET("/later"));
}

static void close_all(client_t *clients, size_t count)
{
    for (size_t i = 0; i < count; i++)
        client_close(&clients[i]);
}

static void assert_busy(fixture_t *f, const char *request)
{
    client_t c = client_send_first(f, request);
    client_watch(&c);
    response_t r = client_response(&c, false);
    assert_non_null(strstr(r.head, "\r\nConnection: close\r\n"));
    assert_non_null(strstr(r.head, "\r\nRetry-After: 1\r\n"));
    assert_true(r.body.size > strlen(BUSY));
    assert_memory_equal(r.body.data, BUSY, strlen(BUSY));
    assert_error(&r, 503, "overloaded");
    UNTIL(f, c.closed);
    assert_int_equal(c.error, 0);
    client_close(&c);
}

static void at_the_limit_the_next_connection_hears_so_and_is_closed(void **state)
{
    fixture_t *f = *state;
    client_t places[PLACES];
    fill_places(f, places);
    assert_busy(f, GET("/whole"));
    assert_busy(f, GET("/nowhere"));
    assert_busy(f, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
    assert_busy(f, "POST /probe HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    UNTIL(f, stats(f).connections == PLACES);
    assert_int_equal(stats(f).requests, PLACES);
    assert_int_equal(stats(f).refused, 4);
    close_all(places, PLACES);
}

static void at_the_limit_a_probe_is_served_and_its_connection_closed(void **state)
{
    fixture_t *f = *state;
    client_t places[PLACES];
    fill_places(f, places);
    for (int is_head = 0; is_head < 2; is_head++) {
        client_t c =
            client_send_first(f, is_head ? "HEAD /probe HTTP/1.1\r\nHost: x\r\n\r\n" : GET("/probe"));
        client_watch(&c);
        response_t r = client_response(&c, is_head);
        assert_int_equal(r.status, 200);
        assert_non_null(strstr(r.head, "\r\nConnection: close\r\n"));
        text_buffer_free(&r.body);
        UNTIL(f, c.closed);
        assert_int_equal(c.error, 0);
        client_close(&c);
    }
    UNTIL(f, stats(f).connections == PLACES);
    close_all(places, PLACES);
}

static void a_probe_below_the_limit_keeps_its_connection(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.max_connections = 1});
    client_t c = client_send_first(f, GET("/probe") GET("/probe"));
    client_watch(&c);
    for (int i = 0; i < 2; i++) {
        response_t r = client_response(&c, false);
        assert_null(strstr(r.head, "\r\nConnection: close\r\n"));
        assert_body(&r, "hello\n", 6);
    }
    client_close(&c);
}

static void a_surplus_connection_takes_a_place_that_has_become_free(void **state)
{
    fixture_t *f = *state;
    client_t places[PLACES];
    fill_places(f, places);
    client_t c = client_send_first(f, HALF);
    UNTIL(f, stats(f).connections == PLACES + 1);
    client_close(&places[0]);
    UNTIL(f, stats(f).connections == PLACES);
    client_watch(&c);
    client_send(&c, REST, strlen(REST));
    for (int i = 0; i < 2; i++) {
        response_t r = client_response(&c, false);
        assert_body(&r, "hello\n", 6);
        client_send(&c, GET("/whole"), strlen(GET("/whole")));
    }
    assert_busy(f, GET("/whole"));
    client_close(&c);
    client_close(&places[1]);
}

static void beyond_the_surplus_a_connection_waits_for_a_free_place(void **state)
{
    fixture_t *f = *state;
    client_t places[PLACES];
    client_t surplus[SURPLUS];
    fill_places(f, places);
    for (unsigned i = 0; i < SURPLUS; i++)
        surplus[i] = client_send_first(f, HALF);
    UNTIL(f, stats(f).connections == PLACES + SURPLUS);
    client_t next = client_send_first(f, GET("/probe"));
    client_watch(&next);
    run_loop(f, 5);
    assert_int_equal(stats(f).connections, PLACES + SURPLUS);
    assert_int_equal(next.received.size, 0);
    client_close(&places[0]);
    response_t r = client_response(&next, false);
    assert_body(&r, "hello\n", 6);
    client_close(&next);
    client_close(&places[1]);
    close_all(surplus, SURPLUS);
    UNTIL(f, stats(f).connections == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITHOUT_SERVER(a_request_that_does_not_arrive_is_given_up),
        WITHOUT_SERVER(an_answer_in_the_making_is_not_idle),
        WITHOUT_SERVER(at_the_limit_the_next_connection_hears_so_and_is_closed),
        WITHOUT_SERVER(at_the_limit_a_probe_is_served_and_its_connection_closed),
        WITHOUT_SERVER(a_probe_below_the_limit_keeps_its_connection),
        WITHOUT_SERVER(a_surplus_connection_takes_a_place_that_has_become_free),
        WITHOUT_SERVER(beyond_the_surplus_a_connection_waits_for_a_free_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
