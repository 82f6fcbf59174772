/* The head of a stream goes out with its first event, so that a failure before it still gets its own status.
 * After the head, a failure is one error event and the terminator (design.md 5).
 *
 * An event carries what a choice has pending. As long as the reader keeps up, that is one output of the
 * engine; when it lags, outputs add up until the transport has taken what was written before. */
#include "frontend/generation_parts.h"

#include <string.h>

/* From so many untaken bytes on a reader lags. */
#define LAG_BYTES 4096u

void generation_free(generation_t *generation)
{
    generation_clock_remove(generation);
    answer_free(&generation->answer);
    text_buffer_free(&generation->event);
    free(generation);
}

/* --- what is written --- */

static size_t response_headers(const generation_t *self, const char *content_type, http_header_t out[3])
{
    out[0] = (http_header_t){"Content-Type", content_type};
    out[1] = (http_header_t){ID_HEADER, self->id};
    out[2] = (http_header_t){RANK_HEADER, self->rank};
    return self->rank[0] ? 3 : 2;
}

static void send_event(generation_t *self)
{
    if (!self->begun) {
        http_header_t headers[3];
        size_t count = response_headers(self, "text/event-stream", headers);
        http_stream_begin(self->exchange, 200, headers, count);
        self->begun = true;
    }
    http_stream_write(self->exchange, self->event.data, self->event.size);
    text_buffer_clear(&self->event);
    self->written_ms = zclock_mono();
}

static void end_stream(generation_t *self)
{
    text_buffer_text(&self->event, "data: [DONE]\n\n");
    send_event(self);
    http_stream_end(self->exchange);
}

static void write_choice(generation_t *self, uint32_t number)
{
    text_buffer_text(&self->event, "data: ");
    self->route->form->write_event(&self->event, &self->answer, number);
    text_buffer_text(&self->event, "\n\n");
    answer_sent(&self->answer.choices[number]);
}

/* False without memory: then the stream was cut, for one with a hole in it would be worse. */
static bool write_pending(generation_t *self)
{
    bool failed = answer_failed(&self->answer);
    for (uint32_t i = 0; i < self->answer.choice_count; i++) {
        if (self->answer.choices[i].is_pending)
            write_choice(self, i);
    }
    if (failed || self->event.failed)
        http_stream_cut(self->exchange);
    return !failed && !self->event.failed;
}

static void write_error_event(generation_t *self, const wg_error_t *error)
{
    text_buffer_text(&self->event, "data: ");
    http_error_json(&self->event, error);
    text_buffer_text(&self->event, "\n\n");
}

void generation_respond_error(generation_t *generation, const wg_error_t *error)
{
    const http_header_t id = {ID_HEADER, generation->id};
    http_respond_error(generation->exchange, error, &id, generation->id[0] ? 1 : 0);
}

/* The one end of an exchange that went wrong; frees it. */
static void end_badly(generation_t *self, const wg_error_t *error)
{
    if (self->begun) {
        text_buffer_clear(&self->event);
        if (write_pending(self)) { /* what the engine did make is the reader's */
            write_error_event(self, error);
            end_stream(self);
        }
    } else {
        generation_respond_error(self, error);
    }
    generation_free(self);
}

static void respond_whole(generation_t *self)
{
    text_buffer_t body = {0};
    http_header_t headers[3];
    self->route->form->write_whole(&body, &self->answer);
    if (body.failed || answer_failed(&self->answer)) {
        wg_error_t error;
        WG_FAIL(&error, SYSTEM, "response", "out of memory");
        generation_respond_error(self, &error);
    } else {
        size_t count = response_headers(self, "application/json", headers);
        http_respond(self->exchange, 200, headers, count, body.data, body.size);
    }
    text_buffer_free(&body);
}

static void finish_stream(generation_t *self)
{
    if (!write_pending(self))
        return;
    if (self->include_usage) {
        text_buffer_text(&self->event, "data: ");
        self->route->form->write_usage_event(&self->event, &self->answer);
        text_buffer_text(&self->event, "\n\n");
    }
    end_stream(self);
}

/* --- the request's events --- */

/* What waits for it is dropped: as an event it would take its memory twice more, for a reader that may never
 * come. */
static void stop_slow_reader(generation_t *self, size_t unread)
{
    wg_error_t error;
    for (uint32_t i = 0; i < self->answer.choice_count; i++)
        answer_sent(&self->answer.choices[i]);
    client_abort(self->all->client, self->request, CLIENT_SLOW_CONSUMER);
    WG_FAIL(&error, SLOW_CONSUMER, self->id, unread);
    end_badly(self, &error);
}

static void give_up(generation_t *self)
{
    client_abort(self->all->client, self->request, CLIENT_GONE);
    generation_free(self);
}

static void on_output(void *user, uint32_t choice, const client_output_t *output)
{
    generation_t *self = user;
    size_t waiting = self->begun ? http_stream_waiting(self->exchange) : 0;
    bool lags = waiting >= LAG_BYTES;
    if (self->stream && lags && output->wire->finish == WIRE_FINISH_NONE) {
        size_t unread = waiting + answer_pending_bytes(&self->answer);
        if (unread > (size_t)self->all->config->limits.max_stream_bytes) {
            stop_slow_reader(self, unread);
            return;
        }
    }
    answer_add(&self->answer, self->route->form, choice, output);
    if (!self->stream || lags || !self->answer.choices[choice].is_pending)
        return;
    if (write_pending(self))
        send_event(self);
    else
        give_up(self);
}

static void on_end(void *user, client_cause_t cause, const wg_error_t *error)
{
    (void)cause;
    generation_t *self = user;
    if (error) {
        end_badly(self, error);
        return;
    }
    if (self->stream)
        finish_stream(self);
    else
        respond_whole(self);
    generation_free(self);
}

const client_events_t generation_events = {.on_output = on_output, .on_end = on_end};

void generation_expire(generation_t *generation)
{
    wg_error_t error;
    client_abort(generation->all->client, generation->request, CLIENT_DEADLINE);
    WG_FAIL(&error, DEADLINE_EXCEEDED, generation->id, (long long)generation->deadline_ms);
    end_badly(generation, &error);
}

/* --- the exchange's --- */

void generation_keep_alive(generation_t *generation, int64_t now_ms)
{
    if (generation->begun && http_stream_waiting(generation->exchange) > 0) {
        generation->written_ms = now_ms; /* its silence is its reader's */
        return;
    }
    text_buffer_text(&generation->event, ": keep-alive\n\n");
    send_event(generation);
}

static void on_room(void *context, http_exchange_t *exchange)
{
    (void)context;
    generation_t *self = http_exchange_user(exchange);
    if (!write_pending(self))
        give_up(self);
    else if (self->event.size > 0)
        send_event(self);
}

static void on_gone(void *context, http_exchange_t *exchange)
{
    (void)context;
    give_up(http_exchange_user(exchange));
}

void generation_watch(generation_t *generation)
{
    http_exchange_watch(generation->exchange, on_gone, generation);
    if (generation->stream)
        http_exchange_on_room(generation->exchange, on_room);
}
