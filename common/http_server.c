#include "common/http_internal.h"

#include "common/log.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* How this sits in the loop. The zloop polls one descriptor, an epoll set of our own, with three kinds of
 * member.
 *
 * libmicrohttpd's epoll descriptor.
 *
 * A timer, for libmicrohttpd's timeouts and for "at the end of this turn". Not a zloop timer: that can fire
 * once more after it was ended in another timer's handler, which may be after http_server_destroy.
 *
 * Every connection, for EPOLLRDHUP: libmicrohttpd takes a suspended connection out of its set, and would not
 * see that the client left while its answer is being made. And for EPOLLIN: libmicrohttpd does not tell when
 * the first byte of a request comes. Edge-triggered, so that what a client sends ahead of time, which stays
 * unread, wakes us once a piece and not again and again. */

/* In libmicrohttpd's memory for a connection there is, for each header of the request, a record beside the
 * header's own bytes: this much or less. (And one for each parameter of the line and each cookie, and a
 * copy of the cookies. These are of no use to us, so there is no room of their own for them.) */
#define HEADER_RECORD_BYTES ((size_t)64)

/* What is left when a request has all the bytes and all the headers that it may have. It is enough for the
 * head of the response; with what the request did not need, it is also the largest chunk of a stream. */
#define RESPONSE_BYTES ((size_t)4096)

/* Accepted beyond max_connections, so that a busy process can say that it is busy, and that it lives: whoever
 * probes it would else restart it. Above that the listener pauses. */
#define SURPLUS_CONNECTIONS 64u

/* What a process has open besides connections, some 35: ZeroMQ's own, epoll sets, timers, files. The rest is
 * for connections to the ZeroMQ ports that nobody expects. */
#define OWN_DESCRIPTORS 128u

/* Runs of libmicrohttpd before the loop's other sockets have their turn. */
#define RUNS_AT_ONCE 32u

#define EVENTS_AT_ONCE 64
#define AT_ONCE INT64_C(0)
#define NEVER INT64_MAX

static void arm(http_server_t *self, int64_t due_ms)
{
    if (self->armed_ms <= due_ms)
        return;
    self->armed_ms = due_ms;
    int64_t delay_ms = due_ms == AT_ONCE ? 0 : due_ms - zclock_mono();
    struct itimerspec when = {.it_value.tv_nsec = 1}; /* zero would disarm */
    if (delay_ms > 0)
        when.it_value = (struct timespec){.tv_sec = delay_ms / 1000, .tv_nsec = delay_ms % 1000 * 1000000};
    timerfd_settime(self->timer_fd, 0, &when, NULL);
}

void http_server_run_soon(http_server_t *server)
{
    if (!server->is_running && !server->is_stopping)
        arm(server, AT_ONCE);
}

static void resume_pending(http_server_t *self)
{
    http_exchange_t *exchange;
    while ((exchange = LIST_FIRST(&self->pending))) {
        LIST_REMOVE(exchange, pending);
        exchange->is_pending = false;
        exchange->is_suspended = false;
        MHD_resume_connection(exchange->mhd);
    }
}

static bool is_mhd_busy(http_server_t *self)
{
    unsigned long long timeout_ms;
    return MHD_get_timeout(self->daemon, &timeout_ms) == MHD_YES && timeout_ms == 0;
}

static int64_t next_deadline_ms(http_server_t *self)
{
    int64_t due_ms = NEVER;
    unsigned long long timeout_ms;
    if (MHD_get_timeout(self->daemon, &timeout_ms) == MHD_YES && timeout_ms < INT_MAX)
        due_ms = zclock_mono() + (int64_t)timeout_ms;
    int64_t late_ms = http_connection_next_deadline(self);
    return late_ms < due_ms ? late_ms : due_ms;
}

/* One MHD_run is not enough, for it takes one step with each connection: after a resume it has the next chunk
 * filled in, and only the next run sends it. And a listener that was left out of the set, at the limit of
 * connections or of descriptors, comes back at the beginning of the run after the one that closed a
 * connection. */
