#include "common/wire_outputs.h"

#include "common/engine_id.h"

static void read_stats(wire_reader_t *reader, wire_stats_t *stats)
{
    uint32_t pairs = 0;
    int64_t skipped = 0;
    wire_reader_map(reader, &pairs);
    for (uint32_t i = 0; i < pairs && !reader->fault; i++) {
        wire_text_t key;
        if (!wire_reader_text(reader, &key))
            return;
        if (wire_text_is(key, "num_running_reqs"))
            wire_reader_int(reader, &stats->running);
        else if (wire_text_is(key, "num_waiting_reqs"))
            wire_reader_int(reader, &stats->waiting);
        else if (wire_text_is(key, "num_skipped_waiting_reqs"))
            wire_reader_int(reader, &skipped);
        else if (wire_text_is(key, "step_counter"))
            wire_reader_int(reader, &stats->step_counter);
        else if (wire_text_is(key, "current_wave"))
            wire_reader_int(reader, &stats->current_wave);
        else if (wire_text_is(key, "kv_cache_usage"))
            wire_reader_float(reader, &stats->kv_cache_usage);
        else
            wire_reader_skip(reader);
    }
    if (stats->running < 0 || stats->waiting < 0 || skipped < 0 || stats->waiting > INT64_MAX - skipped)
        wire_reader_fail(reader, "a queue count out of range");
    else
        stats->waiting += skipped;
    if (!(stats->kv_cache_usage >= 0.0 && stats->kv_cache_usage <= 1.0))
        wire_reader_fail(reader, "kv_cache_usage is not within 0 and 1");
}

static void read_utility(wire_reader_t *reader, wire_utility_t *utility)
{
    uint32_t items = 0;
    if (!wire_reader_array(reader, &items))
        return;
    if (items < 1)
        wire_reader_fail(reader, "a utility output without call id");
    wire_reader_int(reader, &utility->call_id);
    if (items > 1 && !wire_reader_nil(reader))
        wire_reader_text(reader, &utility->failure);
    if (items > 2 && !wire_reader_nil(reader))
        wire_reader_raw(reader, &utility->result);
    for (uint32_t i = 3; i < items && !reader->fault; i++)
        wire_reader_skip(reader);
}

/* An array whose items are looked at later: where they are, and how many. */
static void read_items(wire_reader_t *reader, bool texts, uint32_t *count, wire_bytes_t *items)
{
    wire_text_t text;
    if (!wire_reader_array(reader, count))
        return;
    size_t start = reader->at;
    for (uint32_t i = 0; i < *count && !reader->fault; i++)
        texts ? wire_reader_text(reader, &text) : wire_reader_skip(reader);
    *items = (wire_bytes_t){reader->data + start, reader->at - start};
}

static void read_wave(wire_reader_t *reader, bool *present, int64_t *wave)
{
    if (wire_reader_nil(reader))
        return;
    *present = true;
    if (wire_reader_int(reader, wave) && *wave < 0)
        wire_reader_fail(reader, "a negative wave");
}

static void read_field(wire_reader_t *reader, uint32_t index, wire_outputs_t *out)
{
    int64_t number = 0;
    switch (index) {
    case 0:
        if (wire_reader_int(reader, &number) && (number < 0 || number > WG_RANK_MAX))
            wire_reader_fail(reader, "an engine index out of range");
        out->engine_index = (uint32_t)number;
        break;
    case 1:
        read_items(reader, false, &out->output_count, &out->outputs);
        break;
    case 2:
        out->has_stats = !wire_reader_nil(reader);
        if (out->has_stats)
            read_stats(reader, &out->stats);
        break;
    case 3:
        wire_reader_float(reader, &out->timestamp);
        break;
    case 4:
        out->has_utility = !wire_reader_nil(reader);
        if (out->has_utility)
            read_utility(reader, &out->utility);
        break;
    case 5:
        if (!wire_reader_nil(reader))
            read_items(reader, true, &out->finished_count, &out->finished);
        break;
    case 6:
        read_wave(reader, &out->has_wave_complete, &out->wave_complete);
        break;
    case 7:
        read_wave(reader, &out->has_start_wave, &out->start_wave);
        break;
    default:
        wire_reader_skip(reader);
        break;
    }
}

wg_status_t wire_outputs_decode(wire_outputs_t *out, const void *data, size_t size, wg_error_t *error)
{
    wire_reader_t reader;
    uint32_t fields = 0;
    *out = (wire_outputs_t){0};
    wire_reader_init(&reader, data, size);
    wire_reader_array(&reader, &fields);
    for (uint32_t i = 0; i < fields && !reader.fault; i++)
        read_field(&reader, i, out);
    if (out->output_count > 0 && (out->has_utility || out->has_wave_complete || out->has_start_wave))
        wire_reader_fail(&reader, "request outputs mixed with a utility output or a wave");
    return wire_reader_finish(&reader, "EngineCoreOutputs", error);
}

void wire_outputs_begin(wire_outputs_cursor_t *cursor, const wire_outputs_t *outputs)
{
    wire_reader_init(&cursor->reader, outputs->outputs.data, outputs->outputs.size);
    cursor->left = outputs->output_count;
}

static void read_tokens(wire_reader_t *reader, wire_output_t *out)
{
    if (!wire_reader_array(reader, &out->token_count))
        return;
    out->tokens = *reader;
    for (uint32_t i = 0; i < out->token_count && !reader->fault; i++) {
        int64_t token;
        wire_reader_int(reader, &token);
    }
}

