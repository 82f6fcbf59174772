#include "tests/bench/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

/* A slow reader's: so little room in its socket that the server notices, and 10 KiB/s at the loop's ticks. */
#define SLOW_SOCKET_BYTES 2048
#define SLOW_READ_BYTES 512u

int64_t stream_now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

stream_t *stream_new(const stream_host_t *host, size_t target)
{
    stream_t *self = calloc(1, sizeof *self);
    if (self) {
        self->host = host;
        self->target = target;
        self->fd = -1;
    }
    return self;
}

/* --- the connection --- */

/* Closing takes it out of epoll. */
static void disconnect(stream_t *self)
{
    if (self->fd >= 0)
        close(self->fd);
    self->fd = -1;
    self->watched = 0;
}

void stream_destroy(stream_t **stream)
{
    if (!*stream)
        return;
    disconnect(*stream);
    answer_free(&(*stream)->answer);
    text_buffer_free(&(*stream)->request);
    free(*stream);
    *stream = NULL;
}

/* 0 events: out of epoll, which otherwise would report a closed connection again and again. */
static int watch(stream_t *self, uint32_t events)
{
    if (events == self->watched)
        return 0;
    int operation = events == 0 ? EPOLL_CTL_DEL : self->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    struct epoll_event event = {.events = events, .data.ptr = self};
    self->watched = events;
    return epoll_ctl(self->host->epoll, operation, self->fd, &event);
}

