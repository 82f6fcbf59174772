#include "tests/fake_engine/engine_decode.h"

#include "tests/fake_engine/engine_sampling.h"
#include "tests/fake_engine/tokens.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- ADD --- */

typedef struct {
    wire_reader_t *reader;
    engine_request_t *request;
    uint32_t vocab_size;
    uint32_t client_count;
    const char *sampling_key;
} add_decoder_t;

static bool on_request_id(add_decoder_t *decoder)
{
    wire_text_t id;
    if (!wire_reader_text(decoder->reader, &id))
        return false;
    decoder->request = engine_request_new(id);
    return decoder->request || wire_reader_fail(decoder->reader, "out of memory");
}

static bool on_prompt(add_decoder_t *decoder)
{
    uint32_t count;
    int64_t id;
    if (wire_reader_nil(decoder->reader))
        return true;
    if (!wire_reader_array(decoder->reader, &count))
        return false;
    decoder->request->prompt_tokens = count;
    for (uint32_t i = 0; i < count; i++) {
        if (!wire_reader_int(decoder->reader, &id))
            return false;
        if (id < 0 || id >= decoder->vocab_size)
            return wire_reader_fail(decoder->reader, "an id outside the vocabulary");
        decoder->request->prompt_hash = tokens_prompt(decoder->request->prompt_hash, (uint32_t)id);
    }
    return true;
}

/* Of fields that only carry what our frontends never send; so no auxiliary frame can belong to one either. */
static bool on_nil(add_decoder_t *decoder)
{
    return wire_reader_nil(decoder->reader) || wire_reader_fail(decoder->reader, "not nil");
}

static bool on_sampling_params(add_decoder_t *decoder)
{
    if (wire_reader_nil(decoder->reader))
        return wire_reader_fail(decoder->reader, "neither sampling nor pooling parameters");
    return engine_sampling_read(decoder->reader, decoder->request, decoder->vocab_size,
                                &decoder->sampling_key);
}

static bool on_arrival_time(add_decoder_t *decoder)
{
    double seconds;
    if (!wire_reader_float(decoder->reader, &seconds))
        return false;
    return isfinite(seconds) || wire_reader_fail(decoder->reader, "not finite");
}

static bool on_lora_request(add_decoder_t *decoder)
{
    uint32_t count;
    wire_text_t name;
    wire_text_t path;
    int64_t id;
    if (wire_reader_nil(decoder->reader))
        return true;
    if (!wire_reader_array(decoder->reader, &count))
        return false;
    if (count < 3)
        return wire_reader_fail(decoder->reader, "shorter than name, id and path");
    if (!wire_reader_text(decoder->reader, &name) || !wire_reader_int(decoder->reader, &id) ||
        !wire_reader_text(decoder->reader, &path))
        return false;
    if (id < 1 || path.size == 0)
        return wire_reader_fail(decoder->reader, "an id below 1 or an empty path");
    for (uint32_t i = 3; i < count; i++) {
        if (!wire_reader_skip(decoder->reader))
            return false;
    }
    return true;
}

static bool on_optional_text(add_decoder_t *decoder)
{
    wire_text_t text;
    return wire_reader_nil(decoder->reader) || wire_reader_text(decoder->reader, &text);
}

static bool on_optional_int(add_decoder_t *decoder)
{
    int64_t value;
    return wire_reader_nil(decoder->reader) || wire_reader_int(decoder->reader, &value);
}

static bool on_current_wave(add_decoder_t *decoder)
{
    return wire_reader_int(decoder->reader, &decoder->request->current_wave);
}

static bool on_int(add_decoder_t *decoder)
{
    int64_t value;
    return wire_reader_int(decoder->reader, &value);
}

static bool on_client_index(add_decoder_t *decoder)
{
    int64_t index;
    if (!wire_reader_int(decoder->reader, &index))
        return false;
    if (index < 0 || index >= decoder->client_count)
        return wire_reader_fail(decoder->reader, "not an index of the outputs in INIT");
    decoder->request->client_index = (uint32_t)index;
    return true;
}

static bool on_trace_headers(add_decoder_t *decoder)
{
    uint32_t count;
    wire_text_t text;
    if (wire_reader_nil(decoder->reader))
        return true;
    if (!wire_reader_map(decoder->reader, &count))
        return false;
    for (uint64_t i = 0; i < 2 * (uint64_t)count; i++) {
        if (!wire_reader_text(decoder->reader, &text))
            return false;
    }
    return true;
}

static bool on_bool(add_decoder_t *decoder)
{
    bool value;
    return wire_reader_bool(decoder->reader, &value);
}

static bool on_optional_bool(add_decoder_t *decoder)
{
    return wire_reader_nil(decoder->reader) || on_bool(decoder);
}

static bool on_abort_immediately(add_decoder_t *decoder)
{
    return wire_reader_bool(decoder->reader, &decoder->request->abort_immediately);
}

#define REQUIRED_FIELDS 9u /* vLLM's struct has defaults from there on */

static const struct {
    const char *name;
    bool (*read)(add_decoder_t *decoder);
} add_fields[] = {
    {"request_id", on_request_id},
    {"prompt_token_ids", on_prompt},
    {"mm_features", on_nil},
    {"sampling_params", on_sampling_params},
    {"pooling_params", on_nil},
    {"arrival_time", on_arrival_time},
    {"lora_request", on_lora_request},
    {"cache_salt", on_optional_text},
    {"data_parallel_rank", on_optional_int},
    {"prompt_embeds", on_nil},
    {"prompt_is_token_ids", on_nil},
    {"client_index", on_client_index},
    {"current_wave", on_current_wave},
    {"priority", on_int},
    {"trace_headers", on_trace_headers},
    {"resumable", on_bool},
    {"external_req_id", on_optional_text},
    {"reasoning_ended", on_optional_bool},
    {"reasoning_parser_kwargs", on_nil},
    {"abort_immediately", on_abort_immediately},
};
#define ADD_FIELD_COUNT (sizeof add_fields / sizeof *add_fields)