static void run(http_server_t *self)
{
    bool is_busy = true;
    self->is_running = true;
    if (self->armed_ms == AT_ONCE)
        self->armed_ms = NEVER;
    http_connection_close_late(self);
    for (unsigned i = 0; is_busy && i < RUNS_AT_ONCE; i++) {
        resume_pending(self);
        self->slot_freed = false;
        MHD_run(self->daemon);
        self->stats.runs++;
        is_busy = !LIST_EMPTY(&self->pending) || self->slot_freed || is_mhd_busy(self);
    }
    self->is_running = false;
    if (!is_busy)
        http_connection_end_half_closed(self);
    arm(self, is_busy ? AT_ONCE : next_deadline_ms(self));
}

static int on_events(zloop_t *loop, zmq_pollitem_t *item, void *context)
{
    (void)loop;
    (void)item;
    http_server_t *self = context;
    struct epoll_event events[EVENTS_AT_ONCE];
    /* No connection is freed before run: until then each pointer is good. */
    int count = epoll_wait(self->events_fd, events, EVENTS_AT_ONCE, 0);
    for (int i = 0; i < count; i++) {
        void *source = events[i].data.ptr;
        if (source == &self->timer_fd) {
            uint64_t expirations;
            self->armed_ms =
                read(self->timer_fd, &expirations, sizeof expirations) > 0 ? NEVER : self->armed_ms;
        } else if (source != self->daemon && events[i].events & ~(uint32_t)EPOLLIN) {
            http_connection_half_closed(source);
        } else if (source != self->daemon) {
            http_connection_readable(source);
        }
    }
    run(self);
    return 0;
}

static size_t pool_bytes(const http_server_options_t *options)
{
    return options->max_header_bytes + options->max_headers * HEADER_RECORD_BYTES + RESPONSE_BYTES;
}

static wg_status_t start_daemon(http_server_t *self, wg_error_t *error)
{
    const http_server_options_t *options = &self->options;
    unsigned limit = UINT_MAX;
    if (options->max_connections < UINT_MAX - SURPLUS_CONNECTIONS)
        limit = (unsigned)options->max_connections + SURPLUS_CONNECTIONS;
    unsigned idle_seconds = (unsigned)((options->idle_timeout_ms + 999) / 1000);
    /* TURBO: a new connection is read at once, which saves a turn. */
    const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO;
    self->daemon = MHD_start_daemon(flags, 0, NULL, NULL, http_request_on_access, self,           //
                                    MHD_OPTION_LISTEN_SOCKET, self->listen_fd,                    //
                                    MHD_OPTION_NOTIFY_COMPLETED, http_request_on_completed, self, //
                                    MHD_OPTION_NOTIFY_CONNECTION, http_connection_notify, self,   //
                                    MHD_OPTION_URI_LOG_CALLBACK, http_request_on_line, self,      //
                                    MHD_OPTION_CONNECTION_MEMORY_LIMIT, pool_bytes(options),      //
                                    MHD_OPTION_CONNECTION_LIMIT, limit,                           //
                                    MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds, MHD_OPTION_END);
    return self->daemon ? WG_OK : WG_FAIL(error, SYSTEM, "start the HTTP server", strerror(errno));
}

