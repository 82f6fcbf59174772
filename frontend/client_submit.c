#include "frontend/client_parts.h"

#include <stdlib.h>
#include <sys/random.h>

/* What differs from one choice to the next. */
typedef struct {
    in_flight_t *entry;
    uint32_t place;
    uint32_t number; /* among the choices of its prompt */
    const wire_prompt_t *prompt;
    int64_t max_tokens;
} choice_t;

static wg_status_t send_add(client_t *self, const client_submission_t *submission, const choice_t *choice,
                            wg_error_t *error)
{
    wire_add_t add = {
        .request_id = choice->entry->wire_id,
        .external_req_id = choice->entry->id,
        .prompt = *choice->prompt,
        .sampling = submission->sampling,
        .arrival_time = (double)zclock_time() / 1000.0,
        .lora = submission->lora,
        .cache_salt = submission->cache_salt,
        .data_parallel_rank = submission->pinned ? (int64_t)submission->rank : -1,
        .client_index = self->ranks[choice->place].client_index,
        .current_wave = self->lockstep ? lockstep_view(self->lockstep)->wave : 0,
        .priority = submission->priority,
        .trace = submission->trace,
    };
    add.sampling.max_tokens = choice->max_tokens;
    add.sampling.seed += choice->number;
    msgpack_sbuffer_clear(&self->payload);
    wg_status_t status = wire_add_encode(&self->payload, &add, error);
    if (status != WG_OK)
        return status;
    status = engine_link_send(self->link, choice->entry->rank, WIRE_REQUEST_ADD, self->payload.data,
                              self->payload.size, error);
    if (status != WG_OK)
        self->ranks[choice->place].refused_ms = zclock_mono();
    return status;
}

/* In a lockstep group, what wakes the others goes out in the same turn as the ADD. */
static wg_status_t add_and_wake(client_t *self, const client_submission_t *submission, const choice_t *choice,
                                wg_error_t *error)
{
    wave_view_step_t step;
    wave_view_t undo;
    if (!self->lockstep)
        return send_add(self, submission, choice, error);
    size_t others = self->in_flight - 1; /* this one is inserted already */
    wg_status_t status = lockstep_before_add(self->lockstep, others, &step, &undo, error);
    if (status != WG_OK)
        return status;
    status = send_add(self, submission, choice, error);
    if (status == WG_OK)
        lockstep_after_add(self->lockstep, choice->entry->rank, step);
    else
        lockstep_not_sent(self->lockstep, &undo);
    return status;
}

/* On failure the choice is in no set. */
static wg_status_t start_choice(client_t *self, const client_submission_t *submission, const choice_t *choice,
                                wg_error_t *error)
{
    dispatcher_t *dispatcher = self->ranks[choice->place].dispatcher;
    wg_status_t status = dispatcher_insert(dispatcher, choice->entry, error);
    choice->entry->ended = status != WG_OK;
    if (status != WG_OK)
        return status;
    self->in_flight++;
    choice->entry->request->live++;
    status = add_and_wake(self, submission, choice, error);
    if (status != WG_OK)
        client_end_choice(self, choice->entry, false);
    return status;
}

/* The choices of one prompt, all at the rank of that place. */
static wg_status_t start_prompt(client_t *self, client_request_t *request,
                                const client_submission_t *submission, const wire_prompt_t *prompt,
                                uint32_t place, uint32_t salt, wg_error_t *error)
{
    choice_t choice = {.prompt = prompt, .place = place};
    wg_status_t status = client_check_lengths(self, submission, prompt, &choice.max_tokens, error);
    for (; status == WG_OK && choice.number < submission->choices_per_prompt; choice.number++) {
        choice.entry = in_flight_new(submission->id, salt + request->count);
        if (!choice.entry)
            return WG_FAIL(error, SYSTEM, "request", "out of memory");
        choice.entry->request = request;
        choice.entry->choice = request->count;
        choice.entry->rank = self->frontend->ranks[choice.place];
        choice.entry->max_tokens = choice.max_tokens;
        choice.entry->fits = client_max_model_len(self) != WIRE_UNKNOWN;
        request->choices[request->count++] = choice.entry;
        status = start_choice(self, submission, &choice, error);
    }
    return status;
}

/* The same, at another rank where that one takes nothing: its queue is full, or it has just gone. */
static wg_status_t start_prompt_or_move(client_t *self, client_request_t *request,
                                        const client_submission_t *submission, const wire_prompt_t *prompt,
                                        uint32_t place, uint32_t salt, wg_error_t *error)
{
    uint32_t other;
    uint32_t count = request->count;
    wg_status_t status = start_prompt(self, request, submission, prompt, place, salt, error);
    bool none_sent = request->count == count + 1;
    if (status != WG_E_DISPATCHER_CLOSED || submission->pinned || !none_sent)
        return status;
    if (client_choose_rank(self, submission, &other, NULL) != WG_OK || other == place)
        return status;
    in_flight_free(request->choices[--request->count]); /* it is in no set any more */
    return start_prompt(self, request, submission, prompt, other, salt, error);
}

/* An engine that has an ADD already is told to drop it. */
static void take_back(client_t *self, client_request_t *request)
{
    zhashx_delete(self->by_id, &request->id);
    for (uint32_t i = 0; i < request->count; i++) {
        if (!request->choices[i]->ended)
            client_end_choice(self, request->choices[i], true);
    }
    client_retire_request(self, request);
}

/* All that can be known before the first ADD goes out. *place is for the first prompt. */
static wg_status_t check_submission(client_t *self, const client_submission_t *submission, size_t count,
                                    uint32_t *place, wg_error_t *error)
{
    int64_t max_tokens;
    wg_status_t status = client_check_admission(self, submission, count, error);
    if (status == WG_OK)
        status = client_choose_rank(self, submission, place, error);
    for (size_t i = 0; i < submission->prompt_count && status == WG_OK; i++)
        status = client_check_lengths(self, submission, &submission->prompts[i], &max_tokens, error);
    return status;
}

wg_status_t client_submit(client_t *client, const client_submission_t *submission,
                          const client_events_t *events, void *user, client_request_t **out,
                          wg_error_t *error)
{
    size_t count = submission->prompt_count * submission->choices_per_prompt;
    uint32_t salt;
    uint32_t place = 0;
    *out = NULL;
    wg_status_t status = check_submission(client, submission, count, &place, error);
    if (status != WG_OK)
        return status;
    client_request_t *request = client_request_new(submission->id, (uint32_t)count);
    if (!request || getrandom(&salt, sizeof salt, 0) != sizeof salt ||
        zhashx_insert(client->by_id, &request->id, request) != 0) {
        client_request_free(request);
        return WG_FAIL(error, SYSTEM, "request", "out of memory");
    }
    request->events = events;
    request->user = user;
    request->has_logprobs =
        submission->sampling.logprobs != WIRE_UNSET || submission->sampling.logprob_token_ids.count > 0;
    request->has_prompt_logprobs = submission->sampling.prompt_logprobs != WIRE_UNSET;
    for (size_t i = 0; i < submission->prompt_count && status == WG_OK; i++) {
        if (i > 0) /* the choices before it are in flight already, and count */
            status = client_choose_rank(client, submission, &place, error);
        if (status == WG_OK)
            status = start_prompt_or_move(client, request, submission, &submission->prompts[i], place, salt,
                                          error);
    }
    if (status != WG_OK) {
        take_back(client, request);
        return status;
    }
    client->counters.accepted++;
    *out = request;
    return WG_OK;
}
