#include "common/http_internal.h"

#include "common/log.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* How much of a refused body is read and thrown away. Closing a socket with unread bytes resets the
 * connection, and with it the answer that the client has not read yet. */
#define DRAIN_MAX_BYTES ((size_t)16 * 1024 * 1024)

static const http_route_t *find_route(const http_server_t *self, const char *path, const char *method)
{
    for (size_t i = 0; i < self->options.route_count; i++) {
        const http_route_t *route = &self->options.routes[i];
        if (strcmp(route->path, path) == 0 && strcmp(route->method, method) == 0)
            return route;
    }
    return NULL;
}

static http_exchange_t *begin(http_connection_t *connection, struct MHD_Connection *mhd, const char *path,
                              const char *method)
{
    http_server_t *self = connection->server;
    http_exchange_t *exchange = calloc(1, sizeof *exchange);
    if (!exchange)
        return NULL;
    exchange->connection = connection;
    exchange->mhd = mhd;
    exchange->is_head = strcmp(method, "HEAD") == 0;
    exchange->route = find_route(self, path, exchange->is_head ? "GET" : method);
    connection->exchange = exchange;
    LIST_INSERT_HEAD(&self->exchanges, exchange, all);
    http_connection_receive(connection, RECEIVE_BODY);
    return exchange;
}

void http_exchange_end(http_exchange_t *exchange)
{
    http_connection_t *connection = exchange->connection;
    http_server_t *self = connection->server;
    bool was_open = http_exchange_is_open(exchange);
    if (was_open || exchange->state == EXCHANGE_RELEASED)
        self->stats.exchanges--;
    exchange->state = EXCHANGE_RELEASED; /* what the user may call from on_gone does nothing any more */
    if (was_open && exchange->on_gone)
        exchange->on_gone(self->options.context, exchange);
    self->stats.buffered_bytes -= http_exchange_buffered(exchange);
    if (exchange->is_pending)
        LIST_REMOVE(exchange, pending);
    LIST_REMOVE(exchange, all);
    connection->exchange = NULL;
    text_buffer_free(&exchange->body);
    text_buffer_free(&exchange->output);
    free(exchange);
}

void http_request_on_completed(void *context, struct MHD_Connection *mhd, void **slot,
                               enum MHD_RequestTerminationCode why)
{
    (void)context;
    (void)mhd;
    (void)why;
    http_exchange_t *exchange = *slot;
    if (!exchange)
        return;
    http_connection_t *connection = exchange->connection;
    *slot = NULL;
    http_exchange_end(exchange);
    http_connection_receive_next(connection);
}

/* Here the target of the request is still as it was sent. After this libmicrohttpd decodes it where it is. */
void *http_request_on_line(void *context, const char *uri, struct MHD_Connection *mhd)
{
    (void)context;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    http_connection_t *connection = info->socket_context;
    if (!connection)
        return NULL;
    connection->target_size = strlen(uri);
    connection->is_target_cut = strstr(uri, "%00") != NULL;
    if (connection->phase != RECEIVE_HEAD)
        http_connection_receive(connection, RECEIVE_HEAD);
    return NULL;
}

/* --- refusing --- */

static void send_refusal(const http_connection_t *connection, unsigned status, const wg_error_t *error)
{
    text_buffer_t body = {0};
    text_buffer_t answer = {0};
    http_error_json(&body, error);
    text_buffer_format(&answer, "HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Type: application/json\r\n",
                       status, MHD_get_reason_phrase_for(status));
    text_buffer_format(&answer, "%sContent-Length: %zu\r\n\r\n", status == 503 ? "Retry-After: 1\r\n" : "",
                       body.size);
    text_buffer_bytes(&answer, body.data, body.size);
    if (!body.failed && !answer.failed)
        send(connection->fd, answer.data, answer.size, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(connection->fd, SHUT_WR);
    text_buffer_free(&body);
    text_buffer_free(&answer);
}

/* By hand, for libmicrohttpd takes a response only before the first byte of the body or after the last. All
 * responses before this one were handed to the system whole, so this one comes after them; and unless the
 * client did not read those, the socket's buffer has room. The client sees answer and end while we read on
 * (DRAIN_MAX_BYTES). */
void http_connection_refuse(http_connection_t *connection, unsigned status, const wg_error_t *error)
{
    http_exchange_t *exchange = connection->exchange;
    if (connection->is_refused)
        return;
    connection->is_refused = true;
    connection->server->stats.refused++;
    send_refusal(connection, status, error);
    if (!exchange)
        return;
    text_buffer_free(&exchange->body);
    exchange->state = EXCHANGE_REFUSED;
    exchange->received = 0;
}

static void refuse(http_exchange_t *exchange, const wg_error_t *error)
{
    http_connection_refuse(exchange->connection, (unsigned)wg_status_http(error->status), error);
}

/* 503 and not Overloaded's 429: it is this process that has no room, whoever asks and however seldom. */
static void refuse_surplus(http_exchange_t *exchange)
{
    wg_error_t error;
    wg_error_format(&error, WG_E_OVERLOADED, "%zu connections are open, the limit; retry later",
                    exchange->connection->server->options.max_connections);
    http_connection_refuse(exchange->connection, 503, &error);
}

/* The methods that a path has, as Allow names them; empty: there is no such path. */
static void list_methods(const http_server_t *self, const char *path, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < self->options.route_count && used < size; i++) {
        const http_route_t *route = &self->options.routes[i];
        if (strcmp(route->path, path) == 0)
            used += (size_t)snprintf(out + used, size - used, "%s%s%s", used ? ", " : "", route->method,
                                     strcmp(route->method, "GET") == 0 ? ", HEAD" : "");
    }
}

