#include "common/http_internal.h"

#include "common/log.h"

#include <string.h>
#include <sys/socket.h>

/* What an HTTP/1.0 client gets at once of a stream; for HTTP/1.1 libmicrohttpd uses the connection's own
 * memory. */
#define READER_BLOCK_BYTES 1024u

/* From here on a stream's buffer is given back as soon as it is empty: it was a slow reader's. */
#define KEPT_BYTES ((size_t)16 * 1024)

size_t http_exchange_buffered(const http_exchange_t *exchange)
{
    return exchange->whole_size + http_stream_waiting(exchange);
}

bool http_exchange_is_open(const http_exchange_t *exchange)
{
    return exchange->state == EXCHANGE_WAITING || exchange->state == EXCHANGE_STREAMING;
}

void http_exchange_wake(http_exchange_t *exchange)
{
    http_server_t *server = exchange->connection->server;
    if (!exchange->is_suspended || exchange->is_pending)
        return;
    exchange->is_pending = true;
    LIST_INSERT_HEAD(&server->pending, exchange, pending);
    http_server_run_soon(server);
}

/* The descriptor is libmicrohttpd's to close, and libmicrohttpd may be waiting for room in the socket, so it
 * has to be told by the socket. Dissolving the association (connect(2)) resets the connection at once and
 * frees what the system had queued. A shutdown would do neither, and would give an HTTP/1.0 client what looks
 * like a clean end. */
static void reset_socket(int fd)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    (void)connect(fd, &nobody, sizeof nobody);
}

void http_exchange_cut(http_exchange_t *exchange)
{
    if (exchange->is_cut)
        return;
    exchange->is_cut = true;
    exchange->connection->server->stats.buffered_bytes -= http_exchange_buffered(exchange);
    exchange->whole_size = 0;
    exchange->taken = 0;
    text_buffer_free(&exchange->output);
    reset_socket(exchange->connection->fd);
    http_exchange_wake(exchange);
}

static void add_headers(struct MHD_Response *response, const http_header_t *headers, size_t count)
{
    for (size_t i = 0; response && i < count; i++) {
        if (MHD_add_response_header(response, headers[i].name, headers[i].value) != MHD_YES)
            log_debug("a response goes without its header name=%s", headers[i].name);
    }
}

/* Takes the response, which may be NULL (no memory). */
static void queue(http_exchange_t *exchange, int status, struct MHD_Response *response)
{
    static const http_header_t close = {"Connection", "close"};
    /* A probe that kept its connection would keep the next ones out. */
    if (!exchange->connection->is_admitted)
        add_headers(response, &close, 1);
    bool is_queued = response && MHD_queue_response(exchange->mhd, (unsigned)status, response) == MHD_YES;
    MHD_destroy_response(response);
    if (is_queued)
        http_exchange_wake(exchange);
    else
        http_exchange_cut(exchange);
}

void http_exchange_watch(http_exchange_t *exchange, http_gone_fn *on_gone, void *user)
{
    exchange->on_gone = on_gone;
    exchange->user = user;
}

void *http_exchange_user(const http_exchange_t *exchange)
{
    return exchange->user;
}

void http_exchange_respond(http_exchange_t *exchange, int status, const http_header_t *first,
                           size_t first_count, const http_header_t *second, size_t second_count,
                           const void *body, size_t size)
{
    if (exchange->state != EXCHANGE_WAITING)
        return;
    exchange->state = EXCHANGE_RELEASED;
    if (!exchange->is_cut) {
        /* libmicrohttpd copies, and its parameter is not const for its other modes' sake. */
        struct MHD_Response *response =
            MHD_create_response_from_buffer(size, (void *)body, MHD_RESPMEM_MUST_COPY);
        add_headers(response, first, first_count);
        add_headers(response, second, second_count);
        exchange->whole_size = size;
        exchange->connection->server->stats.buffered_bytes += size;
        queue(exchange, status, response);
    }
    text_buffer_free(&exchange->body); /* not before: the answer may quote it */
}

void http_respond(http_exchange_t *exchange, int status, const http_header_t *headers, size_t header_count,
                  const void *body, size_t size)
{
    http_exchange_respond(exchange, status, headers, header_count, NULL, 0, body, size);
}

