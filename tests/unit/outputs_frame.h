/* outputs_frame.h: EngineCoreOutputs for the tests of wire_outputs: the envelopes that msgspec encoded, in
 * both forms, and a decoder that reads all of one as a client would. */
#ifndef WG_TESTS_OUTPUTS_FRAME_H
#define WG_TESTS_OUTPUTS_FRAME_H

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
    }
    assert_int_equal(outputs, out.output_count);
    wire_finished_begin(&cursor, &out);
    while (wire_finished_next(&cursor, &id))
        finished++;
    assert_int_equal(finished, out.finished_count);
    return WG_OK;
}

#endif
