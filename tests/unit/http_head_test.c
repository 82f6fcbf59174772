/* The line and the headers of a request: how many, how large, and what must not be in them (B113, B115). How
 * slow: http_slow_test.c. */
#include "tests/unit/http_fixture.h"

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

/* --- number and size --- */

static void add_headers(text_buffer_t *text, unsigned count)
{
    text_buffer_text(text, "GET /whole HTTP/1.1\r\nHost: x\r\n");
    for (unsigned i = 1; i < count; i++)
        text_buffer_format(text, "A: %u\r\n", i);
}

static void as_many_headers_as_the_limit_are_served(void **state)
{
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){.max_headers = 50});
    text_buffer_t request = {0};
    add_headers(&request, 50);
    text_buffer_text(&request, "\r\n");
    client_t c = client_send_first(f, "");
    client_watch(&c);
    client_send(&c, request.data, request.size);
    response_t r = client_response(&c, false);
    assert_body(&r, "hello\n", 6);
    client_close(&c);
    request.size -= 2;
    text_buffer_text(&request, "B: 1\r\n\r\n");
    assert_refused(f, request.data, request.size, 431, "header_too_large");
    text_buffer_free(&request);
}

#define HEAD_LIMIT 2048u
#define HEADER_LIMIT 40u

/* With all the headers that it may have. */
static void add_head(text_buffer_t *text, size_t size)
{
    add_headers(text, HEADER_LIMIT - 1);
    text_buffer_text(text, "Filler: ");
    while (text->size < size - 4)
        text_buffer_text(text, "f");
    text_buffer_text(text, "\r\n\r\n");
}

static void a_head_of_the_full_size_is_served_again_and_again(void **state)
{
    fixture_t *f = *state;
    text_buffer_t request = {0};
    start_server(f, (http_server_options_t){.max_header_bytes = HEAD_LIMIT, .max_headers = HEADER_LIMIT});
    add_head(&request, HEAD_LIMIT);
    client_t c = client_send_first(f, "");
    client_watch(&c);
    for (int i = 0; i < 3; i++) {
        client_send(&c, request.data, request.size);
        response_t r = client_response(&c, false);
        assert_body(&r, "hello\n", 6);
    }
    client_close(&c);
    text_buffer_clear(&request);
    add_head(&request, HEAD_LIMIT + 1);
    assert_refused(f, request.data, request.size, 431, "header_too_large");
    text_buffer_free(&request);
}

#define FLOOD_BYTES ((size_t)10 * 1024 * 1024)

/* Sends as much as is taken, until the server closes. */
static void flood(fixture_t *f, const char *data, size_t size, const char *wanted)
{
    client_t c = client_send_first(f, "");
    client_watch(&c);
    for (size_t at = 0; at < size && !c.closed;) {
        ssize_t sent = send(c.fd, data + at, size - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0)
            at += (size_t)sent;
        else if (errno != EAGAIN)
            break;
        run_loop(f, 0);
    }
    UNTIL(f, c.closed);
    assert_in_range(c.received.size, strlen(wanted), 4096);
    assert_memory_equal(c.received.data, wanted, strlen(wanted));
    client_close(&c);
}

