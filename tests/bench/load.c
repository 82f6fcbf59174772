/* Streams move between three kinds of lists: in flight; idle, one list for each frontend, so that a kept
 * connection to it is used again; and resting, of a closed loop, where a failed request would otherwise be
 * followed by the next one at once and a frontend that is down would keep this process busy. Only the loop
 * below begins requests, between two turns, so no event of a turn can reach the wrong request. */
#include "tests/bench/load.h"

#include "tests/bench/stream.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SECOND_US INT64_C(1000000)
#define REST_US INT64_C(100000)
#define SLOW_TICK_US INT64_C(50000)
#define STALL_TICK_US INT64_C(200000)
#define NEVER INT64_MAX
#define EVENTS_PER_TURN 256
#define BEGINS_PER_TURN 128 /* so that answers are read, and timed, while thousands of streams begin */
#define BUFFER_BYTES ((size_t)64 * 1024)

typedef TAILQ_HEAD(stream_list, stream) stream_list_t;

typedef struct {
    const options_t *options;
    statistics_t *statistics;
    stream_host_t host;
    stream_list_t in_flight;
    stream_list_t resting; /* the one that may go on first is first */
    stream_list_t *idle;   /* by target */
    int64_t in_flight_count;
    int64_t streams; /* of a closed loop, made so far */
    random_t arrivals;
    int64_t due_us;  /* of an open loop: the next request */
    int64_t end_us;  /* no request begins from here on */
    int64_t slow_us; /* the next ticks */
    int64_t stall_us;
    int signals;
    sigset_t signal_set;
    bool is_stopped;
    bool is_pressed; /* more requests are due than one turn begins */
} load_t;

static void on_end(void *context, stream_t *stream, outcome_kind_t kind)
{
    load_t *self = context;
    bool rests = self->options->streams > 0 && kind != OUTCOME_OK && kind != OUTCOME_DROPPED;
    TAILQ_REMOVE(&self->in_flight, stream, link);
    self->in_flight_count--;
    stream->rested_us = stream_now_us() + REST_US;
    TAILQ_INSERT_HEAD(rests ? &self->resting : &self->idle[stream->target], stream, link);
}

/* --- beginning requests --- */

static bool may_begin(const load_t *self, int64_t now_us)
{
    const options_t *options = self->options;
    return !self->is_stopped && now_us < self->end_us &&
           (options->requests == 0 || self->statistics->requests < options->requests);
}

static stream_t *take_idle(load_t *self, size_t target)
{
    stream_t *stream = TAILQ_FIRST(&self->idle[target]);
    if (stream)
        TAILQ_REMOVE(&self->idle[target], stream, link);
    return stream;
}

/* NULL if all are busy, or without memory for one more. */
static stream_t *closed_loop_stream(load_t *self)
{
    const options_t *options = self->options;
    if (self->streams < options->streams)
        return stream_new(&self->host, (size_t)self->streams++ % options->target_count);
    stream_t *stream = NULL;
    for (size_t target = 0; !stream && target < options->target_count; target++)
        stream = take_idle(self, target);
    return stream;
}

static stream_t *open_loop_stream(load_t *self)
{
    size_t target = (size_t)self->statistics->requests % self->options->target_count;
    stream_t *stream = take_idle(self, target);
    return stream ? stream : stream_new(&self->host, target);
}

static void begin(load_t *self, stream_t *stream, int64_t due_us)
{
    statistics_t *statistics = self->statistics;
    TAILQ_INSERT_TAIL(&self->in_flight, stream, link);
    if (++self->in_flight_count > statistics->most_in_flight)
        statistics->most_in_flight = self->in_flight_count;
    stream_begin(stream, (uint64_t)statistics->requests++, due_us);
}

static void wake_rested(load_t *self, int64_t now_us)
{
    stream_t *stream;
    while ((stream = TAILQ_FIRST(&self->resting)) && stream->rested_us <= now_us) {
        TAILQ_REMOVE(&self->resting, stream, link);
        TAILQ_INSERT_TAIL(&self->idle[stream->target], stream, link);
    }
}

/* Gaps of an exponential distribution: as from many independent users. */
static int64_t next_gap_us(load_t *self)
{
    return (int64_t)(-log1p(-random_unit(&self->arrivals)) / self->options->rate * (double)SECOND_US);
}

static stream_t *next_due(load_t *self, int64_t now_us, int64_t *due_us)
{
    *due_us = now_us;
    if (self->options->streams > 0)
        return closed_loop_stream(self);
    if (self->due_us > now_us)
        return NULL;
    *due_us = self->due_us;
    self->due_us += next_gap_us(self);
    return open_loop_stream(self);
}

static void begin_due(load_t *self)
{
    int64_t now_us = stream_now_us();
    int64_t due_us;
    stream_t *stream;
    int begun = 0;
    wake_rested(self, now_us);
    while (begun < BEGINS_PER_TURN && may_begin(self, now_us) && (stream = next_due(self, now_us, &due_us))) {
        begin(self, stream, due_us);
        begun++;
    }
    self->is_pressed = begun == BEGINS_PER_TURN;
}

/* --- ticks --- */

/* A stream that ends here leaves the list, and no other does. */
static void for_all_in_flight(load_t *self, void visit(load_t *self, stream_t *stream))
{
    stream_t *next;
    for (stream_t *stream = TAILQ_FIRST(&self->in_flight); stream; stream = next) {
        next = TAILQ_NEXT(stream, link);
        visit(self, stream);
    }
}

static void read_slowly(load_t *self, stream_t *stream)
{
    (void)self;
    stream_read_slowly(stream);
}

static void check_stall(load_t *self, stream_t *stream)
{
    double still_s = (double)(stream_now_us() - stream->moved_us) / (double)SECOND_US;
    if (still_s > self->options->stall_s)
        stream_give_up(stream);
}