static void answer_no_route(http_exchange_t *exchange, const char *path, const char *method)
{
    char methods[64];
    char shown_path[LOG_TEXT_SIZE];
    char shown_method[LOG_TEXT_SIZE];
    const http_header_t allow = {"Allow", methods};
    wg_error_t error;
    log_text(shown_path, path, strlen(path));
    list_methods(exchange->connection->server, path, methods, sizeof methods);
    exchange->connection->server->stats.refused++;
    if (methods[0] == '\0') {
        WG_FAIL(&error, ROUTE_NOT_FOUND, shown_path);
        http_respond_error(exchange, &error, NULL, 0);
        return;
    }
    log_text(shown_method, method, strlen(method));
    WG_FAIL(&error, METHOD_NOT_ALLOWED, shown_method, shown_path, methods);
    http_respond_error(exchange, &error, &allow, 1);
}

/* --- libmicrohttpd's handler: called once with the headers, then with each piece of the body, then at the
 * end, and again after each resume until there is a response --- */

static enum MHD_Result on_headers(struct MHD_Connection *mhd, const char *path, const char *method,
                                  const char *version, void **slot)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    http_connection_t *connection = info->socket_context;
    http_exchange_t *exchange = connection ? begin(connection, mhd, path, method) : NULL;
    if (!exchange)
        return MHD_NO;
    *slot = exchange;
    wg_error_t error;
    if (http_head_check(exchange, method, version, &error) != WG_OK)
        refuse(exchange, &error);
    else if (!http_connection_admit(connection) && !(exchange->route && exchange->route->is_probe))
        refuse_surplus(exchange);
    /* No response yet, though one may be certain already: given in this call, it would close the connection.
     */
    return MHD_YES;
}

static enum MHD_Result on_body(http_exchange_t *exchange, const char *data, size_t size)
{
    size_t limit = exchange->connection->server->options.max_body_bytes;
    wg_error_t error;
    if (exchange->state == EXCHANGE_REFUSED) {
        exchange->received += size;
        return exchange->received <= DRAIN_MAX_BYTES ? MHD_YES : MHD_NO;
    }
    if (size > limit - exchange->received) {
        WG_FAIL(&error, BODY_TOO_LARGE, limit);
        refuse(exchange, &error);
        return MHD_YES;
    }
    exchange->received += size;
    if (exchange->route)
        text_buffer_bytes(&exchange->body, data, size);
    if (exchange->body.failed) {
        WG_FAIL(&error, SYSTEM, "read the request", "out of memory");
        refuse(exchange, &error);
    }
    return MHD_YES;
}

static void dispatch(http_exchange_t *exchange, const char *path, const char *method)
{
    http_server_t *self = exchange->connection->server;
    http_connection_receive(exchange->connection, RECEIVE_NOTHING);
    exchange->state = EXCHANGE_WAITING;
    self->stats.exchanges++;
    if (exchange->route) {
        self->stats.requests++;
        exchange->route->handler(self->options.context, exchange);
    } else {
        answer_no_route(exchange, path, method);
    }
}

static enum MHD_Result on_complete(http_exchange_t *exchange, const char *path, const char *method)
{
    if (exchange->state != EXCHANGE_READING || exchange->connection->server->is_stopping)
        return MHD_NO; /* refused, or cut while it waited: closes the connection */
    dispatch(exchange, path, method);
    /* The event said so before there was an exchange, and will not come again. */
    if (exchange->connection->is_half_closed && http_exchange_is_open(exchange))
        http_exchange_cut(exchange);
    if (exchange->is_cut)
        return MHD_NO;
    if (exchange->state == EXCHANGE_WAITING) {
        MHD_suspend_connection(exchange->mhd);
        exchange->is_suspended = true;
    }
    return MHD_YES;
}

enum MHD_Result http_request_on_access(void *context, struct MHD_Connection *mhd, const char *path,
                                       const char *method, const char *version, const char *data,
                                       size_t *size, void **slot)
{
    (void)context;
    if (!*slot)
        return on_headers(mhd, path, method, version, slot);
    if (*size == 0)
        return on_complete(*slot, path, method);
    enum MHD_Result result = on_body(*slot, data, *size);
    *size = 0;
    return result;
}

/* --- what the user asks of a request --- */

const char *http_header(const http_exchange_t *exchange, const char *name)
{
    return exchange->mhd ? MHD_lookup_connection_value(exchange->mhd, MHD_HEADER_KIND, name) : NULL;
}

typedef struct {
    const char *name;
    size_t count;
} header_count_t;

static enum MHD_Result on_counted_header(void *context, enum MHD_ValueKind kind, const char *name,
                                         const char *value)
{
    (void)kind;
    (void)value;
    header_count_t *counted = context;
    if (strcasecmp(name, counted->name) == 0)
        counted->count++;
    return MHD_YES;
}

size_t http_header_count(const http_exchange_t *exchange, const char *name)
{
    header_count_t counted = {.name = name};
    if (exchange->mhd)
        MHD_get_connection_values(exchange->mhd, MHD_HEADER_KIND, on_counted_header, &counted);
    return counted.count;
}

const char *http_body(const http_exchange_t *exchange, size_t *size)
{
    *size = exchange->body.size;
    return exchange->body.data;
}
