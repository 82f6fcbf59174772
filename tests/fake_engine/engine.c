#include "tests/fake_engine/engine.h"

#include "tests/fake_engine/tokens.h"

#include <czmq.h>

typedef struct {
    engine_request_t *first;
    engine_request_t *last;
    uint32_t count;
} request_list_t;

struct engine {
    engine_options_t options;
    zhashx_t *by_id;          /* wire_text_t -> engine_request_t, of those that wait or run */
    request_list_t lists[3];  /* by engine_request_state_t */
    engine_output_t *outputs; /* room for every request that lives, so that only engine_add can fail */
    size_t output_count;
    size_t output_capacity;
    int64_t held_tokens; /* in the imagined KV cache */
    uint64_t step_counter;
    uint32_t new_requests;
    int64_t new_prompt_tokens;
    bool ended_since_step;
    engine_hold_t hold;
};

static size_t hash_id(const void *key)
{
    const wire_text_t *id = key;
    size_t hash = 5381;
    for (size_t i = 0; i < id->size; i++)
        hash = hash * 33 ^ (uint8_t)id->data[i];
    return hash;
}

static int compare_ids(const void *left, const void *right)
{
    const wire_text_t *a = left;
    const wire_text_t *b = right;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return memcmp(a->data, b->data, a->size);
}

engine_t *engine_new(const engine_options_t *options)
{
    engine_t *engine = calloc(1, sizeof *engine);
    if (!engine)
        return NULL;
    engine->options = *options;
    engine->by_id = zhashx_new();
    zhashx_set_key_duplicator(engine->by_id, NULL); /* the keys live in the requests */
    zhashx_set_key_destructor(engine->by_id, NULL);
    zhashx_set_key_hasher(engine->by_id, hash_id);
    zhashx_set_key_comparator(engine->by_id, compare_ids);
    return engine;
}

static void list_append(engine_t *engine, engine_request_state_t state, engine_request_t *request)
{
    request_list_t *list = &engine->lists[state];
    request->state = state;
    request->next = NULL;
    request->previous = list->last;
    if (list->last)
        list->last->next = request;
    else
        list->first = request;
    list->last = request;
    list->count++;
}

static void list_remove(engine_t *engine, engine_request_t *request)
{
    request_list_t *list = &engine->lists[request->state];
    if (request->previous)
        request->previous->next = request->next;
    else
        list->first = request->next;
    if (request->next)
        request->next->previous = request->previous;
    else
        list->last = request->previous;
    list->count--;
}

static void destroy_list(request_list_t *list)
{
    while (list->first) {
        engine_request_t *request = list->first;
        list->first = request->next;
        engine_request_destroy(&request);
    }
    *list = (request_list_t){0};
}

void engine_destroy(engine_t **engine)
{
    engine_t *self = *engine;
    if (!self)
        return;
    zhashx_destroy(&self->by_id);
    destroy_list(&self->lists[ENGINE_WAITING]);
    destroy_list(&self->lists[ENGINE_RUNNING]);
    destroy_list(&self->lists[ENGINE_ENDED]);
    free(self->outputs);
    free(self);
    *engine = NULL;
}

static bool reserve_output(engine_t *engine)
{
    size_t needed = engine->output_count + zhashx_size(engine->by_id) + 1;
    if (needed <= engine->output_capacity)
        return true;
    size_t capacity = 2 * needed;
    engine_output_t *outputs = realloc(engine->outputs, capacity * sizeof *outputs);
    if (!outputs)
        return false;
    engine->outputs = outputs;
    engine->output_capacity = capacity;
    return true;
}

static void append_output(engine_t *engine, engine_output_t output)
{
    engine->outputs[engine->output_count++] = output;
}

/* It stays readable for the outputs that name it, but its id is free again. */
static void end_request(engine_t *engine, engine_request_t *request)
{
    zhashx_delete(engine->by_id, &request->id);
    if (request->state == ENGINE_RUNNING)
        engine->held_tokens -= request->prompt_tokens + request->generated;
    list_remove(engine, request);
    list_append(engine, ENGINE_ENDED, request);
    engine->ended_since_step = true;
}

static void end_without_tokens(engine_t *engine, engine_request_t *request, engine_finish_t finish)
{
    bool silent = finish == ENGINE_FINISH_ABORT && engine->options.abort_silent;
    end_request(engine, request);
    append_output(engine,
                  (engine_output_t){
                      .request = request, .first = request->generated, .finish = finish, .silent = silent});
}

wg_status_t engine_add(engine_t *engine, engine_request_t *request, wg_error_t *error)
{
    if (zhashx_lookup(engine->by_id, &request->id))
        return WG_FAIL(error, DUPLICATE_REQUEST_ID, request->id_bytes);
    if (!reserve_output(engine))
        return WG_FAIL(error, SYSTEM, "holding a request", strerror(ENOMEM));
    zhashx_insert(engine->by_id, &request->id, request);
    list_append(engine, ENGINE_WAITING, request);
    if (request->prompt_tokens == 0 || request->prompt_tokens >= engine->options.max_model_len)
        end_without_tokens(engine, request, ENGINE_FINISH_ERROR);
    else if (request->abort_immediately)
        end_without_tokens(engine, request, ENGINE_FINISH_ABORT);
    return WG_OK;
}

