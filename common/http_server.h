/* http_server.h: an HTTP/1.1 server inside the process's loop: libmicrohttpd with its epoll descriptor
 * as one poller of the zloop (design.md 8 has the measured choice and its traps). A handler sees a request
 * once the whole body is here, and answers now or later, at once or as a stream; a client that leaves before
 * the end is reported. Owned by the loop; never blocks. Tests: tests/unit/http_*_test.c */
#ifndef WG_COMMON_HTTP_SERVER_H
#define WG_COMMON_HTTP_SERVER_H

#include "common/config.h"
#include "common/status.h"
#include "common/text_buffer.h"

#include <czmq.h>

typedef struct http_server http_server_t;
typedef struct http_exchange http_exchange_t; /* one request and its response; belongs to the server */

typedef struct {
    const char *name;
    const char *value;
} http_header_t;

/* Called in the loop with a complete request. The handler must, now or later, call http_respond or
 * http_stream_begin; until the user ended the response or on_gone was called, the exchange stays valid.
 * Neither a handler nor on_gone may destroy the server. */
typedef void http_handler_fn(void *context, http_exchange_t *exchange);

/* The client closed its side (also half-closed), or the connection broke, or the server stops, before the
 * user ended the response (http_respond, http_stream_end, http_stream_cut: after these the exchange is no
 * longer the user's, and nothing is reported). Called at most once, never from inside an http_* call other
 * than http_server_destroy; the exchange and its headers are valid until it returns, but what it answers goes
 * nowhere. */
typedef void http_gone_fn(void *context, http_exchange_t *exchange);

/* Called in the loop, in the middle of a read of the stream, when the transport has taken all that was
 * written to a stream that goes on: once after one or more writes, and not again before another. It may
 * write to this stream, end or cut it: in that case nothing is reported any more. It may use other
 * exchanges like any handler, and must not destroy the server. */
typedef void http_room_fn(void *context, http_exchange_t *exchange);

typedef struct {
    const char *method; /* "GET", "POST" */
    const char *path;   /* exact */
    http_handler_fn *handler;
    bool is_probe; /* served also when there are max_connections already: whoever watches over us asks this */
} http_route_t;

typedef struct {
    config_http_t listen;
    size_t max_body_bytes;
    /* Up to 64 more are accepted: each gets one answer, 503 (Overloaded) unless the route is a probe, and is
     * closed. Further ones wait until there is room. */
    size_t max_connections;
    /* Of a request's line and headers. Memory of a connection: these bytes, 64 for each of max_headers, and
     * 4096 for the response, touched as far as they are needed. */
    size_t max_header_bytes;
    size_t max_headers;
    /* A connection on which nothing moves for so long (rounded up to a second) is closed, and one that is
     * kept but does not begin another request. 0, here and below: never. */
    int64_t idle_timeout_ms;
    /* RequestTimeout, and the end of the connection, for a request whose line and headers, or whose body
     * after them, take longer to arrive, however steadily. The time of the head begins with the
     * connection, on one that is kept with the first byte after the request before. */
    int64_t header_timeout_ms;
    int64_t body_timeout_ms;
    const http_route_t *routes; /* an array that must outlive the server */
    size_t route_count;
    void *context; /* given to every handler */
} http_server_options_t;

/* Sets the sizes, numbers and times that the configuration has for any process. Where the descriptor limit
 * does not allow that many connections beside those of the ZeroMQ sockets, peer_connections at most, they are
 * fewer, and the log says so; WG_E_SYSTEM where it allows none. */
WG_MUST_CHECK wg_status_t http_server_set_limits(http_server_options_t *options, const wg_config_t *config,
                                                 size_t peer_connections, wg_error_t *error);

