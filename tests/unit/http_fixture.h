/* http_fixture.h: an HTTP server and its clients in one loop and one thread, for the tests of http_server. A
 * test lets the loop turn until what it waits for has happened: UNTIL(f, f->gone == 1). */
#ifndef WG_TESTS_UNIT_HTTP_FIXTURE_H
#define WG_TESTS_UNIT_HTTP_FIXTURE_H

#include "common/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define BODY_LIMIT 10000u
#define STUCK_SECONDS 120 /* then SIGALRM ends a test that waits for what does not come */

typedef struct {
    zloop_t *loop;
    http_server_t *server;
    http_exchange_t *exchange; /* the last one that its handler kept */
    unsigned handled;
    unsigned gone;
} fixture_t;

typedef struct {
    fixture_t *fixture;
    int fd;
    text_buffer_t received;
    bool closed; /* cleanly or not */
    int error;   /* ECONNRESET, ... */
} client_t;

/* --- the loop --- */

static inline int on_time(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    unsigned *calls = context;
    return ++*calls == 2 ? -1 : 0;
}

/* Twice the timer, for zloop calls timers first, and leaves without looking at the sockets when one says
 * stop. So there is at least one whole turn, whatever the time. */
static inline void run_loop(fixture_t *f, size_t half_ms)
{
    unsigned calls = 0;
    zloop_timer(f->loop, half_ms, 2, on_time, &calls);
    zloop_start(f->loop);
}

#define UNTIL(f, condition)                                                                                  \
    do {                                                                                                     \
        while (!(condition))                                                                                 \
            run_loop(f, 1);                                                                                  \
    } while (0)

static inline http_server_stats_t stats(const fixture_t *f)
{
    http_server_stats_t out;
    http_server_stats(f->server, &out);
    return out;
}

/* --- the server's side --- */

static const http_header_t plain_text = {"Content-Type", "text/plain"};

static inline void on_gone(void *context, http_exchange_t *exchange)
{
    fixture_t *f = context;
    assert_ptr_equal(http_exchange_user(exchange), f);
    if (f->exchange == exchange)
        f->exchange = NULL;
    f->gone++;
}

static inline void keep(fixture_t *f, http_exchange_t *exchange)
{
    http_exchange_watch(exchange, on_gone, f);
    f->exchange = exchange;
    f->handled++;
}

static inline void answer_whole(void *context, http_exchange_t *exchange)
{
    (void)context;
    http_respond(exchange, 200, &plain_text, 1, "hello\n", 6);
}

static inline void answer_echo(void *context, http_exchange_t *exchange)
{
    (void)context;
    size_t size;
    const char *body = http_body(exchange, &size);
    http_respond(exchange, 200, &plain_text, 1, body, size);
}

static inline void answer_error(void *context, http_exchange_t *exchange)
{
    (void)context;
    wg_error_t error;
    WG_FAIL(&error, OVERLOADED, (size_t)7);
    http_respond_error(exchange, &error, NULL, 0);
}

static inline void answer_later(void *context, http_exchange_t *exchange)
{
    keep(context, exchange);
}

static inline int on_answer_time(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    fixture_t *f = context;
    http_respond(f->exchange, 200, &plain_text, 1, "late", 4);
    return 0;
}

static inline void answer_stream(void *context, http_exchange_t *exchange)
{
    keep(context, exchange);
    http_stream_begin(exchange, 200, &plain_text, 1);
}

static const http_route_t routes[] = {
    {"GET", "/whole", answer_whole, false},    {"POST", "/echo", answer_echo, false},
    {"GET", "/error", answer_error, false},    {"GET", "/later", answer_later, false},
    {"POST", "/later", answer_later, false},   {"GET", "/stream", answer_stream, false},
    {"POST", "/stream", answer_stream, false}, {"GET", "/probe", answer_whole, true},
};

static inline void start_server(fixture_t *f, http_server_options_t options)
{
    wg_error_t error;
    if (options.listen.host[0] == '\0')
        snprintf(options.listen.host, sizeof options.listen.host, "127.0.0.1");
    if (options.max_connections == 0)
        options.max_connections = 100;
    if (options.max_body_bytes == 0)
        options.max_body_bytes = BODY_LIMIT;
    if (options.max_header_bytes == 0)
        options.max_header_bytes = 8192;
    if (options.max_headers == 0)
        options.max_headers = 100;
    options.routes = routes;
    options.route_count = sizeof routes / sizeof *routes;
    options.context = f;
    assert_int_equal(http_server_new(&f->server, f->loop, &options, &error), WG_OK);
}

static inline int setup_without_server(void **state)
{
    fixture_t *f = calloc(1, sizeof *f);
    assert_non_null(f);
    alarm(STUCK_SECONDS);
    f->loop = zloop_new();
    *state = f;
    return 0;
}

static inline int setup(void **state)
{
    setup_without_server(state);
    start_server(*state, (http_server_options_t){0});
    return 0;
}

static inline int teardown(void **state)
{
    fixture_t *f = *state;
    http_server_destroy(&f->server);
    zloop_destroy(&f->loop);
    free(f);
    return 0;
}

/* --- the client's side --- */

static inline int on_readable(zloop_t *loop, zmq_pollitem_t *item, void *context)
{
    client_t *c = context;
    char *room = text_buffer_reserve(&c->received, 65536);
    ssize_t size = recv(c->fd, room, 65536, MSG_DONTWAIT);
    if (size > 0) {
        c->received.size += (size_t)size;
        return 0;
    }
    if (size < 0 && errno == EAGAIN)
        return 0;
    c->closed = true;
    c->error = size < 0 ? errno : 0;
    zloop_poller_end(loop, item);
    return 0;
}

