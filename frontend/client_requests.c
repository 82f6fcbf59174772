/* The life of a request: client_submit puts an entry into by_id and into its rank's dispatcher and sends the
 * ADD. Outputs find it by rank and wire id. One function, take_out, ends it: out of both sets, counted, onto
 * a list that lives until the end of the turn, since callbacks up the stack may still hold it. Only then is
 * it freed, after its ABORT was sent where one is due. */
#include "frontend/client_parts.h"

#include "common/log.h"
#include "common/rank_map.h"

#include <sys/random.h>

/* --- ends --- */

static void take_out(client_t *self, in_flight_t *entry, client_cause_t cause, bool tell_engine)
{
    client_rank_t *rank = &self->ranks[client_place(self, entry->rank)];
    zhashx_delete(self->by_id, &entry->id);
    dispatcher_remove(rank->dispatcher, entry);
    self->counters.ended[cause]++;
    in_flight_t **list = tell_engine ? &rank->aborting : &self->ended;
    entry->ended = true;
    entry->next = *list;
    *list = entry;
    turn_schedule(self->turn);
    log_debug("request ended id=%.*s wire_id=%s rank=%u cause=%s", (int)entry->id.size, entry->id.data,
              entry->wire_id.data, entry->rank, client_cause_name(cause));
}

static void end(client_t *self, in_flight_t *entry, client_cause_t cause, const wg_error_t *error,
                bool tell_engine)
{
    take_out(self, entry, cause, tell_engine);
    entry->events->on_end(entry->user, cause, error);
}

void client_abort(client_t *client, in_flight_t *request, client_cause_t cause)
{
    if (!request->ended)
        take_out(client, request, cause, true);
}

void client_end_rank(client_t *client, uint32_t place, client_cause_t cause, const wg_error_t *error)
{
    dispatcher_t *dispatcher = client->ranks[place].dispatcher;
    bool tell_engine = engine_link_route_up(client->link, dispatcher_rank(dispatcher));
    in_flight_t *entry;
    while ((entry = dispatcher_first(dispatcher)) != NULL)
        end(client, entry, cause, error, tell_engine);
}

void client_drain(client_t *client)
{
    wg_error_t error;
    client->draining = true;
    wg_error_format(&error, WG_E_DRAINING, WG_E_DRAINING_FORMAT);
    for (uint32_t place = 0; place < client->frontend->rank_count; place++)
        client_end_rank(client, place, CLIENT_DRAINING, &error);
}

static void free_list(in_flight_t **list)
{
    while (*list) {
        in_flight_t *entry = *list;
        *list = entry->next;
        in_flight_free(entry);
    }
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
        free_list(&rank->aborting);
    }
    free_list(&self->ended);
}

/* --- the way in --- */

static void describe_ranks(const client_t *self, char *text, size_t size, int64_t only_place)
{
    int64_t now_ms = zclock_mono();
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t place = 0; place < self->frontend->rank_count && at + 1 < size; place++) {
        const dispatcher_t *dispatcher = self->ranks[place].dispatcher;
        if (only_place >= 0 && place != only_place)
            continue;
        int64_t since_ms = dispatcher_since_ms(dispatcher);
        int written = snprintf(text + at, size - at, "%srank %u: %s", at > 0 ? ", " : "",
                               dispatcher_rank(dispatcher), wg_rank_state_name(dispatcher_state(dispatcher)));
        at += (size_t)written;
        if (since_ms > 0 && at < size)
            at +=
                (size_t)snprintf(text + at, size - at, " for %lld s", (long long)(now_ms - since_ms) / 1000);
    }
}

wg_status_t client_not_connected(const client_t *client, const char *rank, wg_error_t *error)
{
    uint32_t count = 0;
    char list[256];
    uint32_t *ready = malloc(client->frontend->rank_count * sizeof *ready);
    for (uint32_t place = 0; ready && place < client->frontend->rank_count; place++) {
        if (dispatcher_state(client->ranks[place].dispatcher) == WG_RANK_READY)
            ready[count++] = client->frontend->ranks[place];
    }
    rank_map_text(list, sizeof list, ready, count);
    free(ready);
    return WG_FAIL(error, INVALID_DATA_PARALLEL_RANK, rank, list);
}

static bool is_ready(const client_rank_t *rank)
{
    return dispatcher_state(rank->dispatcher) == WG_RANK_READY;
}

static wg_status_t choose_rank(client_t *self, const client_submission_t *submission, uint32_t *place,
                               wg_error_t *error)
{
    char text[256];
    int64_t found = submission->pinned ? client_place(self, submission->rank) : -1;
    if (submission->pinned && found < 0) {
        snprintf(text, sizeof text, "%u", submission->rank);
        return client_not_connected(self, text, error);
    }
    int64_t now_ms = zclock_mono();
    if (!submission->pinned) {
        for (uint32_t i = 0; i < self->frontend->rank_count; i++) {
            const client_rank_t *rank = &self->ranks[i];
            const wire_load_t *load = client_load(self, i, now_ms);
            self->candidates[i] = (rank_choice_candidate_t){
                .ready = is_ready(rank),
                .client_count = rank->client_count,
                .in_flight = dispatcher_in_flight(rank->dispatcher),
                .has_load = load != NULL,
                .load = load ? *load : (wire_load_t){0},
            };
        }
        found = rank_choice_pick(self->candidates, self->frontend->rank_count, &self->choice_turn);
    }
    if (found < 0 || !is_ready(&self->ranks[found])) {
        describe_ranks(self, text, sizeof text, found);
        return WG_FAIL(error, NO_RANK_READY, text);
    }
    *place = (uint32_t)found;
    return WG_OK;
}

