#include "tests/fake_engine/engine_encode.h"

#include "tests/fake_engine/tokens.h"

static void pack_key_text(wire_pack_t *pack, const char *key, const char *value)
{
    wire_pack_literal(pack, key);
    if (value)
        wire_pack_literal(pack, value);
    else
        wire_pack_nil(pack);
}

static void pack_key_bool(wire_pack_t *pack, const char *key, bool value)
{
    wire_pack_literal(pack, key);
    wire_pack_bool(pack, value);
}

static void pack_key_int(wire_pack_t *pack, const char *key, int64_t value)
{
    wire_pack_literal(pack, key);
    wire_pack_int(pack, value);
}

static void pack_key_float(wire_pack_t *pack, const char *key, double value)
{
    wire_pack_literal(pack, key);
    wire_pack_float(pack, value);
}

static void pack_nils(wire_pack_t *pack, unsigned count)
{
    while (count-- > 0)
        wire_pack_nil(pack);
}

wg_status_t engine_encode_status(msgpack_sbuffer *frame, const char *status, const char *parallel_config_hash,
                                 wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, frame);
    wire_pack_map(&pack, parallel_config_hash ? 4 : 3);
    pack_key_text(&pack, "status", status);
    pack_key_bool(&pack, "local", false);
    pack_key_bool(&pack, "headless", true);
    if (parallel_config_hash)
        pack_key_text(&pack, "parallel_config_hash", parallel_config_hash);
    return wire_pack_finish(&pack, status, error);
}

wg_status_t engine_encode_registration(msgpack_sbuffer *frame, const engine_registration_t *registration,
                                       wg_error_t *error)
{
    const engine_options_t *engine = registration->engine;
    wire_pack_t pack;
    wire_pack_init(&pack, frame);
    wire_pack_map(&pack, 18);
    pack_key_int(&pack, "max_model_len", engine->max_model_len);
    pack_key_int(&pack, "num_gpu_blocks", registration->num_gpu_blocks);
    pack_key_int(&pack, "block_size", registration->block_size);
    pack_key_text(&pack, "dp_stats_address", registration->stats_address);
    pack_key_text(&pack, "dtype", "bfloat16");
    pack_key_text(&pack, "vllm_version", "0.20.0+fake");
    pack_key_int(&pack, "world_size", 1);
    pack_key_int(&pack, "data_parallel_size", registration->data_parallel_size);
    pack_key_int(&pack, "tensor_parallel_size", 1);
    pack_key_int(&pack, "pipeline_parallel_size", 1);
    pack_key_int(&pack, "decode_context_parallel_size", 1);
    pack_key_int(&pack, "data_parallel_rank", registration->rank);
    pack_key_int(&pack, "max_num_seqs", engine->max_num_seqs);
    pack_key_int(&pack, "max_num_batched_tokens", 8192);
    pack_key_text(&pack, "instance_id", registration->instance_id);
    pack_key_int(&pack, "kv_cache_size_tokens", engine->kv_cache_tokens);
    pack_key_float(&pack, "kv_cache_max_concurrency",
                   (double)engine->kv_cache_tokens / (double)engine->max_model_len);
    wire_pack_literal(&pack, "kv_events_config");
    wire_pack_nil(&pack);
    return wire_pack_finish(&pack, "registration", error);
}

void engine_batch_init(engine_batch_t *batch)
{
    *batch = (engine_batch_t){0};
    wire_pack_init(&batch->outputs_pack, &batch->outputs);
    wire_pack_init(&batch->finished_pack, &batch->finished);
}

void engine_batch_clear(engine_batch_t *batch)
{
    msgpack_sbuffer_clear(&batch->outputs);
    msgpack_sbuffer_clear(&batch->finished);
    batch->outputs_pack.failed = false;
    batch->finished_pack.failed = false;
    batch->output_count = 0;
    batch->finished_count = 0;
}