static wg_status_t watch(http_server_t *self, int fd, void *source, wg_error_t *error)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    if (epoll_ctl(self->events_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return WG_FAIL(error, SYSTEM, "watch the HTTP server", strerror(errno));
    return WG_OK;
}

static wg_status_t join_loop(http_server_t *self, wg_error_t *error)
{
    self->events_fd = epoll_create1(EPOLL_CLOEXEC);
    self->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (self->events_fd == -1 || self->timer_fd == -1)
        return WG_FAIL(error, SYSTEM, "set up the HTTP server", strerror(errno));
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(self->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    wg_status_t status = watch(self, info->epoll_fd, self->daemon, error);
    if (status == WG_OK)
        status = watch(self, self->timer_fd, &self->timer_fd, error);
    zmq_pollitem_t item = {.fd = self->events_fd, .events = ZMQ_POLLIN};
    if (status == WG_OK && zloop_poller(self->loop, &item, on_events, self) != 0)
        status = WG_FAIL(error, SYSTEM, "add the HTTP server to the loop", strerror(ENOMEM));
    return status;
}

/* Without a free descriptor, accept fails at once and again: libzmq's thread spins then, and so does
 * libmicrohttpd while it has no connection to close. So HTTP never gets the last ones. */
static wg_status_t fit_connections(http_server_options_t *options, size_t peer_connections, wg_error_t *error)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return WG_FAIL(error, SYSTEM, "descriptor limit", strerror(errno));
    /* A peer may dial again before the end of its old connection is seen. */
    size_t others = OWN_DESCRIPTORS + 2 * peer_connections + SURPLUS_CONNECTIONS;
    if (limit.rlim_cur <= others) {
        char why[96];
        snprintf(why, sizeof why, "it is %llu, and this process needs %zu besides its HTTP connections",
                 (unsigned long long)limit.rlim_cur, others);
        return WG_FAIL(error, SYSTEM, "descriptor limit (RLIMIT_NOFILE)", why);
    }
    if (options->max_connections <= limit.rlim_cur - others)
        return WG_OK;
    log_warning("limits.max_connections is more than the descriptor limit allows configured=%zu used=%zu "
                "descriptors=%llu",
                options->max_connections, (size_t)limit.rlim_cur - others,
                (unsigned long long)limit.rlim_cur);
    options->max_connections = (size_t)limit.rlim_cur - others;
    return WG_OK;
}

wg_status_t http_server_set_limits(http_server_options_t *options, const wg_config_t *config,
                                   size_t peer_connections, wg_error_t *error)
{
    options->max_body_bytes = (size_t)config->limits.max_body_bytes;
    options->max_connections = (size_t)config->limits.max_connections;
    options->max_header_bytes = (size_t)config->limits.max_header_bytes;
    options->max_headers = (size_t)config->limits.max_headers;
    options->idle_timeout_ms = config->timeouts.http_idle_ms;
    options->header_timeout_ms = config->timeouts.http_header_ms;
    options->body_timeout_ms = config->timeouts.http_body_ms;
    return fit_connections(options, peer_connections, error);
}

wg_status_t http_server_new(http_server_t **out, zloop_t *loop, const http_server_options_t *options,
                            wg_error_t *error)
{
    *out = NULL;
    http_server_t *self = calloc(1, sizeof *self);
    if (!self)
        return WG_FAIL(error, SYSTEM, "start the HTTP server", strerror(ENOMEM));
    self->options = *options;
    self->loop = loop;
    self->armed_ms = NEVER;
    self->listen_fd = self->events_fd = self->timer_fd = -1;
    for (int phase = 0; phase < RECEIVE_NOTHING; phase++)
        TAILQ_INIT(&self->receiving[phase]);
    LIST_INIT(&self->half_closed);
    LIST_INIT(&self->exchanges);
    LIST_INIT(&self->pending);
    wg_status_t status = http_listener_open(&self->listen_fd, &self->port, &options->listen, error);
    if (status == WG_OK)
        status = start_daemon(self, error);
    if (status == WG_OK)
        status = join_loop(self, error);
    if (status == WG_OK)
        *out = self;
    else
        http_server_destroy(&self);
    return status;
}

uint16_t http_server_port(const http_server_t *server)
{
    return server->port;
}

void http_server_stats(const http_server_t *server, http_server_stats_t *out)
{
    *out = server->stats;
}

void http_server_close_listener(http_server_t *server)
{
    if (server->listen_fd == -1)
        return;
    if (server->daemon)
        MHD_quiesce_daemon(server->daemon);
    close(server->listen_fd);
    server->listen_fd = -1;
}

static void stop_daemon(http_server_t *self)
{
    http_exchange_t *exchange;
    self->is_stopping = true;
    run(self); /* hands to the system what has been answered already */
    LIST_FOREACH(exchange, &self->exchanges, all)
    {
        if (exchange->state != EXCHANGE_RELEASED)
            http_exchange_cut(exchange);
    }
    /* With one connection still suspended, MHD_stop_daemon would end the process. */
    LIST_FOREACH(exchange, &self->exchanges, all)
    {
        if (exchange->is_suspended)
            http_exchange_wake(exchange);
    }
    resume_pending(self);
    MHD_stop_daemon(self->daemon);
}

void http_server_destroy(http_server_t **server)
{
    http_server_t *self = *server;
    if (!self)
        return;
    http_server_close_listener(self);
    zmq_pollitem_t item = {.fd = self->events_fd, .events = ZMQ_POLLIN};
    if (self->events_fd != -1)
        zloop_poller_end(self->loop, &item);
    if (self->daemon)
        stop_daemon(self);
    if (self->events_fd != -1)
        close(self->events_fd);
    if (self->timer_fd != -1)
        close(self->timer_fd);
    free(self);
    *server = NULL;
}