/* The prompt and what is to be generated must fit into the smallest model length of the ready ranks, so that
 * it does not depend on the choice of the rank what is valid. Sets max_tokens where it is absent. */
static wg_status_t check_lengths(const client_t *self, const client_submission_t *submission,
                                 int64_t *max_tokens, wg_error_t *error)
{
    int64_t limit = client_max_model_len(self);
    int64_t prompt = (int64_t)submission->prompt_count;
    if (limit == WIRE_UNKNOWN && *max_tokens == 0)
        return wg_invalid_field(error, "sampling_params.max_tokens",
                                "must be given: no rank has told its max_model_len");
    if (limit == WIRE_UNKNOWN)
        return WG_OK;
    if (prompt >= limit)
        return wg_invalid_field(error, "token_ids",
                                "the prompt has %lld tokens, but must have less than max_model_len = %lld",
                                (long long)prompt, (long long)limit);
    if (*max_tokens > limit - prompt)
        return wg_invalid_field(error, "sampling_params.max_tokens",
                                "%lld tokens and a prompt of %lld are more than max_model_len = %lld",
                                (long long)*max_tokens, (long long)prompt, (long long)limit);
    if (*max_tokens == 0)
        *max_tokens = limit - prompt;
    if (submission->sampling.min_tokens > *max_tokens)
        return wg_invalid_field(error, "sampling_params.min_tokens",
                                "%lld is more than the %lld tokens that can be generated",
                                (long long)submission->sampling.min_tokens, (long long)*max_tokens);
    return WG_OK;
}

static wg_status_t send_add(client_t *self, uint32_t place, const in_flight_t *entry,
                            const client_submission_t *submission, int64_t max_tokens, wg_error_t *error)
{
    wire_add_t add = {
        .request_id = entry->wire_id,
        .external_req_id = entry->id,
        .prompt_token_ids = submission->prompt,
        .prompt_count = submission->prompt_count,
        .sampling = submission->sampling,
        .arrival_time = (double)zclock_time() / 1000.0,
        .cache_salt = submission->cache_salt,
        .data_parallel_rank = submission->pinned ? (int64_t)submission->rank : -1,
        .client_index = self->ranks[place].client_index,
        .priority = submission->priority,
    };
    add.sampling.max_tokens = max_tokens;
    msgpack_sbuffer_clear(&self->payload);
    wg_status_t status = wire_add_encode(&self->payload, &add, error);
    if (status == WG_OK)
        status = engine_link_send(self->link, entry->rank, WIRE_REQUEST_ADD, self->payload.data,
                                  self->payload.size, error);
    return status;
}

static wg_status_t check_admission(const client_t *self, const client_submission_t *submission,
                                   wg_error_t *error)
{
    size_t limit = (size_t)self->config->limits.max_in_flight;
    if (self->draining)
        return wg_error_format(error, WG_E_DRAINING, WG_E_DRAINING_FORMAT);
    if (zhashx_lookup(self->by_id, &submission->id)) {
        char id[LOG_TEXT_SIZE];
        return WG_FAIL(error, DUPLICATE_REQUEST_ID, log_text(id, submission->id.data, submission->id.size));
    }
    if (client_in_flight(self) >= limit)
        return WG_FAIL(error, OVERLOADED, limit);
    return WG_OK;
}

/* Into both sets, or into none. */
static wg_status_t insert(client_t *self, uint32_t place, in_flight_t *entry, wg_error_t *error)
{
    wg_status_t status = dispatcher_insert(self->ranks[place].dispatcher, entry, error);
    if (status != WG_OK)
        return status;
    if (zhashx_insert(self->by_id, &entry->id, entry) != 0) {
        dispatcher_remove(self->ranks[place].dispatcher, entry);
        return WG_FAIL(error, SYSTEM, "in-flight set", "out of memory");
    }
    return WG_OK;
}

static void take_back(client_t *self, uint32_t place, in_flight_t *entry)
{
    zhashx_delete(self->by_id, &entry->id);
    dispatcher_remove(self->ranks[place].dispatcher, entry);
    in_flight_free(entry);
}

