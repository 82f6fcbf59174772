#include "common/wire_request.h"

#include "common/wire_pack.h"

void wire_sampling_defaults(wire_sampling_t *out)
{
    *out = (wire_sampling_t){
        .repetition_penalty = 1.0,
        .temperature = 1.0,
        .top_p = 1.0,
        .max_tokens = 16,
        .eos_token_id = WIRE_NO_TOKEN,
        .logprobs = WIRE_UNSET,
        .prompt_logprobs = WIRE_UNSET,
        .thinking_token_budget = WIRE_UNSET,
        .skip_reading_prefix_cache = -1,
    };
}

/* A map whose size must be known before its first key: the same walk counts first and packs then. */
typedef struct {
    wire_pack_t *pack; /* NULL: count only */
    size_t pairs;
} pairs_t;

static bool pair(pairs_t *pairs, const char *key)
{
    pairs->pairs++;
    if (!pairs->pack)
        return false;
    wire_pack_literal(pairs->pack, key);
    return true;
}

static void pair_float(pairs_t *pairs, const char *key, double value, double absent)
{
    if ((value < absent || value > absent) && pair(pairs, key))
        wire_pack_float(pairs->pack, value);
}

static void pair_int(pairs_t *pairs, const char *key, int64_t value, int64_t absent)
{
    if (value != absent && pair(pairs, key))
        wire_pack_int(pairs->pack, value);
}

static void pair_ids(pairs_t *pairs, const char *key, const int64_t *ids, size_t count)
{
    if (count == 0 || !pair(pairs, key))
        return;
    wire_pack_array(pairs->pack, count);
    for (size_t i = 0; i < count; i++)
        wire_pack_int(pairs->pack, ids[i]);
}

/* A value that is packed already. */
static void pair_packed(pairs_t *pairs, const char *key, wire_bytes_t value)
{
    if (value.size > 0 && pair(pairs, key))
        wire_pack_raw(pairs->pack, value);
}

static void pair_logit_bias(pairs_t *pairs, const wire_sampling_t *sampling)
{
    if (sampling->logit_bias_count == 0 || !pair(pairs, "logit_bias"))
        return;
    wire_pack_map(pairs->pack, sampling->logit_bias_count);
    for (size_t i = 0; i < sampling->logit_bias_count; i++) {
        wire_pack_int(pairs->pack, sampling->logit_bias[i].id);
        wire_pack_float(pairs->pack, sampling->logit_bias[i].bias);
    }
}

static void walk_sampling(pairs_t *pairs, const wire_sampling_t *sampling)
{
    pair_float(pairs, "presence_penalty", sampling->presence_penalty, 0.0);
    pair_float(pairs, "frequency_penalty", sampling->frequency_penalty, 0.0);
    pair_float(pairs, "repetition_penalty", sampling->repetition_penalty, 1.0);
    pair_float(pairs, "temperature", sampling->temperature, 1.0);
    pair_float(pairs, "top_p", sampling->top_p, 1.0);
    pair_int(pairs, "top_k", sampling->top_k, 0);
    pair_float(pairs, "min_p", sampling->min_p, 0.0);
    if (sampling->has_seed && pair(pairs, "seed"))
        wire_pack_int(pairs->pack, sampling->seed);
    pair_ids(pairs, "stop_token_ids", sampling->all_stop_token_ids, sampling->stop_count);
    if (sampling->ignore_eos && pair(pairs, "ignore_eos"))
        wire_pack_bool(pairs->pack, true);
    if (pair(pairs, "max_tokens"))
        wire_pack_int(pairs->pack, sampling->max_tokens);
    pair_int(pairs, "min_tokens", sampling->min_tokens, 0);
    pair_int(pairs, "_eos_token_id", sampling->eos_token_id, WIRE_NO_TOKEN);
    pair_ids(pairs, "_all_stop_token_ids", sampling->all_stop_token_ids, sampling->all_stop_count);
    pair_int(pairs, "logprobs", sampling->logprobs, WIRE_UNSET);
    pair_int(pairs, "prompt_logprobs", sampling->prompt_logprobs, WIRE_UNSET);
    pair_ids(pairs, "logprob_token_ids", sampling->logprob_token_ids.ids, sampling->logprob_token_ids.count);
    pair_ids(pairs, "allowed_token_ids", sampling->allowed_token_ids.ids, sampling->allowed_token_ids.count);
    pair_logit_bias(pairs, sampling);
    pair_int(pairs, "thinking_token_budget", sampling->thinking_token_budget, WIRE_UNSET);
    if (sampling->skip_reading_prefix_cache >= 0 && pair(pairs, "skip_reading_prefix_cache"))
        wire_pack_bool(pairs->pack, sampling->skip_reading_prefix_cache > 0);
    pair_packed(pairs, "structured_outputs", sampling->structured_outputs);
    pair_packed(pairs, "repetition_detection", sampling->repetition_detection);
    pair_packed(pairs, "extra_args", sampling->extra_args);
}

