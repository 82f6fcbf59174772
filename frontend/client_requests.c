/* The life of a request: client_submit puts it into by_id and its choices into their ranks' dispatchers, and
 * sends the ADDs. Outputs find a choice by rank and wire id. client_end_choice takes a choice out of its
 * dispatcher; when the last one has ended well, or any of them badly, end_request ends the request. Both are
 * freed at the end of the turn only, since callbacks up the stack may still hold them, and after the ABORTs
 * were sent where they are due. */
#include "frontend/client_parts.h"

#include "common/log.h"

#include <string.h>

client_request_t *client_request_new(wire_text_t id, uint32_t count)
{
    client_request_t *self = calloc(1, sizeof *self + id.size);
    if (!self)
        return NULL;
    self->choices = calloc(count, sizeof(in_flight_t *));
    if (!self->choices) {
        free(self);
        return NULL;
    }
    memcpy(self + 1, id.data, id.size);
    self->id = (wire_text_t){(const char *)(self + 1), id.size};
    return self;
}

void client_request_free(client_request_t *request)
{
    if (!request)
        return;
    for (uint32_t i = 0; i < request->count; i++)
        in_flight_free(request->choices[i]);
    free(request->choices);
    free(request);
}

uint32_t client_request_rank(const client_request_t *request, uint32_t choice)
{
    return request->choices[choice]->rank;
}

/* --- ends --- */

void client_end_choice(client_t *client, in_flight_t *entry, bool tell_engine)
{
    client_rank_t *rank = &client->ranks[client_place(client, entry->rank)];
    dispatcher_remove(rank->dispatcher, entry);
    client->in_flight--;
    entry->request->live--;
    entry->ended = true;
    if (!tell_engine)
        return;
    entry->next = rank->aborting;
    rank->aborting = entry;
    turn_schedule(client->turn);
}

void client_retire_request(client_t *client, client_request_t *request)
{
    request->ended = true;
    request->next = client->ended;
    client->ended = request;
    turn_schedule(client->turn);
}

/* With the choices that are left, whose engines are told. */
static void end_request(client_t *self, client_request_t *request, client_cause_t cause)
{
    zhashx_delete(self->by_id, &request->id);
    self->counters.ended[cause]++;
    for (uint32_t i = 0; i < request->count; i++) {
        in_flight_t *entry = request->choices[i];
        if (!entry->ended)
            client_end_choice(self, entry, engine_link_route_up(self->link, entry->rank));
    }
    log_debug("request ended id=%.*s wire_id=%s rank=%u cause=%s", (int)request->id.size, request->id.data,
              request->choices[0]->wire_id.data, request->choices[0]->rank, client_cause_name(cause));
    client_retire_request(self, request);
}

static void fail(client_t *self, in_flight_t *entry, client_cause_t cause, const wg_error_t *error,
                 bool tell_engine)
{
    client_request_t *request = entry->request;
    client_end_choice(self, entry, tell_engine);
    end_request(self, request, cause);
    request->events->on_end(request->user, cause, error);
}

static void finish(client_t *self, in_flight_t *entry, client_cause_t cause)
{
    client_request_t *request = entry->request;
    client_end_choice(self, entry, false);
    if (request->live > 0)
        return;
    end_request(self, request, cause);
    request->events->on_end(request->user, cause, NULL);
}

static void fail_stream_closed(client_t *self, in_flight_t *entry, bool tell_engine)
{
    wg_error_t error;
    char id[LOG_TEXT_SIZE];
    WG_FAIL(&error, REQUEST_STREAM_CLOSED, log_text(id, entry->id.data, entry->id.size));
    fail(self, entry, CLIENT_STREAM_CLOSED, &error, tell_engine);
}

void client_abort(client_t *client, client_request_t *request, client_cause_t cause)
{
    if (!request->ended)
        end_request(client, request, cause);
}