static inline void client_watch(client_t *c)
{
    zmq_pollitem_t item = {.fd = c->fd, .events = ZMQ_POLLIN};
    zloop_poller(c->fixture->loop, &item, on_readable, c);
    /* Else zloop drops a reset socket before what came ahead of the reset was read. */
    zloop_poller_set_tolerant(c->fixture->loop, &item);
}

static inline void client_unwatch(client_t *c)
{
    zmq_pollitem_t item = {.fd = c->fd, .events = ZMQ_POLLIN};
    zloop_poller_end(c->fixture->loop, &item);
}

/* Connects, which needs no turn of the loop, and sends the text. */
static inline client_t client_send_first(fixture_t *f, const char *text)
{
    client_t c = {.fixture = f, .fd = socket(AF_INET, SOCK_STREAM, 0)};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(http_server_port(f->server))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(c.fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(c.fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    return c;
}

static inline void client_send(client_t *c, const void *data, size_t size)
{
    assert_int_equal(send(c->fd, data, size, MSG_NOSIGNAL), size);
}

static inline void client_close(client_t *c)
{
    client_unwatch(c);
    close(c->fd);
    text_buffer_free(&c->received);
}

static inline void client_reset(client_t *c)
{
    const struct linger at_once = {.l_onoff = 1};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    client_close(c);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define OLD_GET(path) "GET " path " HTTP/1.0\r\n\r\n"

/* Connects with a request whose handler keeps the exchange, and lets it come to that. */
static inline client_t open_stream(fixture_t *f, const char *request)
{
    unsigned before = f->handled;
    client_t c = client_send_first(f, request);
    UNTIL(f, f->handled == before + 1);
    return c;
}

typedef enum { FIN, RST, HALF_CLOSE, HOWS } how_t;

static inline void leave(client_t *c, how_t how)
{
    if (how == FIN)
        client_close(c);
    else if (how == RST)
        client_reset(c);
    else
        shutdown(c->fd, SHUT_WR);
}

/* --- what was received --- */

typedef struct {
    int status;
    char head[2048];
    text_buffer_t body;
    bool complete;
    size_t length; /* of the whole response */
} response_t;

static inline size_t parse_chunks(response_t *r, const char *data, size_t size)
{
    size_t at = 0;
    for (;;) {
        const char *line_end = memmem(data + at, size - at, "\r\n", 2);
        if (!line_end)
            return 0;
        size_t chunk = strtoul(data + at, NULL, 16);
        size_t begin = (size_t)(line_end - data) + 2;
        if (begin + chunk + 2 > size)
            return 0;
        assert_memory_equal(data + begin + chunk, "\r\n", 2);
        text_buffer_bytes(&r->body, data + begin, chunk);
        at = begin + chunk + 2;
        if (chunk == 0)
            return at;
    }
}

/* Parses the first response of what the client has; only its head if it is one to a HEAD. */
static inline response_t parse(const client_t *c, bool is_head)
{
    response_t r = {0};
    const char *data = c->received.data;
    const char *end = c->received.size ? memmem(data, c->received.size, "\r\n\r\n", 4) : NULL;
    if (!end)
        return r;
    size_t head = (size_t)(end - data) + 4;
    assert_true(head < sizeof r.head);
    memcpy(r.head, data, head);
    r.status = (int)strtol(r.head + sizeof "HTTP/1.1", NULL, 10);
    const char *length = strcasestr(r.head, "\r\nContent-Length:");
    size_t left = c->received.size - head;
    if (is_head) {
        r.length = head;
    } else if (strcasestr(r.head, "\r\nTransfer-Encoding: chunked")) {
        size_t chunks = parse_chunks(&r, data + head, left);
        r.length = chunks ? head + chunks : 0;
    } else if (length) {
        size_t size = strtoul(strchr(length, ':') + 1, NULL, 10);
        text_buffer_bytes(&r.body, data + head, size <= left ? size : left);
        r.length = size <= left ? head + size : 0;
    } else {
        text_buffer_bytes(&r.body, data + head, left);
        r.length = c->closed ? head + left : 0;
    }
    r.complete = r.length > 0;
    return r;
}

/* Lets the loop turn until a whole response is here, and takes it off what was received. */
static inline response_t client_response(client_t *c, bool is_head)
{
    response_t r = parse(c, is_head);
    while (!r.complete && !c->closed) {
        text_buffer_free(&r.body);
        run_loop(c->fixture, 1);
        r = parse(c, is_head);
    }
    memmove(c->received.data, c->received.data + r.length, c->received.size - r.length);
    c->received.size -= r.length;
    return r;
}

static inline void assert_body(response_t *r, const void *body, size_t size)
{
    assert_true(r->complete);
    assert_int_equal(r->body.size, size);
    if (size)
        assert_memory_equal(r->body.data, body, size);
    text_buffer_free(&r->body);
}

static inline void assert_error(response_t *r, int status, const char *code)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, ",\"code\":\"%s\"}}", code);
    assert_true(r->complete);
    assert_int_equal(r->status, status);
    assert_non_null(strstr(r->head, "\r\nContent-Type: application/json\r\n"));
    assert_true(r->body.size > strlen(wanted));
    assert_memory_equal(r->body.data, "{\"error\":{\"message\":\"", 21);
    assert_memory_equal(r->body.data + r->body.size - strlen(wanted), wanted, strlen(wanted));
    text_buffer_free(&r->body);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define WITHOUT_SERVER(test) cmocka_unit_test_setup_teardown(test, setup_without_server, teardown)

#endif