void engine_batch_free(engine_batch_t *batch)
{
    msgpack_sbuffer_destroy(&batch->outputs);
    msgpack_sbuffer_destroy(&batch->finished);
    engine_batch_init(batch);
}

bool engine_batch_empty(const engine_batch_t *batch)
{
    return batch->output_count == 0 && batch->finished_count == 0;
}

static void pack_prefill_stats(wire_pack_t *pack, const engine_request_t *request)
{
    wire_pack_map(pack, 6);
    pack_key_int(pack, "num_prompt_tokens", request->prompt_tokens);
    pack_key_int(pack, "num_computed_tokens", request->prompt_tokens);
    pack_key_int(pack, "num_cached_tokens", 0);
    pack_key_int(pack, "num_local_cached_tokens", 0);
    pack_key_int(pack, "num_external_cached_tokens", 0);
    pack_key_int(pack, "num_cache_creation_tokens", 0);
}

/* The index of the last value that is not its default, plus one. */
static size_t output_length(const engine_output_t *output)
{
    if (output->prefill)
        return 12;
    if (output->stopped_by_id)
        return 7;
    return output->finish != ENGINE_FINISH_NONE ? 6 : 2;
}

/* EngineCoreOutput: request_id, new_token_ids, three kinds of tensors, finish_reason, stop_reason, events,
 * kv_transfer_params, ec_transfer_params, trace_headers, prefill_stats. */
static void pack_output(wire_pack_t *pack, const engine_output_t *output, uint32_t vocab_size)
{
    const engine_request_t *request = output->request;
    size_t length = output_length(output);
    wire_pack_array(pack, length);
    wire_pack_text(pack, request->id);
    wire_pack_array(pack, (size_t)output->count);
    for (int64_t at = output->first; at < output->first + output->count; at++)
        wire_pack_int(pack, tokens_at(request->prompt_hash, (uint64_t)at, vocab_size));
    if (length == 2)
        return;
    pack_nils(pack, 3);
    if (output->finish != ENGINE_FINISH_NONE)
        wire_pack_int(pack, output->finish);
    else
        wire_pack_nil(pack);
    if (length == 6)
        return;
    int64_t last = output->first + output->count - 1;
    if (output->stopped_by_id)
        wire_pack_int(pack, tokens_at(request->prompt_hash, (uint64_t)last, vocab_size));
    else
        wire_pack_nil(pack);
    if (length == 7)
        return;
    pack_nils(pack, 4);
    pack_prefill_stats(pack, request);
}

void engine_batch_add(engine_batch_t *batch, const engine_output_t *output, uint32_t vocab_size)
{
    if (!output->silent) {
        pack_output(&batch->outputs_pack, output, vocab_size);
        batch->output_count++;
    }
    if (output->finish != ENGINE_FINISH_NONE) {
        wire_pack_text(&batch->finished_pack, output->request->id);
        batch->finished_count++;
    }
}

static void pack_stats(wire_pack_t *pack, const engine_stats_t *stats)
{
    wire_pack_map(pack, 9);
    pack_key_int(pack, "num_running_reqs", stats->running);
    pack_key_int(pack, "num_waiting_reqs", stats->waiting);
    pack_key_int(pack, "num_skipped_waiting_reqs", 0);
    pack_key_int(pack, "step_counter", (int64_t)stats->step_counter);
    pack_key_int(pack, "current_wave", stats->current_wave);
    pack_key_float(pack, "kv_cache_usage", stats->kv_cache_usage);
    wire_pack_literal(pack, "prefix_cache_stats");
    wire_pack_map(pack, 7);
    pack_key_bool(pack, "reset", false);
    pack_key_int(pack, "requests", stats->new_requests);
    pack_key_int(pack, "queries", stats->new_prompt_tokens);
    pack_key_int(pack, "hits", 0);
    pack_key_int(pack, "preempted_requests", 0);
    pack_key_int(pack, "preempted_queries", 0);
    pack_key_int(pack, "preempted_hits", 0);
    wire_pack_literal(pack, "spec_decoding_stats");
    wire_pack_nil(pack);
    wire_pack_literal(pack, "kv_connector_stats");
    wire_pack_nil(pack);
}