wg_status_t engine_decode_add(engine_request_t **out, uint32_t vocab_size, uint32_t client_count,
                              const void *data, size_t size, wg_error_t *error)
{
    wire_reader_t reader;
    add_decoder_t decoder = {.reader = &reader, .vocab_size = vocab_size, .client_count = client_count};
    uint32_t count = 0;
    uint32_t at = 0;
    wire_reader_init(&reader, data, size);
    if (wire_reader_array(&reader, &count) && count < REQUIRED_FIELDS)
        wire_reader_fail(&reader, "fewer fields than have no default");
    while (!reader.fault && at < count) {
        if (at < ADD_FIELD_COUNT ? add_fields[at].read(&decoder) : wire_reader_skip(&reader))
            at++;
    }
    char place[96];
    const char *field =
        reader.fault && count >= REQUIRED_FIELDS && at < ADD_FIELD_COUNT ? add_fields[at].name : NULL;
    snprintf(place, sizeof place, "EngineCoreRequest%s%s%s%s", field ? "." : "", field ? field : "",
             decoder.sampling_key ? "." : "", decoder.sampling_key ? decoder.sampling_key : "");
    wg_status_t status = wire_reader_finish(&reader, place, error);
    if (status != WG_OK)
        engine_request_destroy(&decoder.request);
    *out = decoder.request;
    return status;
}

/* --- ABORT, UTILITY, START_DP_WAVE --- */

wg_status_t engine_decode_abort(wire_text_t **ids, uint32_t *count, const void *data, size_t size,
                                wg_error_t *error)
{
    wire_reader_t reader;
    *ids = NULL;
    *count = 0;
    wire_reader_init(&reader, data, size);
    if (wire_reader_array(&reader, count) && *count > 0) {
        *ids = calloc(*count, sizeof **ids);
        if (!*ids)
            wire_reader_fail(&reader, "out of memory");
    }
    for (uint32_t i = 0; *ids && i < *count; i++) {
        if (!wire_reader_text(&reader, &(*ids)[i]))
            break;
    }
    wg_status_t status = wire_reader_finish(&reader, "ABORT", error);
    if (status != WG_OK) {
        free(*ids);
        *ids = NULL;
        *count = 0;
    }
    return status;
}

wg_status_t engine_decode_utility(engine_call_t *out, uint32_t client_count, const void *data, size_t size,
                                  wg_error_t *error)
{
    wire_reader_t reader;
    uint32_t count = 0;
    int64_t client_index = 0;
    *out = (engine_call_t){0};
    wire_reader_init(&reader, data, size);
    if (wire_reader_array(&reader, &count) && count != 4)
        wire_reader_fail(&reader, "not four values");
    wire_reader_int(&reader, &client_index);
    if (client_index < 0 || client_index >= client_count)
        wire_reader_fail(&reader, "client_index is not an index of the outputs in INIT");
    wire_reader_int(&reader, &out->call_id);
    wire_reader_text(&reader, &out->method);
    if (wire_reader_peek(&reader) != WIRE_ARRAY)
        wire_reader_fail(&reader, "the arguments are not an array");
    wire_reader_raw(&reader, &out->args);
    out->client_index = (uint32_t)client_index;
    return wire_reader_finish(&reader, "UTILITY", error);
}

static void read_pause_mode(wire_reader_t *reader, engine_pause_mode_t *out)
{
    static const char *const names[] = {
        [ENGINE_PAUSE_ABORT] = "abort", [ENGINE_PAUSE_WAIT] = "wait", [ENGINE_PAUSE_KEEP] = "keep"};
    wire_text_t name;
    if (!wire_reader_text(reader, &name))
        return;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (wire_text_is(name, names[i])) {
            *out = (engine_pause_mode_t)i;
            return;
        }
    }
    wire_reader_fail(reader, "a mode that is not abort, wait or keep");
}

wg_status_t engine_decode_pause(engine_pause_mode_t *out, wire_bytes_t args, wg_error_t *error)
{
    wire_reader_t reader;
    uint32_t count = 0;
    bool clear_cache;
    *out = ENGINE_PAUSE_ABORT;
    wire_reader_init(&reader, args.data, args.size);
    if (wire_reader_array(&reader, &count) && count > 2)
        wire_reader_fail(&reader, "more than two arguments");
    if (count > 0)
        read_pause_mode(&reader, out);
    if (count > 1)
        wire_reader_bool(&reader, &clear_cache);
    return wire_reader_finish(&reader, "pause_scheduler", error);
}

wg_status_t engine_decode_wave(engine_wave_t *out, const void *data, size_t size, wg_error_t *error)
{
    wire_reader_t reader;
    uint32_t count = 0;
    *out = (engine_wave_t){.exclude = -1};
    wire_reader_init(&reader, data, size);
    if (wire_reader_array(&reader, &count) && count != 2)
        wire_reader_fail(&reader, "not two values");
    wire_reader_int(&reader, &out->wave);
    if (!wire_reader_nil(&reader))
        wire_reader_int(&reader, &out->exclude);
    return wire_reader_finish(&reader, "START_DP_WAVE", error);
}
