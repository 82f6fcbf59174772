/* outputs_frame.h: EngineCoreOutputs for the tests of wire_outputs: the envelopes that msgspec encoded, in
 * both forms, and a decoder that reads all of one as a client would. */
#ifndef WG_TESTS_OUTPUTS_FRAME_H
#define WG_TESTS_OUTPUTS_FRAME_H

#include "common/wire_json.h"
#include "common/wire_logprobs.h"
#include "common/wire_outputs.h"
#include "tests/unit/golden/engine_vectors.h"
#include "tests/unit/wire_frame.h"

/* What msgspec writes (every field), and the same with trailing defaults dropped. */
typedef struct {
    const unsigned char *data;
    size_t size;
} vector_t;

#define BOTH_FORMS(name)                                                                                     \
    {                                                                                                        \
        {golden_outputs_##name, sizeof golden_outputs_##name},                                               \
        {                                                                                                    \
            golden_outputs_##name##_trimmed, sizeof golden_outputs_##name##_trimmed                          \
        }                                                                                                    \
    }

static inline wire_outputs_t outputs_of(const frame_t *frame)
{
    wire_outputs_t out;
    wg_error_t error;
    if (wire_outputs_decode(&out, frame->data, frame->size, &error) != WG_OK)
        fail_msg("refused: %s", error.message);
    return out;
}

/* Logprobs may be unsound although their output is not: then only they are refused. */
static inline void read_logprobs(wire_bytes_t raw, wire_bytes_t envelope)
{
    wire_logprobs_t logprobs;
    if (raw.size == 0 || wire_logprobs_read(&logprobs, raw, &envelope, 1, NULL) != WG_OK)
        return;
    for (uint32_t i = 0; i < logprobs.positions; i++) {
        volatile int64_t rank = wire_logprobs_rank(&logprobs, i);
        volatile float value = wire_logprobs_value(&logprobs, i, logprobs.width - 1);
        volatile int64_t id = wire_logprobs_id(&logprobs, i, logprobs.width - 1);
        (void)rank, (void)value, (void)id;
    }
}

static inline void read_params(wire_bytes_t raw)
{
    text_buffer_t json = {0};
    wire_json_write(&json, raw);
    assert_false(json.failed);
    assert_true(json.size > 0);
    text_buffer_free(&json);
}

/* The envelope, then everything in it. */
static inline wg_status_t decode_outputs(const void *data, size_t size, wg_error_t *error)
{
    wire_outputs_t out;
    wire_outputs_cursor_t cursor;
    wire_output_t output;
    wire_text_t id;
    wg_status_t of_one;
    wg_status_t status = wire_outputs_decode(&out, data, size, error);
    if (status != WG_OK)
        return status;
    uint32_t outputs = 0;
    uint32_t finished = 0;
    wire_outputs_begin(&cursor, &out);
    while (wire_outputs_next(&cursor, &output, &of_one, NULL)) {
        int64_t token;
        outputs++;
        for (uint32_t i = 0; of_one == WG_OK && i < output.token_count; i++)
            assert_true(wire_reader_int(&output.tokens, &token));
        read_logprobs(output.logprobs, (wire_bytes_t){data, size});
        read_logprobs(output.prompt_logprobs, (wire_bytes_t){data, size});
        read_params(output.kv_transfer_params);
        read_params(output.ec_transfer_params);
    }
    assert_int_equal(outputs, out.output_count);
    wire_finished_begin(&cursor, &out);
    while (wire_finished_next(&cursor, &id))
        finished++;
    assert_int_equal(finished, out.finished_count);
    return WG_OK;
}

#endif