void client_end_rank(client_t *client, uint32_t place, client_cause_t cause, const wg_error_t *error)
{
    dispatcher_t *dispatcher = client->ranks[place].dispatcher;
    bool tell_engine = engine_link_route_up(client->link, dispatcher_rank(dispatcher));
    in_flight_t *entry;
    while ((entry = dispatcher_first(dispatcher)) != NULL)
        fail(client, entry, cause, error, tell_engine);
}

void client_on_cut(void *context, uint32_t rank)
{
    client_t *self = context;
    uint32_t place = (uint32_t)client_place(self, rank);
    in_flight_t *entry;
    while ((entry = dispatcher_first(self->ranks[place].dispatcher)) != NULL)
        fail_stream_closed(self, entry, true);
    if (!dispatcher_answered(self->ranks[place].dispatcher))
        return; /* it is asked already */
    client_prove(self, place);
    client_settle(self, place);
}

void client_leave(client_t *client)
{
    client->leaving = true;
}

void client_refuse(client_t *client)
{
    client->draining = true;
}

void client_drain(client_t *client)
{
    wg_error_t error;
    client_refuse(client);
    wg_error_format(&error, WG_E_DRAINING, WG_E_DRAINING_FORMAT);
    for (uint32_t place = 0; place < client->frontend->rank_count; place++)
        client_end_rank(client, place, CLIENT_DRAINING, &error);
}

static void free_ended(client_t *self)
{
    while (self->ended) {
        client_request_t *request = self->ended;
        self->ended = request->next;
        client_request_free(request);
    }
}

void client_forget_requests(client_t *client)
{
    client_request_t *request;
    while (client->by_id && (request = zhashx_first(client->by_id)) != NULL) {
        zhashx_delete(client->by_id, &request->id);
        for (uint32_t i = 0; i < request->count; i++) {
            if (!request->choices[i]->ended)
                client_end_choice(client, request->choices[i], false);
        }
        client_request_free(request);
    }
    free_ended(client);
}

/* One ABORT with all ids of the list. What cannot be sent is not lost: the engine's next output for such an
 * id is an orphan and gets its ABORT then. */
static void send_aborts(client_t *self, uint32_t rank, const in_flight_t *list)
{
    size_t count = 0;
    for (const in_flight_t *entry = list; entry; entry = entry->next)
        count++;
    wire_text_t *ids = malloc(count * sizeof *ids);
    if (!ids)
        return;
    size_t at = 0;
    int64_t now_ms = zclock_mono();
    for (const in_flight_t *entry = list; entry; entry = entry->next) {
        ids[at++] = entry->wire_id;
        /* the outputs that are already on their way need no second ABORT */
        (void)!orphans_may_abort(&self->orphans, entry->wire_id, now_ms);
    }
    msgpack_sbuffer_clear(&self->payload);
    if (wire_abort_encode(&self->payload, ids, count, NULL) == WG_OK &&
        engine_link_send(self->link, rank, WIRE_REQUEST_ABORT, self->payload.data, self->payload.size,
                         NULL) == WG_OK)
        self->counters.aborts_sent += count;
    free(ids);
}

void client_end_turn(void *context)
{
    client_t *self = context;
    for (uint32_t place = 0; place < self->frontend->rank_count; place++) {
        client_rank_t *rank = &self->ranks[place];
        if (!rank->aborting)
            continue;
        send_aborts(self, dispatcher_rank(rank->dispatcher), rank->aborting);
        rank->aborting = NULL;
    }
    free_ended(self);
}

/* --- the way out --- */

typedef struct {
    const wire_bytes_t *frames; /* the envelope, then tensors */
    size_t count;
} message_t;

typedef struct {
    bool has_tokens;
    bool has_prompt;
    wire_logprobs_t tokens;
    wire_logprobs_t prompt;
} logprobs_t;

