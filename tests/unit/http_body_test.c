/* The server's request bodies, and the requests that it refuses before any handler. */
#include "tests/unit/http_fixture.h"

static void post(text_buffer_t *out, const char *framing, size_t size)
{
    text_buffer_format(out, "POST /echo HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", framing);
    for (size_t i = 0; i < size; i++)
        text_buffer_bytes(out, &"0123456789"[i % 10], 1);
}

static void a_body_of_exactly_the_limit_is_whole(void **state)
{
    fixture_t *f = *state;
    text_buffer_t request = {0};
    post(&request, "Content-Length: 10000", BODY_LIMIT);
    client_t c = client_send_first(f, "");
    client_watch(&c);
    client_send(&c, request.data, request.size);
    response_t r = client_response(&c, false);
    assert_body(&r, request.data + request.size - BODY_LIMIT, BODY_LIMIT);
    client_close(&c);
    text_buffer_free(&request);
}

static void send_chunk(client_t *c, size_t size)
{
    text_buffer_t chunk = {0};
    text_buffer_format(&chunk, "%zx\r\n", size);
    for (size_t i = 0; i < size; i++)
        text_buffer_bytes(&chunk, "c", 1);
    text_buffer_text(&chunk, "\r\n");
    client_send(c, chunk.data, chunk.size);
    text_buffer_free(&chunk);
}

#define CHUNKED_POST "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

static void a_chunked_body_is_whole(void **state)
{
    fixture_t *f = *state;
    char expected[1008];
    memset(expected, 'c', sizeof expected);
    client_t c = client_send_first(f, CHUNKED_POST);
    client_watch(&c);
    send_chunk(&c, 1);
    send_chunk(&c, 1000);
    send_chunk(&c, 7);
    send_chunk(&c, 0);
    response_t r = client_response(&c, false);
    assert_body(&r, expected, sizeof expected);
    client_close(&c);
}

static void a_length_over_the_limit_is_413_before_any_body(void **state)
{
    fixture_t *f = *state;
    static const char *const expectations[] = {"", "Expect: 100-continue\r\n"};
    for (size_t i = 0; i < 2; i++) {
        char request[128];
        snprintf(request, sizeof request, "POST /echo HTTP/1.1\r\nHost: x\r\n%sContent-Length: 10001\r\n\r\n",
                 expectations[i]);
        client_t c = client_send_first(f, request);
        client_watch(&c);
        UNTIL(f, c.closed);
        assert_int_equal(c.error, 0);
        response_t r = parse(&c, false);
        assert_error(&r, 413, "body_too_large");
        client_close(&c);
    }
    assert_int_equal(stats(f).refused, 2);
}

static void a_body_sent_in_spite_of_413_does_not_destroy_the_answer(void **state)
{
    fixture_t *f = *state;
    char block[16384] = {0};
    int error;
    socklen_t error_size = sizeof error;
    client_t c = client_send_first(f, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n");
    for (size_t i = 0; i < 64; i++) {
        client_send(&c, block, sizeof block);
        run_loop(f, 0);
    }
    UNTIL(f, stats(f).connections == 0);
    assert_int_equal(getsockopt(c.fd, SOL_SOCKET, SO_ERROR, &error, &error_size), 0);
    assert_int_equal(error, 0);
    client_watch(&c);
    response_t r = client_response(&c, false);
    assert_error(&r, 413, "body_too_large");
    client_close(&c);
}

static void a_chunked_body_is_413_at_the_limit(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, CHUNKED_POST);
    client_watch(&c);
    send_chunk(&c, 6000);
    send_chunk(&c, 4000);
    send_chunk(&c, 1);
    UNTIL(f, c.closed);
    assert_int_equal(c.error, 0);
    response_t r = parse(&c, false);
    assert_error(&r, 413, "body_too_large");
    client_close(&c);
}

static void a_request_whose_end_is_ambiguous_is_400_and_closes(void **state)
{
    fixture_t *f = *state;
    static const char *const framings[] = {
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5\r\ncontent-length: 6",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity",
        "Content-Length : 5",
    };
    for (size_t i = 0; i < sizeof framings / sizeof *framings; i++) {
        text_buffer_t request = {0};
        post(&request, framings[i], 5);
        client_t c = client_send_first(f, "");
        client_watch(&c);
        client_send(&c, request.data, request.size);
        UNTIL(f, c.closed);
        assert_int_equal(c.error, 0);
        response_t r = parse(&c, false);
        assert_error(&r, 400, "invalid_request");
        client_close(&c);
        text_buffer_free(&request);
    }
    assert_int_equal(stats(f).requests, 0);
}

