#include "common/http_internal.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

bool http_connection_admit(http_connection_t *connection)
{
    http_server_t *server = connection->server;
    if (!connection->is_admitted && server->admitted < server->options.max_connections) {
        connection->is_admitted = true;
        server->admitted++;
    }
    return connection->is_admitted;
}

/* --- a client that is slow to send --- */

static int64_t time_for(const http_server_t *server, receive_phase_t phase)
{
    switch (phase) {
    case RECEIVE_HEAD:
        return server->options.header_timeout_ms;
    case RECEIVE_BODY:
        return server->options.body_timeout_ms;
    case RECEIVE_NEXT:
        return server->options.idle_timeout_ms;
    default:
        return 0;
    }
}

static void stop_timing(http_connection_t *connection)
{
    if (connection->is_timed)
        TAILQ_REMOVE(&connection->server->receiving[connection->phase], connection, receiving);
    connection->is_timed = false;
}

void http_connection_receive(http_connection_t *connection, receive_phase_t phase)
{
    http_server_t *server = connection->server;
    int64_t time_ms = time_for(server, phase);
    stop_timing(connection);
    connection->phase = phase;
    if (time_ms == 0)
        return;
    connection->receive_by_ms = zclock_mono() + time_ms;
    connection->is_timed = true;
    TAILQ_INSERT_TAIL(&server->receiving[phase], connection, receiving);
}

static bool has_unread(const http_connection_t *connection)
{
    int unread = 0;
    return ioctl(connection->fd, FIONREAD, &unread) == 0 && unread > 0;
}

void http_connection_receive_next(http_connection_t *connection)
{
    http_connection_receive(connection, has_unread(connection) ? RECEIVE_HEAD : RECEIVE_NEXT);
}

/* What libmicrohttpd has read before this is called may have been the whole of a request. But of one that it
 * read half together with the request before, only the next piece is seen here: until then the connection
 * counts as idle. */
void http_connection_readable(http_connection_t *connection)
{
    if (connection->phase == RECEIVE_NEXT && has_unread(connection))
        http_connection_receive(connection, RECEIVE_HEAD);
}

int64_t http_connection_next_deadline(const http_server_t *server)
{
    int64_t due_ms = INT64_MAX;
    for (int phase = 0; phase < RECEIVE_NOTHING; phase++) {
        const http_connection_t *oldest = TAILQ_FIRST(&server->receiving[phase]);
        if (oldest && oldest->receive_by_ms < due_ms)
            due_ms = oldest->receive_by_ms;
    }
    return due_ms;
}

static void close_late(http_connection_t *connection)
{
    wg_error_t error;
    receive_phase_t phase = connection->phase;
    if (phase != RECEIVE_NEXT) {
        WG_FAIL(&error, REQUEST_TIMEOUT, phase == RECEIVE_HEAD ? "line and headers" : "body",
                (long long)time_for(connection->server, phase));
        http_connection_refuse(connection, 408, &error);
    }
    /* Both ways: then libmicrohttpd gives up at once, and does not read a rest that has come after all. */
    http_connection_receive(connection, RECEIVE_NOTHING);
    shutdown(connection->fd, SHUT_RDWR);
}

/* libmicrohttpd's timeout is for silence only: a client that sends a byte a second would keep its connection
 * for ever. */
void http_connection_close_late(http_server_t *server)
{
    http_connection_t *connection;
    int64_t now_ms = zclock_mono();
    for (int phase = 0; phase < RECEIVE_NOTHING; phase++) {
        while ((connection = TAILQ_FIRST(&server->receiving[phase])) && connection->receive_by_ms <= now_ms)
            close_late(connection);
    }
}

/* --- a client that sends no more --- */

void http_connection_half_closed(http_connection_t *connection)
{
    http_exchange_t *exchange = connection->exchange;
    if (!connection->is_half_closed)
        LIST_INSERT_HEAD(&connection->server->half_closed, connection, half_closed);
    connection->is_half_closed = true;
    if (exchange && http_exchange_is_open(exchange))
        http_exchange_cut(exchange);
}

static bool is_answering(const http_connection_t *connection)
{
    const http_exchange_t *exchange = connection->exchange;
    return exchange && exchange->state != EXCHANGE_READING && exchange->state != EXCHANGE_REFUSED;
}

/* Where the end of the stream comes together with the bytes before it, libmicrohttpd reads those, waits for
 * the next edge, and there is none: the connection would stay until its deadline, if it has one. */
void http_connection_end_half_closed(http_server_t *server)
{
    http_connection_t *connection;
    LIST_FOREACH(connection, &server->half_closed, half_closed)
    {
        if (connection->is_shut || is_answering(connection) || has_unread(connection))
            continue;
        connection->is_shut = true;
        shutdown(connection->fd, SHUT_RDWR);
    }
}

/* --- beginning and end --- */

/* NULL without memory: then the first request is refused, which closes the connection. */
static http_connection_t *open_connection(http_server_t *self, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    http_connection_t *connection = info ? calloc(1, sizeof *connection) : NULL;
    if (!connection)
        return NULL;
    connection->server = self;
    connection->fd = info->connect_fd;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    if (epoll_ctl(self->events_fd, EPOLL_CTL_ADD, connection->fd, &event) != 0) {
        free(connection);
        return NULL;
    }
    self->stats.connections++;
    http_connection_admit(connection);
    http_connection_receive(connection, RECEIVE_HEAD);
    return connection;
}

static void close_connection(http_connection_t *connection)
{
    http_server_t *self = connection->server;
    /* Only where libmicrohttpd gave the connection up without ending the request. The headers are gone
     * already. */
    if (connection->exchange) {
        connection->exchange->mhd = NULL;
        http_exchange_end(connection->exchange);
    }
    stop_timing(connection);
    if (connection->is_half_closed)
        LIST_REMOVE(connection, half_closed);
    if (connection->is_admitted)
        self->admitted--;
    self->stats.connections--;
    free(connection);
}

void http_connection_notify(void *context, struct MHD_Connection *mhd, void **slot,
                            enum MHD_ConnectionNotificationCode what)
{
    http_server_t *self = context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *slot = open_connection(self, mhd);
        return;
    }
    self->slot_freed = true;
    if (*slot)
        close_connection(*slot);
    *slot = NULL;
}