static void abort_orphan(client_t *self, uint32_t rank, const wire_output_t *output)
{
    self->counters.orphan_outputs++;
    if (output->finish != WIRE_FINISH_NONE ||
        !orphans_may_abort(&self->orphans, output->request_id, zclock_mono()))
        return;
    msgpack_sbuffer_clear(&self->payload);
    if (wire_abort_encode(&self->payload, &output->request_id, 1, NULL) == WG_OK &&
        engine_link_send(self->link, rank, WIRE_REQUEST_ABORT, self->payload.data, self->payload.size,
                         NULL) == WG_OK)
        self->counters.aborts_sent++;
}

static void end_by_engine(client_t *self, in_flight_t *entry, wire_finish_t reason)
{
    wg_error_t error;
    char id[LOG_TEXT_SIZE];
    log_text(id, entry->id.data, entry->id.size);
    switch (reason) {
    case WIRE_FINISH_STOP:
        finish(self, entry, CLIENT_STOP);
        break;
    case WIRE_FINISH_LENGTH:
        finish(self, entry, CLIENT_LENGTH);
        break;
    case WIRE_FINISH_REPETITION:
        finish(self, entry, CLIENT_REPETITION);
        break;
    case WIRE_FINISH_ABORT:
        WG_FAIL(&error, REQUEST_ABORTED, id, "by the engine");
        fail(self, entry, CLIENT_ABORT, &error, false);
        break;
    case WIRE_FINISH_ERROR:
        WG_FAIL(&error, ENGINE_REQUEST_ERROR, id);
        fail(self, entry, CLIENT_ERROR, &error, false);
        break;
    case WIRE_FINISH_NONE:
        break;
    }
}

/* A connection that was reset under the engine's feet loses what was on its way. The count tells, where the
 * engine says that it made all it was asked for; more than that it must not make. */
static bool has_all_tokens(const in_flight_t *entry, wire_finish_t finish)
{
    if (finish == WIRE_FINISH_LENGTH && entry->fits)
        return entry->tokens == entry->max_tokens;
    return entry->tokens <= entry->max_tokens;
}

/* Tokens without the logprobs that were asked for would leave all that follow out of step. */
static wg_status_t read_logprobs(const in_flight_t *entry, const wire_output_t *output,
                                 const message_t *message, logprobs_t *out, wg_error_t *error)
{
    const client_request_t *request = entry->request;
    wg_status_t status = WG_OK;
    out->has_tokens = request->has_logprobs && output->token_count > 0;
    out->has_prompt = request->has_prompt_logprobs && output->prompt_logprobs.size > 0;
    if (out->has_tokens)
        status = wire_logprobs_read(&out->tokens, output->logprobs, message->frames, message->count, error);
    if (status == WG_OK && out->has_tokens && out->tokens.positions != output->token_count)
        status = WG_FAIL(error, UNSUPPORTED_AUX_FRAMES, "there is not one row of logprobs for each token");
    if (status == WG_OK && out->has_prompt)
        status =
            wire_logprobs_read(&out->prompt, output->prompt_logprobs, message->frames, message->count, error);
    return status;
}

static void pass_on(client_t *self, in_flight_t *entry, const wire_output_t *output, const message_t *message)
{
    wg_error_t error;
    logprobs_t logprobs;
    const client_request_t *request = entry->request;
    if (read_logprobs(entry, output, message, &logprobs, &error) != WG_OK) {
        faults_report_rank(self->faults, FAULTS_OUTPUT, entry->rank, &error);
        fail(self, entry, CLIENT_DECODE, &error, output->finish == WIRE_FINISH_NONE);
        return;
    }
    const client_output_t passed = {
        .wire = output,
        .logprobs = logprobs.has_tokens ? &logprobs.tokens : NULL,
        .prompt_logprobs = logprobs.has_prompt ? &logprobs.prompt : NULL,
    };
    request->events->on_output(request->user, entry->choice, &passed);
}

