/* What engines send: the envelope, each output, its logprobs with their frames, its parameters as JSON.
 *
 * An input is a whole message: one byte with the number of auxiliary frames (mod 8), the length of each in
 * two bytes (little-endian), the envelope, and the frames behind it. A length that is too large takes what
 * there is. */
#include "common/engine_id.h"
#include "common/wire_json.h"
#include "common/wire_logprobs.h"
#include "common/wire_outputs.h"
#include "tests/fuzz/fuzz.h"

#include <jansson.h>

enum { AUX_MAX = 7 };

typedef struct {
    wire_bytes_t frames[1 + AUX_MAX];
    uint8_t *blocks[1 + AUX_MAX]; /* one for each, so that a read behind its end is seen */
    size_t count;
} message_t;

static void add_frame(message_t *message, const uint8_t *data, size_t size)
{
    uint8_t *block = malloc(size + 1);
    FUZZ_CHECK(block);
    if (size > 0)
        memcpy(block + 1, data, size); /* at an odd address */
    message->blocks[message->count] = block;
    message->frames[message->count++] = (wire_bytes_t){block + 1, size};
}

static void split(message_t *message, const uint8_t *data, size_t size)
{
    size_t sizes[AUX_MAX];
    size_t count = size > 0 ? data[0] % (AUX_MAX + 1u) : 0;
    size_t at = size > 0;
    size_t aux = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = size - at >= 2 ? data[at] | (size_t)data[at + 1] << 8 : 0;
        at += size - at >= 2 ? 2 : 0;
        sizes[i] = length;
    }
    for (size_t i = 0; i < count; i++) {
        size_t left = size - at - aux;
        sizes[i] = sizes[i] < left ? sizes[i] : left;
        aux += sizes[i];
    }
    add_frame(message, data + at, size - at - aux);
    at = size - aux;
    for (size_t i = 0; i < count; i++) {
        add_frame(message, data + at, sizes[i]);
        at += sizes[i];
    }
}

/* Of inline data the sanitizer sees no read behind its end: the rest of the frame is there. */
static void check_tensor(const wire_tensor_t *tensor, uint64_t elements)
{
    fuzz_read(tensor->data.data, tensor->data.size);
    FUZZ_CHECK(tensor->data.size == elements * (tensor->is_wide ? 8 : 4));
}

/* The volatile keeps the reads. */
static void read_logprobs(wire_bytes_t raw, const message_t *message)
{
    wire_logprobs_t logprobs;
    wg_error_t error = {0};
    if (raw.size == 0)
        return;
    wg_status_t status = wire_logprobs_read(&logprobs, raw, message->frames, message->count, &error);
    if (status != WG_OK) {
        FUZZ_CHECK(status == WG_E_DECODE || status == WG_E_UNSUPPORTED_AUX_FRAMES);
        fuzz_refusal(status, &error);
        return;
    }
    FUZZ_CHECK(logprobs.width >= 1 && !logprobs.values.is_wide);
    check_tensor(&logprobs.ids, (uint64_t)logprobs.positions * logprobs.width);
    check_tensor(&logprobs.values, (uint64_t)logprobs.positions * logprobs.width);
    check_tensor(&logprobs.ranks, logprobs.positions);
    for (uint32_t i = 0; i < logprobs.positions; i++) {
        volatile int64_t number = wire_logprobs_rank(&logprobs, i);
        for (uint32_t j = 0; j < logprobs.width; j++) {
            volatile float value = wire_logprobs_value(&logprobs, i, j);
            number = wire_logprobs_id(&logprobs, i, j);
            (void)value;
        }
        (void)number;
    }
}

/* jansson is the judge; it has no integers beyond int64 and no keys with NUL, although JSON does. */
static void check_json(wire_bytes_t raw)
{
    text_buffer_t text = {0};
    json_error_t fault;
    wire_json_write(&text, raw);
    FUZZ_CHECK(!text.failed && text.size > 0);
    FUZZ_CHECK(text.size <= 8 * raw.size + 4);
    json_t *json =
        json_loadb(text.data, text.size, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &fault);
    FUZZ_CHECK(json || json_error_code(&fault) == json_error_null_byte_in_key);
    json_decref(json);
    text_buffer_free(&text);
}

static void check_map(wire_bytes_t raw)
{
    wire_reader_t reader;
    if (raw.size == 0)
        return;
    wire_reader_init(&reader, raw.data, raw.size);
    FUZZ_CHECK(wire_reader_peek(&reader) == WIRE_MAP);
    FUZZ_CHECK(wire_reader_skip(&reader) && reader.at == raw.size);
    check_json(raw);
}

static void check_output(wire_output_t *output, const message_t *message)
{
    fuzz_text(output->request_id);
    fuzz_text(output->stop_text);
    FUZZ_CHECK(output->request_id.data);
    FUZZ_CHECK(output->finish >= WIRE_FINISH_NONE && output->finish <= WIRE_FINISH_REPETITION);
    FUZZ_CHECK(!output->stop_text.data || output->stop_token == WIRE_NO_STOP_TOKEN);
    for (uint32_t i = 0; i < output->token_count; i++) {
        int64_t token;
        FUZZ_CHECK(wire_reader_int(&output->tokens, &token));
    }
    read_logprobs(output->logprobs, message);
    read_logprobs(output->prompt_logprobs, message);
    check_map(output->kv_transfer_params);
    check_map(output->ec_transfer_params);
}

static void read_outputs(const wire_outputs_t *outputs, const message_t *message)
{
    wire_outputs_cursor_t cursor;
    wire_output_t output;
    wire_text_t id;
    wg_status_t status;
    wg_error_t error = {0};
    uint32_t count = 0;
    wire_outputs_begin(&cursor, outputs);
    for (; wire_outputs_next(&cursor, &output, &status, &error); count++) {
        if (status == WG_OK) {
            check_output(&output, message);
        } else {
            fuzz_refusal(status, &error);
            fuzz_text(output.request_id);
        }
    }
    FUZZ_CHECK(count == outputs->output_count);
    wire_finished_begin(&cursor, outputs);
    for (count = 0; wire_finished_next(&cursor, &id); count++)
        fuzz_text(id);
    FUZZ_CHECK(count == outputs->finished_count);
}

static void check_envelope(const wire_outputs_t *outputs)
{
    const wire_stats_t *stats = &outputs->stats;
    FUZZ_CHECK(outputs->engine_index <= WG_RANK_MAX);
    FUZZ_CHECK(stats->running >= 0 && stats->waiting >= 0);
    FUZZ_CHECK(stats->kv_cache_usage >= 0.0 && stats->kv_cache_usage <= 1.0);
    FUZZ_CHECK(outputs->wave_complete >= 0 && outputs->start_wave >= 0);
    fuzz_text(outputs->utility.failure);
    if (outputs->utility.result.size > 0)
        check_json(outputs->utility.result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    message_t message = {.count = 0};
    wire_outputs_t outputs;
    wg_error_t error = {0};
    split(&message, data, size);
    wg_status_t status =
        wire_outputs_decode(&outputs, message.frames[0].data, message.frames[0].size, &error);
    if (status == WG_OK) {
        check_envelope(&outputs);
        read_outputs(&outputs, &message);
    } else {
        FUZZ_CHECK(status == WG_E_DECODE);
        fuzz_refusal(status, &error);
    }
    read_logprobs(message.frames[0], &message); /* also as a value of its own, which is found sooner */
    check_json(message.frames[0]);
    for (size_t i = 0; i < message.count; i++)
        free(message.blocks[i]);
    return 0;
}