static void tick(load_t *self)
{
    int64_t now_us = stream_now_us();
    if (now_us >= self->slow_us) {
        self->slow_us = now_us + SLOW_TICK_US;
        for_all_in_flight(self, read_slowly);
    }
    if (now_us >= self->stall_us) {
        self->stall_us = now_us + STALL_TICK_US;
        for_all_in_flight(self, check_stall);
    }
}

/* --- the loop --- */

static int64_t earlier(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

static int64_t next_wake_us(const load_t *self, int64_t now_us)
{
    if (self->is_pressed)
        return now_us;
    int64_t wake_us = self->stall_us;
    if (self->options->slow > 0)
        wake_us = earlier(wake_us, self->slow_us);
    /* When no more begin, both may lie in the past, and waiting for them would be no wait. */
    if (may_begin(self, now_us))
        wake_us =
            earlier(wake_us, self->options->rate > 0 ? earlier(self->end_us, self->due_us) : self->end_us);
    if (!TAILQ_EMPTY(&self->resting))
        wake_us = earlier(wake_us, TAILQ_FIRST(&self->resting)->rested_us);
    return wake_us;
}

/* The next signal of the kind does what it does by default. */
static void on_signal(load_t *self)
{
    struct signalfd_siginfo info;
    if (read(self->signals, &info, sizeof info) > 0) {
        self->is_stopped = true;
        sigprocmask(SIG_UNBLOCK, &self->signal_set, NULL);
    }
}

static wg_status_t turn(load_t *self, wg_error_t *error)
{
    struct epoll_event events[EVENTS_PER_TURN];
    int64_t now_us = stream_now_us();
    int64_t wait_us = next_wake_us(self, now_us) - now_us;
    if (wait_us < 0)
        wait_us = 0;
    /* Milliseconds would bunch the requests of a high rate. */
    struct timespec wait = {wait_us / SECOND_US, wait_us % SECOND_US * 1000};
    int count = epoll_pwait2(self->host.epoll, events, EVENTS_PER_TURN, &wait, NULL);
    if (count < 0 && errno != EINTR)
        return WG_FAIL(error, SYSTEM, "waiting for events", strerror(errno));
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr)
            stream_on_events(events[i].data.ptr, events[i].events);
        else
            on_signal(self);
    }
    tick(self);
    return WG_OK;
}

static wg_status_t run(load_t *self, wg_error_t *error)
{
    wg_status_t status = WG_OK;
    do {
        begin_due(self);
        if (self->in_flight_count > 0 || may_begin(self, stream_now_us()))
            status = turn(self, error);
        else
            break;
    } while (status == WG_OK);
    return status;
}

/* --- its start and end --- */

static wg_status_t watch_signals(load_t *self, wg_error_t *error)
{
    struct epoll_event event = {.events = EPOLLIN}; /* no stream */
    sigemptyset(&self->signal_set);
    sigaddset(&self->signal_set, SIGINT);
    sigaddset(&self->signal_set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &self->signal_set, NULL) == 0)
        self->signals = signalfd(-1, &self->signal_set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (self->signals < 0 || epoll_ctl(self->host.epoll, EPOLL_CTL_ADD, self->signals, &event) != 0)
        return WG_FAIL(error, SYSTEM, "watching signals", strerror(errno));
    return WG_OK;
}

static wg_status_t start(load_t *self, wg_error_t *error)
{
    const options_t *options = self->options;
    int64_t now_us = stream_now_us();
    self->host.buffer = malloc(BUFFER_BYTES);
    self->host.epoll = epoll_create1(EPOLL_CLOEXEC);
    self->idle = calloc(options->target_count, sizeof *self->idle);
    if (!self->host.buffer || self->host.epoll < 0 || !self->idle)
        return WG_FAIL(error, SYSTEM, "starting", strerror(errno));
    for (size_t i = 0; i < options->target_count; i++)
        TAILQ_INIT(&self->idle[i]);
    self->arrivals = random_seeded((uint64_t)options->seed, UINT64_MAX);
    self->due_us = now_us;
    self->slow_us = now_us + SLOW_TICK_US;
    self->stall_us = now_us + STALL_TICK_US;
    self->end_us = options->seconds > 0 ? now_us + (int64_t)(options->seconds * (double)SECOND_US) : NEVER;
    return watch_signals(self, error);
}

static void destroy_all(stream_list_t *list)
{
    stream_t *stream;
    while ((stream = TAILQ_FIRST(list))) {
        TAILQ_REMOVE(list, stream, link);
        stream_destroy(&stream);
    }
}

static void stop(load_t *self)
{
    destroy_all(&self->in_flight);
    destroy_all(&self->resting);
    for (size_t i = 0; self->idle && i < self->options->target_count; i++)
        destroy_all(&self->idle[i]);
    free(self->idle);
    free(self->host.buffer);
    if (self->host.epoll >= 0)
        close(self->host.epoll);
    if (self->signals >= 0)
        close(self->signals);
}

wg_status_t load_run(const options_t *options, statistics_t *statistics, double *seconds, wg_error_t *error)
{
    load_t self = {
        .options = options,
        .statistics = statistics,
        .host = {.options = options,
                 .statistics = statistics,
                 .epoll = -1,
                 .buffer_size = BUFFER_BYTES,
                 .on_end = on_end,
                 .context = &self},
        .signals = -1,
    };
    TAILQ_INIT(&self.in_flight);
    TAILQ_INIT(&self.resting);
    int64_t begun_us = stream_now_us();
    wg_status_t status = start(&self, error);
    if (status == WG_OK)
        status = run(&self, error);
    *seconds = (double)(stream_now_us() - begun_us) / (double)SECOND_US;
    stop(&self);
    return status;
}