/* False, with errno, if it failed at once. */
static bool begin_connection(stream_t *self)
{
    static const int on = 1;
    static const int small = SLOW_SOCKET_BYTES;
    const target_t *target = &self->host->options->targets[self->target];
    const struct sockaddr *address = (const struct sockaddr *)&target->address;
    self->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (self->fd < 0 || setsockopt(self->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        return false;
    if (self->plan.is_slow && setsockopt(self->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) != 0)
        return false;
    self->host->statistics->connections++;
    if (connect(self->fd, address, target->address_size) != 0 && errno != EINPROGRESS)
        return false;
    return watch(self, EPOLLIN | EPOLLOUT) == 0;
}

/* --- the end of a request --- */

static void note_times(const stream_t *self, outcome_kind_t kind)
{
    if (kind == OUTCOME_OK && !self->plan.is_slow)
        histogram_add(&self->host->statistics->whole, stream_now_us() - self->begun_us);
}

static void complain(const stream_t *self, const outcome_t *outcome)
{
    statistics_t *statistics = self->host->statistics;
    const answer_wrong_t *wrong = &self->answer.first_wrong;
    if (self->answer.wrong_tokens > 0)
        statistics_complain(statistics, self->plan.number, "token %lld is %lld, not %lld (-1: none)",
                            (long long)wrong->position, (long long)wrong->got, (long long)wrong->wanted);
    if (outcome->kind == OUTCOME_MALFORMED)
        statistics_complain(statistics, self->plan.number, "malformed: %s", outcome->detail);
    if (outcome->kind == OUTCOME_STALLED)
        statistics_complain(statistics, self->plan.number, "stalled after %lld tokens",
                            (long long)self->answer.tokens);
}

static void finish(stream_t *self, outcome_t outcome)
{
    statistics_t *statistics = self->host->statistics;
    bool is_sent = self->state == STREAM_READING && self->sent == self->request.size;
    bool keeps = is_sent && !self->plan.is_slow && answer_keeps_connection(&self->answer);
    self->state = STREAM_IDLE;
    if (!keeps)
        disconnect(self);
    statistics->tokens += self->answer.tokens;
    statistics->wrong_tokens += self->answer.wrong_tokens;
    note_times(self, outcome.kind);
    complain(self, &outcome);
    statistics_end(statistics, &outcome);
    self->host->on_end(self->host->context, self, outcome.kind);
}

static void fail_to_connect(stream_t *self, int code)
{
    finish(self, outcome_of(OUTCOME_NOT_CONNECTED, strerror(code)));
}

static void drop(stream_t *self)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (self->plan.resets)
        (void)setsockopt(self->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    disconnect(self);
    finish(self, outcome_of(OUTCOME_DROPPED, plan_fate_name(self->plan.fate)));
}

void stream_give_up(stream_t *stream)
{
    finish(stream, outcome_of(OUTCOME_STALLED, NULL));
}

/* --- the answer --- */

/* Events that came together have no gap between them. */
static void note_tokens(stream_t *self, int64_t events_before, int64_t now_us)
{
    statistics_t *statistics = self->host->statistics;
    int64_t new_events = self->answer.token_events - events_before;
    if (new_events == 0)
        return;
    if (!self->plan.is_slow) {
        int64_t since_us = now_us - (events_before == 0 ? self->begun_us : self->token_us);
        histogram_add(events_before == 0 ? &statistics->first_token : &statistics->gap, since_us);
        for (int64_t i = 1; i < new_events; i++)
            histogram_add(&statistics->gap, 0);
    }
    self->token_us = now_us;
}

static bool is_to_be_dropped(const stream_t *self)
{
    return (self->plan.fate == PLAN_DROP_AFTER_FIRST_EVENT && self->answer.token_events > 0) ||
           (self->plan.fate == PLAN_DROP_IN_THE_MIDDLE && self->answer.tokens >= self->plan.drop_tokens);
}

static void receive(stream_t *self, size_t most)
{
    ssize_t got = recv(self->fd, self->host->buffer, most, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        finish(self, outcome_of(OUTCOME_CUT, self->answer.has_begun ? "in_answer" : "unanswered"));
        return;
    }
    int64_t events_before = self->answer.token_events;
    self->moved_us = stream_now_us();
    answer_feed(&self->answer, self->host->buffer, (size_t)got);
    note_tokens(self, events_before, self->moved_us);
    if (self->answer.is_over)
        finish(self, self->answer.outcome);
    else if (is_to_be_dropped(self))
        drop(self);
}

void stream_read_slowly(stream_t *stream)
{
    if (stream->state == STREAM_READING && stream->plan.is_slow)
        receive(stream, SLOW_READ_BYTES);
}

/* --- the request --- */

static void send_more(stream_t *self)
{
    size_t left = self->request.size - self->sent;
    ssize_t taken = send(self->fd, self->request.data + self->sent, left, MSG_NOSIGNAL);
    bool is_broken = taken < 0 && errno != EAGAIN && errno != EINTR;
    if (taken > 0) {
        self->sent += (size_t)taken;
        self->moved_us = stream_now_us();
    }
    if (!is_broken && self->sent < self->request.size) {
        (void)watch(self, EPOLLIN | EPOLLOUT);
        return;
    }
    /* Of a broken connection, too, there may be an answer to read; reading tells how it ended. */
    self->state = STREAM_READING;
    if (self->plan.fate == PLAN_DROP_AFTER_REQUEST && !is_broken)
        drop(self);
    else
        (void)watch(self, self->plan.is_slow ? 0 : EPOLLIN);
}

static void on_connected(stream_t *self)
{
    int code = 0;
    socklen_t size = sizeof code;
    if (getsockopt(self->fd, SOL_SOCKET, SO_ERROR, &code, &size) != 0)
        code = errno;
    if (code != 0) {
        fail_to_connect(self, code);
        return;
    }
    self->state = STREAM_SENDING;
    self->moved_us = stream_now_us();
    send_more(self);
}

/* The server closed a connection that was kept, or says something that nobody asked for. */
static void on_idle_events(stream_t *self)
{
    ssize_t got = recv(self->fd, self->host->buffer, self->host->buffer_size, 0);
    if (got > 0)
        self->host->statistics->stray_bytes += got;
    disconnect(self);
}

void stream_on_events(stream_t *stream, uint32_t events)
{
    if (stream->state == STREAM_IDLE) {
        on_idle_events(stream);
    } else if (stream->state == STREAM_CONNECTING) {
        on_connected(stream);
    } else {
        if (events & ~(uint32_t)EPOLLOUT)
            receive(stream, stream->host->buffer_size);
        if (stream->state == STREAM_SENDING && (events & EPOLLOUT))
            send_more(stream);
    }
}

static void write_request(stream_t *self)
{
    const options_t *options = self->host->options;
    text_buffer_t body = {0};
    answer_wanted_t wanted = {
        .prompt_h = plan_write_body(&self->plan, options, &body),
        .max_tokens = options->max_tokens,
        .vocab_size = (uint32_t)options->vocab_size,
        .is_stream = !options->no_stream,
        .is_checked = options->check,
    };
    answer_begin(&self->answer, &wanted);
    text_buffer_clear(&self->request);
    text_buffer_format(&self->request,
                       "POST /inference/v1/generate HTTP/1.1\r\nHost: %s\r\n"
                       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                       options->targets[self->target].host, body.size);
    text_buffer_bytes(&self->request, body.data, body.size);
    self->request.failed |= body.failed;
    text_buffer_free(&body);
    self->sent = 0;
}

void stream_begin(stream_t *stream, uint64_t number, int64_t due_us)
{
    stream->plan = plan_make(stream->host->options, number);
    stream->begun_us = due_us;
    stream->moved_us = stream_now_us();
    stream->state = STREAM_CONNECTING;
    write_request(stream);
    if (stream->plan.is_slow || stream->plan.fate == PLAN_DROP_CONNECTING)
        disconnect(stream);
    bool is_new = stream->fd < 0;
    if (stream->request.failed)
        fail_to_connect(stream, ENOMEM);
    else if (is_new && !begin_connection(stream))
        fail_to_connect(stream, errno);
    else if (stream->plan.fate == PLAN_DROP_CONNECTING)
        drop(stream);
    else if (!is_new) {
        stream->state = STREAM_SENDING;
        send_more(stream);
    }
}