wg_status_t client_submit(client_t *client, const client_submission_t *submission,
                          const client_events_t *events, void *user, in_flight_t **out, wg_error_t *error)
{
    uint32_t place = 0;
    uint32_t salt;
    int64_t max_tokens = submission->sampling.max_tokens;
    *out = NULL;
    wg_status_t status = check_admission(client, submission, error);
    if (status == WG_OK)
        status = choose_rank(client, submission, &place, error);
    if (status == WG_OK)
        status = check_lengths(client, submission, &max_tokens, error);
    if (status != WG_OK)
        return status;
    in_flight_t *entry = NULL;
    if (getrandom(&salt, sizeof salt, 0) == sizeof salt)
        entry = in_flight_new(submission->id, salt);
    if (!entry)
        return WG_FAIL(error, SYSTEM, "request", "out of memory");
    entry->rank = client->frontend->ranks[place];
    entry->events = events;
    entry->user = user;
    status = insert(client, place, entry, error);
    if (status != WG_OK) {
        in_flight_free(entry);
        return status;
    }
    status = send_add(client, place, entry, submission, max_tokens, error);
    if (status != WG_OK) {
        take_back(client, place, entry);
        return status;
    }
    client->counters.accepted++;
    *out = entry;
    return WG_OK;
}

wg_status_t client_ready(const client_t *client, wg_error_t *error)
{
    char text[256];
    if (client->draining)
        return wg_error_format(error, WG_E_DRAINING, WG_E_DRAINING_FORMAT);
    for (uint32_t place = 0; place < client->frontend->rank_count; place++) {
        if (!is_ready(&client->ranks[place]))
            continue;
        size_t limit = (size_t)client->config->limits.max_in_flight;
        return client_in_flight(client) < limit ? WG_OK : WG_FAIL(error, OVERLOADED, limit);
    }
    describe_ranks(client, text, sizeof text, -1);
    return WG_FAIL(error, NO_RANK_READY, text);
}

/* --- the way out --- */

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

static void end_by_engine(client_t *self, in_flight_t *entry, wire_finish_t finish)
{
    wg_error_t error;
    char id[LOG_TEXT_SIZE];
    log_text(id, entry->id.data, entry->id.size);
    switch (finish) {
    case WIRE_FINISH_STOP:
        end(self, entry, CLIENT_STOP, NULL, false);
        break;
    case WIRE_FINISH_LENGTH:
        end(self, entry, CLIENT_LENGTH, NULL, false);
        break;
    case WIRE_FINISH_REPETITION:
        end(self, entry, CLIENT_REPETITION, NULL, false);
        break;
    case WIRE_FINISH_ABORT:
        WG_FAIL(&error, REQUEST_ABORTED, id, "by the engine");
        end(self, entry, CLIENT_ABORT, &error, false);
        break;
    case WIRE_FINISH_ERROR:
        WG_FAIL(&error, ENGINE_REQUEST_ERROR, id);
        end(self, entry, CLIENT_ERROR, &error, false);
        break;
    case WIRE_FINISH_NONE:
        break;
    }
}

static void handle_output(client_t *self, uint32_t place, const wire_output_t *output, wg_status_t status,
                          const wg_error_t *error)
{
    dispatcher_t *dispatcher = self->ranks[place].dispatcher;
    in_flight_t *entry = output->request_id.data ? dispatcher_find(dispatcher, output->request_id) : NULL;
    if (status != WG_OK) {
        char peer[32];
        snprintf(peer, sizeof peer, "rank %u", dispatcher_rank(dispatcher));
        faults_report(self->faults, FAULTS_OUTPUT, peer, error);
        if (entry)
            end(self, entry, CLIENT_DECODE, error, true);
        return;
    }
    if (!entry) {
        abort_orphan(self, dispatcher_rank(dispatcher), output);
        return;
    }
    entry->events->on_output(entry->user, output);
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
        if (!entry)
            continue;
        wg_error_t error;
        char id[LOG_TEXT_SIZE];
        WG_FAIL(&error, REQUEST_STREAM_CLOSED, log_text(id, entry->id.data, entry->id.size));
        end(self, entry, CLIENT_STREAM_CLOSED, &error, false);
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
             outputs->utility.call_id >= 0) /* negative: notices that nobody asked for */
        fault = "the answer to a utility call that nobody made";
    return fault ? WG_FAIL(error, UNEXPECTED_DISPATCHER_OUTPUT, outputs->engine_index, fault) : WG_OK;
}

void client_on_outputs(void *context, const wire_bytes_t *frames, size_t count)
{
    client_t *self = context;
    wire_outputs_t outputs;
    wire_outputs_cursor_t cursor;
    wire_output_t output;
    wg_error_t error;
    int64_t place = -1;
    (void)count; /* the auxiliary frames hold tensors, which nobody has asked for yet */
    wg_status_t status = wire_outputs_decode(&outputs, frames[0].data, frames[0].size, &error);
    if (status == WG_OK)
        status = check_envelope(self, &outputs, &place, &error);
    if (status != WG_OK) {
        char peer[32];
        snprintf(peer, sizeof peer, "rank %u", outputs.engine_index);
        faults_report(self->faults, FAULTS_OUTPUT, peer, &error);
        return;
    }
    wire_outputs_begin(&cursor, &outputs);
    while (wire_outputs_next(&cursor, &output, &status, &error))
        handle_output(self, (uint32_t)place, &output, status, &error);
    handle_finished(self, (uint32_t)place, &outputs);
}