static void append(wire_pack_t *pack, msgpack_sbuffer *frame, const msgpack_sbuffer *packed)
{
    if (packed->size > 0)
        pack->failed |= msgpack_sbuffer_write(frame, packed->data, packed->size) != 0;
}

wg_status_t engine_encode_batch(msgpack_sbuffer *frame, engine_stamp_t stamp, const engine_batch_t *batch,
                                const engine_stats_t *stats, wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, frame);
    pack.failed = batch->outputs_pack.failed || batch->finished_pack.failed;
    wire_pack_array(&pack, batch->finished_count > 0 ? 6 : 4);
    wire_pack_int(&pack, stamp.rank);
    wire_pack_array(&pack, batch->output_count);
    append(&pack, frame, &batch->outputs);
    if (stats)
        pack_stats(&pack, stats);
    else
        wire_pack_nil(&pack);
    wire_pack_float(&pack, stamp.seconds);
    if (batch->finished_count > 0) {
        wire_pack_nil(&pack);
        wire_pack_array(&pack, batch->finished_count);
        append(&pack, frame, &batch->finished);
    }
    return wire_pack_finish(&pack, "EngineCoreOutputs", error);
}

wg_status_t engine_encode_stats(msgpack_sbuffer *frame, engine_stamp_t stamp, const engine_stats_t *stats,
                                wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, frame);
    wire_pack_array(&pack, 4);
    wire_pack_int(&pack, stamp.rank);
    wire_pack_array(&pack, 0);
    pack_stats(&pack, stats);
    wire_pack_float(&pack, stamp.seconds);
    return wire_pack_finish(&pack, "EngineCoreOutputs", error);
}

static void pack_result(wire_pack_t *pack, const engine_reply_t *reply)
{
    if (wire_text_is(reply->method, "is_scheduler_paused")) {
        wire_pack_bool(pack, reply->paused);
    } else if (wire_text_is(reply->method, "is_sleeping")) {
        wire_pack_bool(pack, false);
    } else if (wire_text_is(reply->method, "get_supported_tasks")) {
        wire_pack_array(pack, 1);
        wire_pack_literal(pack, "generate");
    } else {
        wire_pack_nil(pack);
    }
}

wg_status_t engine_encode_reply(msgpack_sbuffer *frame, engine_stamp_t stamp, const engine_reply_t *reply,
                                wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, frame);
    wire_pack_array(&pack, 5);
    wire_pack_int(&pack, stamp.rank);
    wire_pack_array(&pack, 0);
    wire_pack_nil(&pack);
    wire_pack_float(&pack, stamp.seconds);
    wire_pack_array(&pack, reply->failure ? 2 : 3);
    wire_pack_int(&pack, reply->call_id);
    if (reply->failure) {
        wire_pack_literal(&pack, reply->failure);
        return wire_pack_finish(&pack, "UtilityOutput", error);
    }
    wire_pack_nil(&pack);
    wire_pack_array(&pack, 2);
    wire_pack_nil(&pack); /* type_info: only set where an operator allows pickled results */
    pack_result(&pack, reply);
    return wire_pack_finish(&pack, "UtilityOutput", error);
}

wg_status_t engine_encode_wave(msgpack_sbuffer *frame, engine_stamp_t stamp, engine_wave_field_t field,
                               int64_t wave, wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, frame);
    wire_pack_array(&pack, (size_t)field + 1);
    wire_pack_int(&pack, stamp.rank);
    wire_pack_array(&pack, 0);
    wire_pack_nil(&pack);
    wire_pack_float(&pack, stamp.seconds);
    pack_nils(&pack, (unsigned)field - 4);
    wire_pack_int(&pack, wave);
    return wire_pack_finish(&pack, "EngineCoreOutputs", error);
}