/* --- a stream --- */

/* Keeps what is sent from piling up before what is not. No more is moved than was taken since the last time.
 */
static void forget_taken(http_exchange_t *exchange)
{
    text_buffer_t *output = &exchange->output;
    size_t left = output->size - exchange->taken;
    if (left == 0 && output->capacity > KEPT_BYTES)
        text_buffer_free(output);
    else if (left > exchange->taken)
        return;
    else if (left > 0)
        memmove(output->data, output->data + exchange->taken, left);
    output->size = left;
    exchange->taken = 0;
}

/* May change anything about the stream but its being there. */
static void offer_room(http_exchange_t *exchange)
{
    if (exchange->state != EXCHANGE_STREAMING || !exchange->is_room_due || !exchange->on_room)
        return;
    exchange->is_room_due = false;
    exchange->on_room(exchange->connection->server->options.context, exchange);
}

static ssize_t on_read(void *context, uint64_t position, char *buffer, size_t room)
{
    (void)position;
    http_exchange_t *exchange = context;
    if (exchange->output.size == exchange->taken && !exchange->is_cut)
        offer_room(exchange);
    size_t left = exchange->output.size - exchange->taken;
    if (exchange->is_cut) {
        /* One byte that never leaves: the socket is reset, so sending it fails, and libmicrohttpd cleans up
         * at once. After END_WITH_ERROR it would only mark the connection as closed and come back to it with
         * its timeouts, which it looks at from the oldest on and no further than the first that is not due:
         * one idle connection would keep all those alive that broke since. */
        *buffer = 0;
        return 1;
    }
    if (left == 0 && exchange->state == EXCHANGE_RELEASED)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (left == 0) {
        /* Answering 0 without this, libmicrohttpd would ask again at once, for ever. */
        MHD_suspend_connection(exchange->mhd);
        exchange->is_suspended = true;
        return 0;
    }
    size_t size = left < room ? left : room;
    memcpy(buffer, exchange->output.data + exchange->taken, size);
    exchange->taken += size;
    exchange->connection->server->stats.buffered_bytes -= size;
    forget_taken(exchange);
    return (ssize_t)size;
}

static struct MHD_Response *stream_response(http_exchange_t *exchange)
{
    /* libmicrohttpd would end a chunked body that a HEAD must not have. So the stream of a HEAD is an empty
     * answer: it is complete soon, and then on_gone is called. */
    if (exchange->is_head)
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, READER_BLOCK_BYTES, on_read, exchange, NULL);
}

void http_stream_begin(http_exchange_t *exchange, int status, const http_header_t *headers,
                       size_t header_count)
{
    if (exchange->state != EXCHANGE_WAITING)
        return;
    exchange->state = EXCHANGE_STREAMING;
    if (!exchange->is_cut) {
        struct MHD_Response *response = stream_response(exchange);
        add_headers(response, headers, header_count);
        queue(exchange, status, response);
    }
    text_buffer_free(&exchange->body);
}

size_t http_stream_write(http_exchange_t *exchange, const void *data, size_t size)
{
    if (exchange->state != EXCHANGE_STREAMING || exchange->is_cut)
        return 0;
    text_buffer_bytes(&exchange->output, data, size);
    if (exchange->output.failed) {
        http_exchange_cut(exchange); /* better no more than a stream with a hole */
        return 0;
    }
    exchange->connection->server->stats.buffered_bytes += size;
    exchange->is_room_due = true;
    http_exchange_wake(exchange);
    return http_stream_waiting(exchange);
}

size_t http_stream_waiting(const http_exchange_t *exchange)
{
    return exchange->output.size - exchange->taken;
}

void http_exchange_on_room(http_exchange_t *exchange, http_room_fn *on_room)
{
    exchange->on_room = on_room;
}

void http_stream_end(http_exchange_t *exchange)
{
    if (exchange->state != EXCHANGE_STREAMING)
        return;
    exchange->state = EXCHANGE_RELEASED;
    http_exchange_wake(exchange);
}

void http_stream_cut(http_exchange_t *exchange)
{
    if (!http_exchange_is_open(exchange))
        return;
    exchange->state = EXCHANGE_RELEASED;
    http_exchange_cut(exchange);
}