static void the_limit_is_the_configured_one(void **state)
{
    fixture_t *f = *state;
    http_server_destroy(&f->server);
    start_server(f, (http_server_options_t){.max_body_bytes = 5});
    static const struct {
        const char *framing;
        size_t size;
        int status;
    } rows[] = {{"Content-Length: 5", 5, 200}, {"Content-Length: 6", 0, 413}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        text_buffer_t request = {0};
        post(&request, rows[i].framing, rows[i].size);
        client_t c = client_send_first(f, "");
        client_watch(&c);
        client_send(&c, request.data, request.size);
        response_t r = client_response(&c, false);
        assert_int_equal(r.status, rows[i].status);
        text_buffer_free(&r.body);
        client_close(&c);
        text_buffer_free(&request);
    }
}

/* libmicrohttpd says so by itself, in words of its own. */
static void a_length_that_is_no_number_is_400_and_closes(void **state)
{
    fixture_t *f = *state;
    static const char *const lengths[] = {"five", "-1", "+5", "5, 5", "5 ", "0x5", "5;", ""};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char framing[64];
        text_buffer_t request = {0};
        snprintf(framing, sizeof framing, "Content-Length: %s", lengths[i]);
        post(&request, framing, 5);
        client_t c = client_send_first(f, "");
        client_watch(&c);
        client_send(&c, request.data, request.size);
        UNTIL(f, c.closed);
        assert_true(c.received.size > 12);
        assert_memory_equal(c.received.data, "HTTP/1.1 400", 12);
        client_close(&c);
        text_buffer_free(&request);
    }
    assert_int_equal(stats(f).requests, 0);
}

static void a_length_near_or_beyond_64_bits_is_413(void **state)
{
    fixture_t *f = *state;
    static const char *const lengths[] = {"18446744073709551615", "18446744073709551616",
                                          "99999999999999999999999999"};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char request[128];
        snprintf(request, sizeof request, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %s\r\n\r\n",
                 lengths[i]);
        client_t c = client_send_first(f, request);
        client_watch(&c);
        UNTIL(f, c.closed);
        assert_true(c.received.size > 12);
        assert_memory_equal(c.received.data, "HTTP/1.1 413", 12);
        client_close(&c);
    }
    assert_int_equal(stats(f).requests, 0);
}

/* The rest is no request. */
static void more_than_the_length_says_is_400_after_the_answer(void **state)
{
    fixture_t *f = *state;
    client_t c =
        client_send_first(f, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcde f\r\n\r\n");
    client_watch(&c);
    response_t r = client_response(&c, false);
    assert_body(&r, "abc", 3);
    UNTIL(f, c.closed);
    if (c.received.size > 0)
        assert_memory_equal(c.received.data, "HTTP/1.1 400", 12);
    assert_int_equal(stats(f).requests, 1);
    client_close(&c);
}

static void less_than_the_length_says_reaches_no_handler(void **state)
{
    fixture_t *f = *state;
    for (how_t how = FIN; how < HOWS; how++) {
        client_t c = client_send_first(f, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf");
        UNTIL(f, stats(f).connections == 1);
        leave(&c, how);
        UNTIL(f, stats(f).connections == 0);
        if (how == HALF_CLOSE)
            client_close(&c);
    }
    assert_int_equal(stats(f).requests, 0);
}

static void expecting_100_continue_is_answered(void **state)
{
    fixture_t *f = *state;
    client_t c = client_send_first(f, "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                                      "Content-Length: 4\r\n\r\n");
    client_watch(&c);
    response_t r = client_response(&c, true);
    assert_int_equal(r.status, 100);
    client_send(&c, "body", 4);
    r = client_response(&c, false);
    assert_body(&r, "body", 4);
    client_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(a_body_of_exactly_the_limit_is_whole),
        WITH_SERVER(a_chunked_body_is_whole),
        WITH_SERVER(a_length_over_the_limit_is_413_before_any_body),
        WITH_SERVER(a_body_sent_in_spite_of_413_does_not_destroy_the_answer),
        WITH_SERVER(a_chunked_body_is_413_at_the_limit),
        WITH_SERVER(a_request_whose_end_is_ambiguous_is_400_and_closes),
        WITH_SERVER(the_limit_is_the_configured_one),
        WITH_SERVER(a_length_that_is_no_number_is_400_and_closes),
        WITH_SERVER(a_length_near_or_beyond_64_bits_is_413),
        WITH_SERVER(more_than_the_length_says_is_400_after_the_answer),
        WITH_SERVER(less_than_the_length_says_reaches_no_handler),
        WITH_SERVER(expecting_100_continue_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