/* Binds and starts listening. WG_E_SYSTEM names the address and the reason (taken, not ours, ...).
 *
 * Unknown paths get RouteNotFound, known ones with another method MethodNotAllowed with Allow (HEAD is served
 * as GET). These keep the connection. After all that follow, it closes:
 *   BodyTooLarge: before reading the body where Content-Length says so, else at the limit;
 *   HeaderTooLarge: more headers than the limit, or more bytes of line and headers;
 *   InvalidRequest: an ambiguous end (Content-Length with Transfer-Encoding, two Content-Lengths, another
 *   encoding than chunked), or a byte that HTTP does not have there (NUL, in the line also as %00; folded
 *   lines; a line end without CR; two blanks in a row in the line);
 *   RequestTimeout.
 * libmicrohttpd refuses by itself, in HTML that cannot be changed: what is not HTTP (400, or just the end), a
 * Content-Length that is no number (400) or needs more than 64 bits (413), and a head that outgrows the
 * memory of its connection (431, or 414 if its line alone does). */
WG_MUST_CHECK wg_status_t http_server_new(http_server_t **out, zloop_t *loop,
                                          const http_server_options_t *options, wg_error_t *error);

/* The port that is listened on: the configured one, or what the system chose where that is 0. */
uint16_t http_server_port(const http_server_t *server);

/* Closes the listener and every connection; each unfinished exchange gets its on_gone. What was answered
 * before is still handed to the system, as far as it takes it at once. Accepts NULL, clears. */
void http_server_destroy(http_server_t **server);

/* Stops accepting; existing connections go on. */
void http_server_close_listener(http_server_t *server);

typedef struct {
    size_t connections;
    size_t exchanges;      /* requests with their handler whose response is not complete */
    size_t buffered_bytes; /* response bytes not yet taken by the transport */
    uint64_t requests;     /* all that reached a handler */
    uint64_t refused;      /* answered by the server itself: no route, too large, ambiguous */
    uint64_t runs;         /* how often libmicrohttpd ran: stands still while nothing happens */
} http_server_stats_t;
void http_server_stats(const http_server_t *server, http_server_stats_t *out);

/* --- the request --- */

/* The first header of that name (any case), NUL-terminated, or NULL. Valid as long as the exchange. */
const char *http_header(const http_exchange_t *exchange, const char *name);
/* How many headers of that name there are. */
size_t http_header_count(const http_exchange_t *exchange, const char *name);
/* The body, maybe empty (then data may be NULL). Valid until http_respond or http_stream_begin returns. */
const char *http_body(const http_exchange_t *exchange, size_t *size);

/* --- the response: one http_respond, or begin, write*, end --- */

/* The user's own pointer and the function to call if the client leaves. on_gone may be NULL. */
void http_exchange_watch(http_exchange_t *exchange, http_gone_fn *on_gone, void *user);
void *http_exchange_user(const http_exchange_t *exchange);

/* Answers whole. The body is copied. A `Content-Type` must be among the headers if it has a body. Here and
 * below: a header that HTTP cannot carry (empty, or with a line break) is left out. */
void http_respond(http_exchange_t *exchange, int status, const http_header_t *headers, size_t header_count,
                  const void *body, size_t size);

/* Answers with the JSON object of design.md 5 and the HTTP status of the error; Retry-After on 429, 503. */
void http_respond_error(http_exchange_t *exchange, const wg_error_t *error, const http_header_t *headers,
                        size_t header_count);

/* Appends {"error":{...}} without a newline: the body above, and the data line in a stream that has begun. */
void http_error_json(text_buffer_t *out, const wg_error_t *error);

void http_stream_begin(http_exchange_t *exchange, int status, const http_header_t *headers,
                       size_t header_count);
/* Appends to the stream; copied. Returns the bytes of this exchange that the transport has not taken yet,
 * this write included: the caller holds that against its limit. 0: the client is gone, on_gone follows.
 * The stream of a HEAD takes nothing, and ends in on_gone unless http_stream_end comes first. */
size_t http_stream_write(http_exchange_t *exchange, const void *data, size_t size);
/* The bytes that the transport has not taken yet. */
size_t http_stream_waiting(const http_exchange_t *exchange);
/* Has on_room called from now on; NULL: nothing. */
void http_exchange_on_room(http_exchange_t *exchange, http_room_fn *on_room);
/* No more writes. What there is will still be sent, but nothing is reported any more. */
void http_stream_end(http_exchange_t *exchange);
/* Drops what is not yet sent and resets the connection: for a reader that does not read. */
void http_stream_cut(http_exchange_t *exchange);

#endif