const engine_request_t *engine_abort(engine_t *engine, wire_text_t id)
{
    engine_request_t *request = zhashx_lookup(engine->by_id, &id);
    if (request)
        end_without_tokens(engine, request, ENGINE_FINISH_ABORT);
    return request;
}

void engine_abort_all(engine_t *engine)
{
    static const engine_request_state_t states[] = {ENGINE_RUNNING, ENGINE_WAITING};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        while (engine->lists[states[i]].first)
            end_without_tokens(engine, engine->lists[states[i]].first, ENGINE_FINISH_ABORT);
    }
}

void engine_hold(engine_t *engine, engine_hold_t hold)
{
    engine->hold = hold;
}

bool engine_unfinished(const engine_t *engine)
{
    return (engine->lists[ENGINE_RUNNING].count > 0 && engine->hold != ENGINE_HOLD_ALL) ||
           (engine->lists[ENGINE_WAITING].count > 0 && engine->hold == ENGINE_HOLD_NONE);
}

bool engine_busy(const engine_t *engine)
{
    return engine_unfinished(engine) || engine->ended_since_step;
}

static void schedule_waiting(engine_t *engine)
{
    engine_request_t *request;
    while ((request = engine->lists[ENGINE_WAITING].first) &&
           engine->lists[ENGINE_RUNNING].count < engine->options.max_num_seqs) {
        list_remove(engine, request);
        list_append(engine, ENGINE_RUNNING, request);
        engine->held_tokens += request->prompt_tokens;
        engine->new_requests++;
        engine->new_prompt_tokens += request->prompt_tokens;
    }
}

/* After one more token. An engine masks the stop ids until min_tokens others are there, so one that the token
 * function yields earlier is a token as any other. */
static engine_finish_t finish_after(const engine_t *engine, const engine_request_t *request, int64_t token,
                                    bool *stopped_by_id)
{
    bool may_stop = request->generated > request->min_tokens;
    if (may_stop && request->has_eos && token == request->eos_id)
        return ENGINE_FINISH_STOP;
    if (may_stop && engine_request_stops_at(request, token)) {
        *stopped_by_id = true;
        return ENGINE_FINISH_STOP;
    }
    if (request->generated >= request->max_tokens ||
        request->prompt_tokens + request->generated >= engine->options.max_model_len)
        return ENGINE_FINISH_LENGTH;
    return ENGINE_FINISH_NONE;
}

static void step_request(engine_t *engine, engine_request_t *request)
{
    engine_output_t output = {.request = request,
                              .first = request->generated,
                              .finish = ENGINE_FINISH_NONE,
                              .prefill = request->generated == 0};
    while (output.count < engine->options.tokens_per_step && output.finish == ENGINE_FINISH_NONE) {
        int64_t token =
            tokens_at(request->prompt_hash, (uint64_t)request->generated, engine->options.vocab_size);
        request->generated++;
        engine->held_tokens++;
        output.count++;
        output.finish = finish_after(engine, request, token, &output.stopped_by_id);
    }
    append_output(engine, output);
    if (output.finish != ENGINE_FINISH_NONE)
        end_request(engine, request);
}

static void step_running(engine_t *engine)
{
    engine_request_t *next;
    for (engine_request_t *request = engine->lists[ENGINE_RUNNING].first; request; request = next) {
        next = request->next;
        step_request(engine, request);
    }
}

void engine_step(engine_t *engine)
{
    engine->ended_since_step = false;
    engine->new_requests = 0;
    engine->new_prompt_tokens = 0;
    if (engine->hold == ENGINE_HOLD_NONE)
        schedule_waiting(engine);
    if (engine->hold != ENGINE_HOLD_ALL)
        step_running(engine);
    engine->step_counter++;
}

const engine_output_t *engine_outputs(const engine_t *engine, size_t *count)
{
    *count = engine->output_count;
    return engine->outputs;
}

void engine_clear_outputs(engine_t *engine)
{
    engine->output_count = 0;
    destroy_list(&engine->lists[ENGINE_ENDED]);
}

void engine_stats(const engine_t *engine, engine_stats_t *out)
{
    double usage = (double)engine->held_tokens / (double)engine->options.kv_cache_tokens;
    *out = (engine_stats_t){
        .running = engine->lists[ENGINE_RUNNING].count,
        .waiting = engine->lists[ENGINE_WAITING].count,
        .step_counter = engine->step_counter,
        .kv_cache_usage = usage < 1.0 ? usage : 1.0,
        .new_requests = engine->new_requests,
        .new_prompt_tokens = engine->new_prompt_tokens,
    };
}
