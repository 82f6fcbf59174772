/* Clients that leave: what the user hears of it, and that nothing is kept for them. */
#include "tests/unit/http_fixture.h"

#include <dirent.h>

/* --- what the user hears --- */

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

/* --- what is left behind --- */

static size_t open_descriptors(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* A connection that idles is older than those of the clients that leave, which is what libmicrohttpd looks at
 * to see who is due. */
static void assert_only_the_idle_one_stays(fixture_t *f, const char *request, bool begins, bool writes)
{
    client_t idle = client_send_first(f, GET("/whole"));
    client_watch(&idle);
    response_t r = client_response(&idle, false);
    assert_body(&r, "hello\n", 6);
    size_t before = open_descriptors();
    f->gone = 0;
    for (unsigned i = 0; i < 120; i++) {
        client_t c = open_stream(f, request);
        if (begins)
            http_stream_begin(f->exchange, 200, &plain_text, 1);
        if (writes) {
            http_stream_write(f->exchange, "a", 1);
            client_watch(&c);
            UNTIL(f, c.received.size > 0);
        }
        leave(&c, FIN);
        UNTIL(f, f->gone == i + 1);
    }
    run_loop(f, 5);
    assert_int_equal(stats(f).connections, 1);
    assert_int_equal(open_descriptors(), before);
    client_close(&idle);
    UNTIL(f, stats(f).connections == 0);
}

static void a_stream_that_was_left_frees_its_connection_beside_an_idle_one(void **state)
{
    assert_only_the_idle_one_stays(*state, GET("/stream"), false, true);
    assert_only_the_idle_one_stays(*state, OLD_GET("/stream"), false, true);
}

static void a_stream_that_was_left_before_its_head_frees_its_connection(void **state)
{
    assert_only_the_idle_one_stays(*state, GET("/later"), false, false);
    assert_only_the_idle_one_stays(*state, GET("/later"), true, false);
    assert_only_the_idle_one_stays(*state, GET("/stream"), false, false);
}

static void assert_cut_leaves_only_the_idle_one(fixture_t *f, const char *request, bool begins)
{
    client_t idle = client_send_first(f, GET("/whole"));
    UNTIL(f, stats(f).connections == 1);
    client_t c = open_stream(f, request);
    if (begins)
        http_stream_begin(f->exchange, 200, &plain_text, 1);
    http_stream_cut(f->exchange);
    run_loop(f, 5);
    assert_int_equal(stats(f).connections, 1);
    client_close(&c);
    client_close(&idle);
    UNTIL(f, stats(f).connections == 0);
}

static void a_cut_frees_the_connection_beside_an_idle_one(void **state)
{
    assert_cut_leaves_only_the_idle_one(*state, GET("/later"), false);
    assert_cut_leaves_only_the_idle_one(*state, GET("/later"), true);
    assert_cut_leaves_only_the_idle_one(*state, GET("/stream"), false);
    assert_cut_leaves_only_the_idle_one(*state, OLD_GET("/stream"), false);
}

/* The rest and the end arrive in one event. */
static void assert_half_a_request_ends(fixture_t *f, const char *beginning, const char *rest)
{
    client_t c = client_send_first(f, beginning);
    UNTIL(f, stats(f).connections == 1);
    run_loop(f, 2);
    client_send(&c, rest, strlen(rest));
    shutdown(c.fd, SHUT_WR);
    client_watch(&c);
    UNTIL(f, c.closed);
    UNTIL(f, stats(f).connections == 0);
    client_close(&c);
}

static void a_client_that_leaves_in_the_middle_of_its_request_is_let_go(void **state)
{
    fixture_t *f = *state;
    assert_half_a_request_ends(f, "G", "ET /who");
    assert_half_a_request_ends(f, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", "half");
    assert_half_a_request_ends(f, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n", "half");
    assert_int_equal(f->handled, 0);
}

static void a_half_closed_client_is_let_go_after_its_answers(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, "G");
    UNTIL(f, stats(f).connections == 1);
    run_loop(f, 2);
    client_send(&c, "ET /whole HTTP/1.1\r\nHost: x\r\n\r\n" GET("/whole") GET("/error"),
                strlen("ET /whole HTTP/1.1\r\nHost: x\r\n\r\n" GET("/whole") GET("/error")));
    shutdown(c.fd, SHUT_WR);
    client_watch(&c);
    for (int i = 0; i < 2; i++) {
        response_t r = client_response(&c, false);
        assert_body(&r, "hello\n", 6);
    }
    response_t r = client_response(&c, false);
    assert_error(&r, 429, "overloaded");
    UNTIL(f, c.closed);
    assert_int_equal(c.error, 0);
    UNTIL(f, stats(f).connections == 0);
    client_close(&c);
}

/* More than a socket takes at once, so that the end of the client's side is long known. */
static void a_half_closed_client_gets_the_whole_of_a_long_answer(void **state)
{
    fixture_t *f = *state;
    size_t size = (size_t)16 * 1024 * 1024;
    char *body = calloc(1, size);
    client_t c = open_stream(f, GET("/later"));
    http_respond(f->exchange, 200, &plain_text, 1, body, size);
    shutdown(c.fd, SHUT_WR);
    run_loop(f, 5);
    client_watch(&c);
    response_t r = client_response(&c, false);
    assert_body(&r, body, size);
    UNTIL(f, stats(f).connections == 0);
    client_close(&c);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(a_client_that_leaves_before_the_answer_is_reported_once),
        WITH_SERVER(a_client_that_leaves_a_stream_is_reported_once),
        WITH_SERVER(a_client_that_leaves_with_its_request_is_reported),
        WITH_SERVER(a_client_that_leaves_right_after_connecting_is_reported),
        WITH_SERVER(a_half_closed_client_still_gets_an_answer_given_at_once),
        WITH_SERVER(after_the_answer_was_given_nothing_is_reported),
        WITH_SERVER(what_on_gone_answers_goes_nowhere),
        WITH_SERVER(a_stream_that_was_left_frees_its_connection_beside_an_idle_one),
        WITH_SERVER(a_stream_that_was_left_before_its_head_frees_its_connection),
        WITH_SERVER(a_cut_frees_the_connection_beside_an_idle_one),
        WITH_SERVER(a_client_that_leaves_in_the_middle_of_its_request_is_let_go),
        WITH_SERVER(a_half_closed_client_is_let_go_after_its_answers),
        WITH_SERVER(a_half_closed_client_gets_the_whole_of_a_long_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
