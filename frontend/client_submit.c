#include "frontend/client_parts.h"

#include "common/log.h"
#include "common/rank_map.h"

#include <stdlib.h>
#include <sys/random.h>

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

/* One rank of a lockstep group cannot serve without the others. */
static wg_status_t check_group(const client_t *self, wg_error_t *error)
{
    int64_t missing = self->lockstep ? lockstep_missing_rank(self->lockstep) : -1;
    if (missing < 0)
        return WG_OK;
    char text[64];
    snprintf(text, sizeof text, "rank %lld of the lockstep group", (long long)missing);
    return WG_FAIL(error, NO_RANK_READY, text);
}

/* A frontend that the coordinator refused has other client indexes than the engines know: it would get others' outputs. */
static wg_status_t check_refusal(const client_t *self, wg_error_t *error)
{
    const char *refusal = control_link_refusal(self->control);
    return refusal ? WG_FAIL(error, CONTROL_CLOSED, refusal) : WG_OK;
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
    return check_group(self, error);
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
        .current_wave = self->lockstep ? lockstep_view(self->lockstep)->wave : 0,
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

/* In a lockstep group, what wakes the others goes out in the same turn as the ADD. */
static wg_status_t add_and_wake(client_t *self, uint32_t place, const in_flight_t *entry,
                                const client_submission_t *submission, int64_t max_tokens, wg_error_t *error)
{
    wave_view_step_t step;
    wave_view_t undo;
    if (!self->lockstep)
        return send_add(self, place, entry, submission, max_tokens, error);
    size_t others = client_in_flight(self) - 1; /* this one is inserted already */
    wg_status_t status = lockstep_before_add(self->lockstep, others, &step, &undo, error);
    if (status != WG_OK)
        return status;
    status = send_add(self, place, entry, submission, max_tokens, error);
    if (status == WG_OK)
        lockstep_after_add(self->lockstep, entry->rank, step);
    else
        lockstep_not_sent(self->lockstep, &undo);
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
        status = check_refusal(client, error);
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
    entry->max_tokens = max_tokens;
    entry->fits = client_max_model_len(client) != WIRE_UNKNOWN;
    entry->events = events;
    entry->user = user;
    status = insert(client, place, entry, error);
    if (status != WG_OK) {
        in_flight_free(entry);
        return status;
    }
    status = add_and_wake(client, place, entry, submission, max_tokens, error);
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
    if (check_refusal(client, error) != WG_OK)
        return WG_E_CONTROL_CLOSED;
    for (uint32_t place = 0; place < client->frontend->rank_count; place++) {
        if (!is_ready(&client->ranks[place]))
            continue;
        size_t limit = (size_t)client->config->limits.max_in_flight;
        if (client_in_flight(client) >= limit)
            return WG_FAIL(error, OVERLOADED, limit);
        if (client->lockstep && !lockstep_would_send(client->lockstep, client_in_flight(client)))
            return WG_FAIL(error, CONTROL_CLOSED,
                           "the coordinator is silent, so nobody would wake the lockstep group");
        return check_group(client, error);
    }
    describe_ranks(client, text, sizeof text, -1);
    return WG_FAIL(error, NO_RANK_READY, text);
}
