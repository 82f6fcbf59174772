#include "tests/fake_engine/engine_init.h"

#include "common/engine_id.h"
#include "common/wire_reader.h"
#include "tests/fake_engine/tokens.h"

#include <stdlib.h>
#include <string.h>

static bool read_string(wire_reader_t *reader, char **out)
{
    wire_text_t text;
    if (!wire_reader_text(reader, &text))
        return false;
    free(*out); /* a key that came twice */
    *out = strndup(text.data, text.size);
    return *out || wire_reader_fail(reader, "out of memory");
}

static void free_strings(char **strings, uint32_t count)
{
    for (uint32_t i = 0; strings && i < count; i++)
        free(strings[i]);
    free(strings);
}

static bool read_strings(wire_reader_t *reader, char ***out, uint32_t *count)
{
    free_strings(*out, *count);
    *out = NULL;
    if (!wire_reader_array(reader, count))
        return false;
    *out = calloc(*count > 0 ? *count : 1, sizeof **out);
    if (!*out)
        return wire_reader_fail(reader, "out of memory");
    for (uint32_t i = 0; i < *count; i++) {
        if (!read_string(reader, &(*out)[i]))
            return false;
    }
    return true;
}

static bool read_optional_string(wire_reader_t *reader, char **out)
{
    return wire_reader_nil(reader) || read_string(reader, out);
}

typedef struct {
    engine_init_t *init;
    uint32_t input_count;
    uint32_t output_count;
} init_decoder_t;

static bool read_address(wire_reader_t *reader, init_decoder_t *decoder, wire_text_t key)
{
    engine_init_t *init = decoder->init;
    if (wire_text_is(key, "inputs"))
        return read_strings(reader, &init->inputs, &decoder->input_count);
    if (wire_text_is(key, "outputs"))
        return read_strings(reader, &init->outputs, &decoder->output_count);
    if (wire_text_is(key, "coordinator_input"))
        return read_optional_string(reader, &init->coordinator_input);
    if (wire_text_is(key, "coordinator_output"))
        return read_optional_string(reader, &init->coordinator_output);
    if (wire_text_is(key, "frontend_stats_publish_address"))
        return read_optional_string(reader, &init->stats_address);
    return wire_reader_skip(reader);
}

static bool read_addresses(wire_reader_t *reader, init_decoder_t *decoder)
{
    uint32_t count;
    wire_text_t key;
    if (!wire_reader_map(reader, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!wire_reader_text(reader, &key) || !read_address(reader, decoder, key))
            return false;
    }
    return true;
}

static bool read_ports(wire_reader_t *reader)
{
    uint32_t count;
    int64_t port;
    if (!wire_reader_array(reader, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!wire_reader_int(reader, &port))
            return false;
    }
    return true;
}

/* The engine assigns each key onto its own config, so another one than these four would be an error there. */
static bool read_parallel_key(wire_reader_t *reader, engine_init_t *init, wire_text_t key, unsigned *seen)
{
    if (wire_text_is(key, "data_parallel_master_ip")) {
        *seen |= 1;
        return read_string(reader, &init->master_ip);
    }
    if (wire_text_is(key, "data_parallel_master_port")) {
        *seen |= 2;
        return wire_reader_int(reader, &init->master_port);
    }
    if (wire_text_is(key, "_data_parallel_master_port_list")) {
        *seen |= 4;
        return read_ports(reader);
    }
    if (wire_text_is(key, "data_parallel_size")) {
        *seen |= 8;
        return wire_reader_int(reader, &init->data_parallel_size);
    }
    return wire_reader_fail(reader, "parallel_config has a key that an engine does not have");
}

static bool read_parallel_config(wire_reader_t *reader, engine_init_t *init)
{
    uint32_t count;
    unsigned seen = 0;
    wire_text_t key;
    size_t start = reader->at;
    if (!wire_reader_map(reader, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!wire_reader_text(reader, &key) || !read_parallel_key(reader, init, key, &seen))
            return false;
    }
    if (count > 0 && seen != 15)
        return wire_reader_fail(reader, "parallel_config lacks a key");
    init->lockstep = count > 0;
    init->config_hash = TOKENS_EMPTY_PROMPT;
    for (size_t i = start; i < reader->at; i++)
        init->config_hash = tokens_prompt(init->config_hash, reader->data[i]);
    return true;
}

static void check_init(wire_reader_t *reader, init_decoder_t *decoder, bool has_parallel_config)
{
    const engine_init_t *init = decoder->init;
    if (!init->inputs || !init->outputs || !has_parallel_config)
        wire_reader_fail(reader, "inputs, outputs or parallel_config is missing");
    else if (decoder->input_count == 0 || decoder->input_count != decoder->output_count)
        wire_reader_fail(reader, "inputs and outputs must be as many, and at least one");
    else if (!init->coordinator_input != !init->coordinator_output)
        wire_reader_fail(reader, "one coordinator address without the other");
    else if (init->data_parallel_size < 1)
        wire_reader_fail(reader, "data_parallel_size below 1");
    else if (init->lockstep && (init->master_port < 1 || init->master_port > UINT16_MAX))
        wire_reader_fail(reader, "data_parallel_master_port is not a port");
    else if (init->data_parallel_size > (int64_t)WG_RANK_MAX + 1)
        wire_reader_fail(reader, "data_parallel_size above what two bytes can number");
}

wg_status_t engine_init_decode(engine_init_t *out, const void *data, size_t size, wg_error_t *error)
{
    wire_reader_t reader;
    init_decoder_t decoder = {.init = out};
    uint32_t count = 0;
    bool has_parallel_config = false;
    *out = (engine_init_t){.data_parallel_size = 1};
    wire_reader_init(&reader, data, size);
    wire_reader_map(&reader, &count);
    for (uint32_t i = 0; i < count; i++) {
        wire_text_t key;
        if (!wire_reader_text(&reader, &key))
            break;
        if (wire_text_is(key, "addresses"))
            read_addresses(&reader, &decoder);
        else if (wire_text_is(key, "parallel_config"))
            has_parallel_config = read_parallel_config(&reader, out);
        else
            wire_reader_skip(&reader);
    }
    check_init(&reader, &decoder, has_parallel_config);
    wg_status_t status = wire_reader_finish(&reader, "INIT", error);
    if (status != WG_OK) { /* the two counts may differ here, so the lists are freed each with its own */
        free_strings(out->inputs, decoder.input_count);
        free_strings(out->outputs, decoder.output_count);
        out->inputs = NULL;
        out->outputs = NULL;
        engine_init_free(out);
        return status;
    }
    out->client_count = decoder.input_count;
    return WG_OK;
}

void engine_init_free(engine_init_t *init)
{
    free_strings(init->inputs, init->client_count);
    free_strings(init->outputs, init->client_count);
    free(init->coordinator_input);
    free(init->coordinator_output);
    free(init->stats_address);
    free(init->master_ip);
    *init = (engine_init_t){0};
}
