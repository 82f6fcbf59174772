/* Whether a request may come in, to which rank, and with how many tokens. */
#include "frontend/client_parts.h"

#include "common/log.h"
#include "common/rank_map.h"

#include <stdlib.h>

enum { REFUSED_MS = 1000 };

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

/* One rank of a lockstep group cannot serve without the others. That one is silent only we know. */
static wg_status_t check_group(const client_t *self, wg_error_t *error)
{
    int64_t missing = self->lockstep ? lockstep_missing_rank(self->lockstep) : -1;
    for (uint32_t place = 0; self->lockstep && missing < 0 && place < self->frontend->rank_count; place++) {
        if (dispatcher_state(self->ranks[place].dispatcher) == WG_RANK_SILENT)
            missing = self->frontend->ranks[place];
    }
    if (missing < 0)
        return WG_OK;
    char text[64];
    snprintf(text, sizeof text, "rank %lld of the lockstep group", (long long)missing);
    return WG_FAIL(error, NO_RANK_READY, text);
}

/* A frontend that the coordinator refused has other client indexes than the engines know: it would get
 * others' outputs. */
static wg_status_t check_refusal(const client_t *self, wg_error_t *error)
{
    const char *refusal = control_link_refusal(self->control);
    return refusal ? WG_FAIL(error, CONTROL_CLOSED, refusal) : WG_OK;
}

/* A rank that takes nothing has little in flight, and would draw every request to itself: it comes last. */
static size_t apparent_in_flight(const client_t *self, const client_rank_t *rank, int64_t now_ms)
{
    if (rank->refused_ms > 0 && now_ms - rank->refused_ms < REFUSED_MS)
        return (size_t)self->config->limits.max_in_flight;
    return dispatcher_in_flight(rank->dispatcher);
}

wg_status_t client_choose_rank(client_t *client, const client_submission_t *submission, uint32_t *place,
                               wg_error_t *error)
{
    char text[256];
    int64_t found = submission->pinned ? client_place(client, submission->rank) : -1;
    if (submission->pinned && found < 0) {
        snprintf(text, sizeof text, "%u", submission->rank);
        return client_not_connected(client, text, error);
    }
    int64_t now_ms = zclock_mono();
    if (!submission->pinned) {
        for (uint32_t i = 0; i < client->frontend->rank_count; i++) {
            const client_rank_t *rank = &client->ranks[i];
            const wire_load_t *load = dispatcher_fresh_load(rank->dispatcher, now_ms);
            client->candidates[i] = (rank_choice_candidate_t){
                .ready = is_ready(rank),
                .client_count = rank->client_count,
                .in_flight = apparent_in_flight(client, rank, now_ms),
                .has_load = load != NULL,
                .load = load ? *load : (wire_load_t){0},
            };
        }
        found = rank_choice_pick(client->candidates, client->frontend->rank_count, &client->choice_turn);
    }
    if (found < 0 || !is_ready(&client->ranks[found])) {
        describe_ranks(client, text, sizeof text, found);
        return WG_FAIL(error, NO_RANK_READY, text);
    }
    *place = (uint32_t)found;
    return check_group(client, error);
}

/* The prompt and what is to be generated must fit into the smallest model length of the ready ranks, so that
 * it does not depend on the choice of the rank what is valid. */
wg_status_t client_check_lengths(const client_t *client, const client_submission_t *submission,
                                 const wire_prompt_t *prompt, int64_t *max_tokens, wg_error_t *error)
{
    const client_field_names_t *names = submission->names;
    int64_t limit = client_max_model_len(client);
    int64_t length = (int64_t)prompt->count;
    *max_tokens = submission->sampling.max_tokens;
    if (limit == WIRE_UNKNOWN && *max_tokens == 0)
        return wg_invalid_field(error, names->max_tokens,
                                "must be given: no rank has told its max_model_len");
    if (limit == WIRE_UNKNOWN)
        return WG_OK;
    if (length >= limit)
        return wg_invalid_field(error, names->prompt,
                                "the prompt has %lld tokens, but must have less than max_model_len = %lld",
                                (long long)length, (long long)limit);
    if (*max_tokens == 0 || (submission->max_tokens_may_shrink && *max_tokens > limit - length))
        *max_tokens = limit - length;
    if (*max_tokens > limit - length)
        return wg_invalid_field(error, names->max_tokens,
                                "%lld tokens and a prompt of %lld are more than max_model_len = %lld",
                                (long long)*max_tokens, (long long)length, (long long)limit);
    if (submission->sampling.min_tokens > *max_tokens)
        return wg_invalid_field(error, names->min_tokens,
                                "%lld is more than the %lld tokens that can be generated",
                                (long long)submission->sampling.min_tokens, (long long)*max_tokens);
    return WG_OK;
}

wg_status_t client_check_admission(const client_t *client, const client_submission_t *submission,
                                   size_t count, wg_error_t *error)
{
    size_t limit = (size_t)client->config->limits.max_in_flight;
    if (client->draining)
        return wg_error_format(error, WG_E_DRAINING, WG_E_DRAINING_FORMAT);
    if (zhashx_lookup(client->by_id, &submission->id)) {
        char id[LOG_TEXT_SIZE];
        return WG_FAIL(error, DUPLICATE_REQUEST_ID, log_text(id, submission->id.data, submission->id.size));
    }
    if (count > limit)
        return wg_invalid_field(error, submission->names->choices,
                                "%zu choices at once are more than limits.max_in_flight = %zu", count, limit);
    if (client->in_flight + count > limit)
        return WG_FAIL(error, OVERLOADED, limit);
    return check_refusal(client, error);
}

wg_status_t client_ready(const client_t *client, wg_error_t *error)
{
    char text[256];
    if (client->leaving || client->draining)
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