static size_t resident_bytes(void)
{
    char text[128] = "";
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    const char *resident = strchr(text, ' '); /* the second number */
    assert_non_null(resident);
    return strtoul(resident, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/* libmicrohttpd answers by itself, in words of its own. */
static void a_flood_is_refused_and_memory_stays_flat(void **state)
{
    static const struct {
        const char *begin;
        const char *repeated;
        const char *wanted;
    } rows[] = {
        {"GET /whole HTTP/1.1\r\nHost: x\r\nA: ", "a", "HTTP/1.1 431 "},
        {"GET /whole HTTP/1.1\r\nHost: x\r\n", "A: 1\r\n", "HTTP/1.1 431 "},
        {"GET /", "a", "HTTP/1.1 414 "},
    };
    fixture_t *f = *state;
    start_server(f, (http_server_options_t){0});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        text_buffer_t data = {0};
        text_buffer_reserve(&data, FLOOD_BYTES + 64);
        text_buffer_text(&data, rows[i].begin);
        while (data.size < FLOOD_BYTES)
            text_buffer_text(&data, rows[i].repeated);
        flood(f, data.data, data.size, rows[i].wanted);
        size_t before = resident_bytes();
        for (int k = 0; k < 20; k++)
            flood(f, data.data, data.size, rows[i].wanted);
        assert_in_range(resident_bytes(), 0, before + (size_t)4 * 1024 * 1024);
        text_buffer_free(&data);
    }
    UNTIL(f, stats(f).connections == 0);
    assert_int_equal(stats(f).requests, 0);
}

static void ten_thousand_headers_are_refused(void **state)
{
    fixture_t *f = *state;
    text_buffer_t request = {0};
    start_server(f, (http_server_options_t){0});
    add_headers(&request, 10000);
    text_buffer_text(&request, "\r\n");
    flood(f, request.data, request.size, "HTTP/1.1 431 ");
    assert_int_equal(stats(f).requests, 0);
    text_buffer_free(&request);
}

/* --- what must not be in it --- */

typedef struct {
    const char *text;
    size_t size;
} row_t;

#define ROW(text)                                                                                            \
    {                                                                                                        \
        (text), sizeof(text) - 1                                                                             \
    }
#define LINE "GET /whole HTTP/1.1\r\n"
#define HOST "Host: x\r\n"

static void a_nul_byte_is_refused_wherever_it_stands(void **state)
{
    fixture_t *f = *state;
    static const row_t rows[] = {
        ROW(LINE HOST "A: b\0c\r\n\r\n"),
        ROW(LINE HOST "A: b\0\0c\r\n\r\n"),
        ROW(LINE HOST "A: b\0\r\n\r\n"),
        ROW(LINE HOST "A: b\0\0\r\n\r\n"),
        ROW(LINE HOST "A:\0\r\n\r\n"),
        ROW(LINE HOST "A: b\0\r\nC: d\r\n\r\n"),
        ROW(LINE "\0" HOST "\r\n"),
        ROW(LINE HOST "\0A: c\r\nB: d\r\n\r\n"),
        ROW(LINE HOST "Content-Length: 0\0 1\r\n\r\n"),
        ROW("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\0000\r\n\r\nbbbbbbbbbb"),
        ROW("GET /who\0le HTTP/1.1\r\n" HOST "\r\n"),
        ROW("GET /whole\0 HTTP/1.1\r\n" HOST "\r\n"),
        ROW("GET /whole?a\0=b HTTP/1.1\r\n" HOST "\r\n"),
        ROW("GET /whole%00 HTTP/1.1\r\n" HOST "\r\n"),
        ROW("GET\0 /whole HTTP/1.1\r\n" HOST "\r\n"),
        ROW("G\0T /whole HTTP/1.1\r\n" HOST "\r\n"),
    };
    start_server(f, (http_server_options_t){0});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_refused(f, rows[i].text, rows[i].size, 400, "invalid_request");
    assert_int_equal(stats(f).requests, 0);
    assert_int_equal(stats(f).refused, sizeof rows / sizeof *rows);
}

/* In words of libmicrohttpd's own. */
static void what_libmicrohttpd_cannot_read_is_400(void **state)
{
    fixture_t *f = *state;
    static const row_t rows[] = {
        ROW(LINE HOST "A\0B: c\r\n\r\n"),
        ROW(LINE HOST "A\0: c\r\n\r\n"),
        ROW(LINE HOST "no colon\r\n\r\n"),
        ROW("GET /whole HTTP/1.1\0\r\n" HOST "\r\n"),
        ROW("GET /whole HTTP/1.\0001\r\n" HOST "\r\n"),
        ROW("\0GET /whole HTTP/1.1\r\n" HOST "\r\n"),
        ROW("GET /whole\r\n" HOST "\r\n"),
    };
    start_server(f, (http_server_options_t){0});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        flood(f, rows[i].text, rows[i].size, "HTTP/1.1 400 ");
    assert_int_equal(stats(f).requests, 0);
}

static void a_line_that_is_not_one_line_of_http_is_refused(void **state)
{
    fixture_t *f = *state;
    static const row_t rows[] = {
        ROW(LINE HOST "A: b\r\n c\r\n\r\n"),
        ROW(LINE HOST "A: b\r\n\tc\r\nD: e\r\n\r\n"),
        ROW(LINE HOST "A: b\n\r\n"),
        ROW(LINE HOST "A: b\r\n\n"),
        ROW("GET /whole HTTP/1.1\n" HOST "\r\n"),
        ROW("GET  /whole HTTP/1.1\r\n" HOST "\r\n"),
        ROW(LINE HOST "A B: c\r\n\r\n"),
        ROW(LINE HOST ": c\r\n\r\n"),
    };
    start_server(f, (http_server_options_t){0});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_refused(f, rows[i].text, rows[i].size, 400, "invalid_request");
    assert_int_equal(stats(f).requests, 0);
}

static void what_http_allows_is_served(void **state)
{
    fixture_t *f = *state;
    static const row_t rows[] = {
        ROW(LINE HOST "\r\n"),
        ROW("\r\n" LINE HOST "\r\n"),
        ROW(LINE "Host:x\r\nA:\r\nB: \r\nC: \t d e \t\r\n\r\n"),
        ROW(LINE HOST "Cookie: a=b; c=d\r\nCookie: e\r\n\r\n"),
        ROW("GET /whole?a=b%20c&d&=&e+f HTTP/1.1\r\n" HOST "\r\n"),
        ROW("GET /who%6ce HTTP/1.1\r\n" HOST "\r\n"),
        ROW("GET /whole HTTP/1.0\r\n\r\n"),
        ROW(LINE HOST "A: \xc3\xa4\xff\x01\r\n\r\n"),
    };
    start_server(f, (http_server_options_t){0});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        client_t c = client_send_first(f, "");
        client_watch(&c);
        client_send(&c, rows[i].text, rows[i].size);
        response_t r = client_response(&c, false);
        assert_body(&r, "hello\n", 6);
        client_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITHOUT_SERVER(as_many_headers_as_the_limit_are_served),
        WITHOUT_SERVER(a_head_of_the_full_size_is_served_again_and_again),
        WITHOUT_SERVER(a_flood_is_refused_and_memory_stays_flat),
        WITHOUT_SERVER(ten_thousand_headers_are_refused),
        WITHOUT_SERVER(a_nul_byte_is_refused_wherever_it_stands),
        WITHOUT_SERVER(what_libmicrohttpd_cannot_read_is_400),
        WITHOUT_SERVER(a_line_that_is_not_one_line_of_http_is_refused),
        WITHOUT_SERVER(what_http_allows_is_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
