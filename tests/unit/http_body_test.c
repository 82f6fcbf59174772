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

static void headers_beyond_the_pool_are_431(void **state)
{
    fixture_t *f = *state;
    text_buffer_t request = {0};
    text_buffer_text(&request, "GET /whole HTTP/1.1\r\nHost: x\r\n");
    while (request.size < 20000)
        text_buffer_text(&request, "X-Filler: 0123456789012345678901234567890123456789\r\n");
    client_t c = client_send_first(f, "");
    client_watch(&c);
    client_send(&c, request.data, request.size);
    UNTIL(f, c.closed);
    assert_memory_equal(c.received.data, "HTTP/1.1 431", 12);
    client_close(&c);
    text_buffer_free(&request);
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
        WITH_SERVER(expecting_100_continue_is_answered),
        WITH_SERVER(headers_beyond_the_pool_are_431),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