static void read_finish(wire_reader_t *reader, wire_output_t *out)
{
    int64_t reason;
    if (wire_reader_nil(reader) || !wire_reader_int(reader, &reason))
        return;
    if (reason < WIRE_FINISH_STOP || reason > WIRE_FINISH_REPETITION)
        wire_reader_fail(reader, "an unknown finish reason");
    else
        out->finish = (wire_finish_t)reason;
}

static void read_stop_reason(wire_reader_t *reader, wire_output_t *out)
{
    if (wire_reader_peek(reader) == WIRE_TEXT)
        wire_reader_text(reader, &out->stop_text);
    else if (!wire_reader_nil(reader))
        wire_reader_int(reader, &out->stop_token);
}

typedef enum { MAP_OTHER, MAP_PREFILL_STATS, MAP_TRACE_HEADERS } map_kind_t;

/* What a map behind index 8 is, by its keys: the indexes differ between versions (protocol.md 6). */
static map_kind_t read_map(wire_bytes_t raw, int64_t *cached)
{
    wire_reader_t reader;
    uint32_t pairs = 0;
    map_kind_t kind = MAP_OTHER;
    *cached = 0;
    wire_reader_init(&reader, raw.data, raw.size);
    wire_reader_map(&reader, &pairs);
    for (uint32_t i = 0; i < pairs && !reader.fault; i++) {
        wire_text_t key = {NULL, 0};
        if (wire_reader_peek(&reader) == WIRE_TEXT)
            wire_reader_text(&reader, &key);
        else
            wire_reader_skip(&reader);
        if (key.data && wire_text_is(key, "num_prompt_tokens"))
            kind = MAP_PREFILL_STATS;
        else if (key.data && (wire_text_is(key, "traceparent") || wire_text_is(key, "tracestate")))
            kind = MAP_TRACE_HEADERS;
        if (key.data && wire_text_is(key, "num_cached_tokens") && wire_reader_peek(&reader) == WIRE_INT)
            wire_reader_int(&reader, cached);
        else
            wire_reader_skip(&reader);
    }
    return reader.fault ? MAP_OTHER : kind;
}

/* One field behind index 8, whatever it is. Index 9 is ec_transfer_params, or in older versions already the
 * trace headers. */
static void read_late_field(wire_reader_t *reader, uint32_t index, wire_output_t *out)
{
    wire_bytes_t raw;
    int64_t cached;
    bool is_map = wire_reader_peek(reader) == WIRE_MAP;
    if (!wire_reader_raw(reader, &raw) || !is_map)
        return;
    map_kind_t kind = read_map(raw, &cached);
    if (kind == MAP_PREFILL_STATS && out->cached_tokens < 0 && cached >= 0)
        out->cached_tokens = cached;
    if (kind == MAP_OTHER && index == 9)
        out->ec_transfer_params = raw;
}

static void read_tensors(wire_reader_t *reader, wire_bytes_t *out)
{
    if (!wire_reader_nil(reader))
        wire_reader_raw(reader, out);
}

static void read_kv_transfer_params(wire_reader_t *reader, wire_output_t *out)
{
    if (wire_reader_nil(reader))
        return;
    if (wire_reader_peek(reader) != WIRE_MAP)
        wire_reader_fail(reader, "not a map");
    wire_reader_raw(reader, &out->kv_transfer_params);
}

static void read_output_field(wire_reader_t *reader, uint32_t index, wire_output_t *out)
{
    switch (index) {
    case 0:
        wire_reader_text(reader, &out->request_id);
        break;
    case 1:
        read_tokens(reader, out);
        break;
    case 2:
        read_tensors(reader, &out->logprobs);
        break;
    case 3:
        read_tensors(reader, &out->prompt_logprobs);
        break;
    case 5:
        read_finish(reader, out);
        break;
    case 6:
        read_stop_reason(reader, out);
        break;
    case 4:
    case 7:
        wire_reader_skip(reader);
        break;
    case 8:
        read_kv_transfer_params(reader, out);
        break;
    default:
        read_late_field(reader, index, out);
        break;
    }
}

bool wire_outputs_next(wire_outputs_cursor_t *cursor, wire_output_t *out, wg_status_t *status,
                       wg_error_t *error)
{
    wire_bytes_t raw;
    uint32_t fields = 0;
    if (cursor->left == 0 || !wire_reader_raw(&cursor->reader, &raw))
        return false;
    cursor->left--;
    *out = (wire_output_t){.finish = WIRE_FINISH_NONE, .stop_token = WIRE_NO_STOP_TOKEN, .cached_tokens = -1};
    wire_reader_t reader;
    wire_reader_init(&reader, raw.data, raw.size);
    if (wire_reader_array(&reader, &fields) && fields < 2)
        wire_reader_fail(&reader, "an output without request id and tokens");
    for (uint32_t i = 0; i < fields && !reader.fault; i++)
        read_output_field(&reader, i, out);
    *status = wire_reader_finish(&reader, "EngineCoreOutput", error);
    return true;
}

void wire_finished_begin(wire_outputs_cursor_t *cursor, const wire_outputs_t *outputs)
{
    wire_reader_init(&cursor->reader, outputs->finished.data, outputs->finished.size);
    cursor->left = outputs->finished_count;
}

bool wire_finished_next(wire_outputs_cursor_t *cursor, wire_text_t *request_id)
{
    if (cursor->left == 0 || !wire_reader_text(&cursor->reader, request_id))
        return false;
    cursor->left--;
    return true;
}