static void handle_output(client_t *self, uint32_t place, const message_t *message,
                          const wire_output_t *output, wg_status_t status, const wg_error_t *error)
{
    dispatcher_t *dispatcher = self->ranks[place].dispatcher;
    in_flight_t *entry = output->request_id.data ? dispatcher_find(dispatcher, output->request_id) : NULL;
    if (status != WG_OK) {
        faults_report_rank(self->faults, FAULTS_OUTPUT, dispatcher_rank(dispatcher), error);
        if (entry)
            fail(self, entry, CLIENT_DECODE, error, true);
        return;
    }
    if (!entry) {
        abort_orphan(self, dispatcher_rank(dispatcher), output);
        return;
    }
    entry->tokens += output->token_count;
    if (!has_all_tokens(entry, output->finish)) {
        fail_stream_closed(self, entry, true);
        return;
    }
    pass_on(self, entry, output, message);
    if (!entry->ended)
        end_by_engine(self, entry, output->finish);
}

/* What the engine has finished without a final output. */
static void handle_finished(client_t *self, uint32_t place, const wire_outputs_t *outputs)
{
    wire_outputs_cursor_t cursor;
    wire_text_t wire_id;
    wire_finished_begin(&cursor, outputs);
    while (wire_finished_next(&cursor, &wire_id)) {
        in_flight_t *entry = dispatcher_find(self->ranks[place].dispatcher, wire_id);
        if (entry)
            fail_stream_closed(self, entry, false);
    }
}

static wg_status_t check_envelope(const client_t *self, const wire_outputs_t *outputs, int64_t *place,
                                  wg_error_t *error)
{
    const char *fault = NULL;
    *place = client_place(self, outputs->engine_index);
    if (*place < 0)
        fault = "this frontend does not serve the rank";
    else if (outputs->has_wave_complete || outputs->has_start_wave)
        fault = "a wave";
    else if (outputs->has_utility &&
             outputs->utility.call_id >= 0 && /* negative: notices that nobody asked for */
             !client_asked(self, outputs->utility.call_id))
        fault = "the answer to a utility call that nobody made";
    return fault ? WG_FAIL(error, UNEXPECTED_DISPATCHER_OUTPUT, outputs->engine_index, fault) : WG_OK;
}

int64_t client_sender_of(void *context, const wire_bytes_t *frames, size_t count)
{
    wire_outputs_t outputs;
    int64_t place;
    (void)count;
    wg_status_t status = wire_outputs_decode(&outputs, frames[0].data, frames[0].size, NULL);
    if (status == WG_OK)
        status = check_envelope(context, &outputs, &place, NULL);
    return status == WG_OK ? (int64_t)outputs.engine_index : -1;
}

bool client_on_outputs(void *context, const wire_bytes_t *frames, size_t count)
{
    client_t *self = context;
    wire_outputs_t outputs;
    wire_outputs_cursor_t cursor;
    wire_output_t output;
    wg_error_t error;
    int64_t place = -1;
    const message_t message = {frames, count};
    wg_status_t status = wire_outputs_decode(&outputs, frames[0].data, frames[0].size, &error);
    bool is_read = status == WG_OK;
    if (is_read)
        status = check_envelope(self, &outputs, &place, &error);
    if (status != WG_OK) {
        faults_report_rank(self->faults, FAULTS_OUTPUT, outputs.engine_index, &error);
        return is_read;
    }
    wire_outputs_begin(&cursor, &outputs);
    while (wire_outputs_next(&cursor, &output, &status, &error)) {
        handle_output(self, (uint32_t)place, &message, &output, status, &error);
        is_read = is_read && output.request_id.data; /* else it may have been of any request */
    }
    handle_finished(self, (uint32_t)place, &outputs);
    client_silence_heard(self, (uint32_t)place);
    if (outputs.has_utility && outputs.utility.call_id >= 0)
        client_answered(self, (uint32_t)place, outputs.utility.call_id);
    return is_read;
}