static void pack_sampling(wire_pack_t *pack, const wire_sampling_t *sampling)
{
    pairs_t counted = {NULL, 0};
    pairs_t packed = {pack, 0};
    walk_sampling(&counted, sampling);
    wire_pack_map(pack, counted.pairs);
    walk_sampling(&packed, sampling);
}

static void pack_optional_text(wire_pack_t *pack, wire_text_t text)
{
    if (text.data)
        wire_pack_text(pack, text);
    else
        wire_pack_nil(pack);
}

static void pack_lora(wire_pack_t *pack, const wire_lora_t *lora)
{
    if (!lora) {
        wire_pack_nil(pack);
        return;
    }
    wire_pack_array(pack, 3);
    wire_pack_text(pack, lora->name);
    wire_pack_int(pack, lora->id);
    wire_pack_text(pack, lora->path);
}

static void pack_trace(wire_pack_t *pack, const wire_trace_t *trace)
{
    if (!trace->traceparent.data) {
        wire_pack_nil(pack);
        return;
    }
    wire_pack_map(pack, trace->tracestate.data ? 2 : 1);
    wire_pack_literal(pack, "traceparent");
    wire_pack_text(pack, trace->traceparent);
    if (trace->tracestate.data) {
        wire_pack_literal(pack, "tracestate");
        wire_pack_text(pack, trace->tracestate);
    }
}

wg_status_t wire_add_encode(msgpack_sbuffer *out, const wire_add_t *add, wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, out);
    wire_pack_array(&pack, 17); /* up to external_req_id; the engine takes its defaults for the rest */
    wire_pack_text(&pack, add->request_id);
    wire_pack_array(&pack, add->prompt.count);
    wire_pack_raw(&pack, add->prompt.packed);
    wire_pack_nil(&pack); /* mm_features */
    pack_sampling(&pack, &add->sampling);
    wire_pack_nil(&pack); /* pooling_params */
    wire_pack_float(&pack, add->arrival_time);
    pack_lora(&pack, add->lora);
    pack_optional_text(&pack, add->cache_salt);
    if (add->data_parallel_rank < 0)
        wire_pack_nil(&pack);
    else
        wire_pack_int(&pack, add->data_parallel_rank);
    wire_pack_nil(&pack); /* prompt_embeds */
    wire_pack_nil(&pack); /* prompt_is_token_ids */
    wire_pack_int(&pack, add->client_index);
    wire_pack_int(&pack, add->current_wave);
    wire_pack_int(&pack, add->priority);
    pack_trace(&pack, &add->trace);
    wire_pack_bool(&pack, false); /* resumable */
    pack_optional_text(&pack, add->external_req_id);
    return wire_pack_finish(&pack, "EngineCoreRequest", error);
}

wg_status_t wire_abort_encode(msgpack_sbuffer *out, const wire_text_t *ids, size_t count, wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, out);
    wire_pack_array(&pack, count);
    for (size_t i = 0; i < count; i++)
        wire_pack_text(&pack, ids[i]);
    return wire_pack_finish(&pack, "ABORT", error);
}

wg_status_t wire_start_encode(msgpack_sbuffer *out, int64_t wave, wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, out);
    wire_pack_array(&pack, 2);
    wire_pack_int(&pack, wave);
    wire_pack_nil(&pack);
    return wire_pack_finish(&pack, "START_DP_WAVE", error);
}

wg_status_t wire_utility_encode(msgpack_sbuffer *out, uint32_t client_index, int64_t call_id,
                                const char *method, wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, out);
    wire_pack_array(&pack, 4);
    wire_pack_int(&pack, client_index);
    wire_pack_int(&pack, call_id);
    wire_pack_literal(&pack, method);
    wire_pack_array(&pack, 0);
    return wire_pack_finish(&pack, "UTILITY", error);
}
