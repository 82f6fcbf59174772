/* The tensors of logprobs: both families of dtypes, inline and in frames of their own, and every fault. */
#include "tests/unit/logprobs_frame.h"
#include "tests/unit/outputs_frame.h"

/* --- as msgspec encodes them --- */

/* Two positions with a token and two alternatives each (tests/interop/vectors.py). */
static void assert_golden(const wire_logprobs_t *logprobs)
{
    static const int64_t ids[2][3] = {{11, 5, 9}, {12, 12, 4}};
    static const float values[2][3] = {{-0.5f, -1.25f, -2.0f}, {-0.125f, -0.125f, -8.0f}};
    static const int64_t ranks[2] = {3, 1};
    assert_int_equal(logprobs->positions, 2);
    assert_int_equal(logprobs->width, 3);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(wire_logprobs_rank(logprobs, i), ranks[i]);
        for (uint32_t j = 0; j < 3; j++) {
            assert_int_equal(wire_logprobs_id(logprobs, i, j), ids[i][j]);
            assert_float_equal(wire_logprobs_value(logprobs, i, j), values[i][j], 0.0);
        }
    }
}

#define FRAME(name)                                                                                          \
    {                                                                                                        \
        golden_outputs_logprobs_##name, sizeof golden_outputs_logprobs_##name                                \
    }
#define AUX_FRAMES(name)                                                                                     \
    FRAME(name), FRAME(name##_frame_1), FRAME(name##_frame_2), FRAME(name##_frame_3), FRAME(name##_frame_4), \
        FRAME(name##_frame_5), FRAME(name##_frame_6)

typedef struct {
    wire_bytes_t frames[7]; /* the envelope first */
    size_t count;
} message_t;

static const message_t messages[] = {
    {{FRAME(inline)}, 1},
    {{FRAME(inline_torch)}, 1},
    {{AUX_FRAMES(aux)}, 7},
    {{AUX_FRAMES(aux_numpy)}, 7},
};

static wire_output_t first_output(const wire_bytes_t *envelope)
{
    wire_outputs_t outputs;
    wire_outputs_cursor_t cursor;
    wire_output_t output;
    wg_status_t status;
    assert_int_equal(wire_outputs_decode(&outputs, envelope->data, envelope->size, NULL), WG_OK);
    wire_outputs_begin(&cursor, &outputs);
    assert_true(wire_outputs_next(&cursor, &output, &status, NULL));
    assert_int_equal(status, WG_OK);
    return output;
}

static void test_both_families_of_dtypes_are_read_inline_and_from_frames(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(messages); i++) {
        wire_logprobs_t logprobs;
        wg_error_t error = {0};
        const message_t *message = &messages[i];
        wire_output_t output = first_output(&message->frames[0]);
        if (wire_logprobs_read(&logprobs, output.logprobs, message->frames, message->count, &error) != WG_OK)
            fail_msg("message %zu: %s", i, error.message);
        assert_golden(&logprobs);
        assert_int_equal(
            wire_logprobs_read(&logprobs, output.prompt_logprobs, message->frames, message->count, NULL),
            WG_OK);
        assert_golden(&logprobs);
    }
}

static void test_a_frame_that_did_not_come_is_missed(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(messages); i++) {
        const message_t *message = &messages[i];
        wire_output_t output = first_output(&message->frames[0]);
        for (size_t count = 1; count < message->count; count++) {
            wire_logprobs_t logprobs;
            wg_status_t status =
                wire_logprobs_read(&logprobs, output.prompt_logprobs, message->frames, count, NULL);
            assert_int_equal(status, WG_E_UNSUPPORTED_AUX_FRAMES);
        }
    }
}

/* --- values --- */

static void test_any_number_is_read_as_it_is(void **state)
{
    (void)state;
    static const int64_t ids[] = {INT64_MIN, INT64_MAX, -1, (int64_t)1 << 32};
    static const int32_t narrow_ids[] = {INT32_MIN, INT32_MAX, -1, 1 << 24};
    static const float values[] = {-INFINITY, NAN, 0.0f, -1.1754944e-38f};
    static const int32_t ranks[] = {INT32_MAX, -7};
    for (size_t wide = 0; wide < 2; wide++) {
        const tensors_t tensors = {
            .tensors = {
                wide ? TENSOR("<i8", ids, 0, 2, 2) : TENSOR("int32", narrow_ids, 0, 2, 2),
                TENSOR("<f4", values, 0, 2, 2),
                TENSOR("int32", ranks, 0, 2),
            }};
        wire_logprobs_t logprobs;
        frame_t frame = frame_of_tensors(&tensors);
        assert_int_equal(read_frame(&logprobs, &frame, NULL, 0, NULL), WG_OK);
        for (uint32_t i = 0; i < 4; i++)
            assert_true(wire_logprobs_id(&logprobs, i / 2, i % 2) == (wide ? ids[i] : narrow_ids[i]));
        assert_true(isinf(wire_logprobs_value(&logprobs, 0, 0)) && wire_logprobs_value(&logprobs, 0, 0) < 0);
        assert_true(isnan(wire_logprobs_value(&logprobs, 0, 1)));
        assert_float_equal(wire_logprobs_value(&logprobs, 1, 1), values[3], 0.0);
        assert_int_equal(wire_logprobs_rank(&logprobs, 0), INT32_MAX);
        assert_int_equal(wire_logprobs_rank(&logprobs, 1), -7);
        frame_free(&frame);
    }
}

/* Frames and inline data stand at any address: the sanitizer sees a load that wants an even one. */
static void test_data_at_odd_addresses_is_read(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 8; shift++) {
        wire_logprobs_t logprobs;
        frame_t frame = frame_of_tensors(&sound_in_frames);
        frame_t owners[3];
        wire_bytes_t frames[4] = {{frame.data, frame.size}};
        for (size_t i = 0; i < 3; i++) {
            const tensor_t *tensor = &sound_in_frames.tensors[i];
            owners[i] = frame_of_size(shift + tensor->size);
            memcpy(owners[i].data + shift, tensor->data, tensor->size);
            frames[i + 1] = (wire_bytes_t){owners[i].data + shift, tensor->size};
        }
        assert_int_equal(read_frame(&logprobs, &frame, frames, 4, NULL), WG_OK);
        assert_sound(&logprobs);
        for (size_t i = 0; i < 3; i++)
            frame_free(&owners[i]);
        frame_free(&frame);
    }
}

static void test_one_frame_may_serve_two_tensors(void **state)
{
    (void)state;
    static const int32_t both[] = {4, 7};
    static const float values[] = {-1.0f, -2.0f};
    const tensors_t tensors = {
        .tensors = {TENSOR("<i4", both, 1, 2, 1), TENSOR("<f4", values, 0, 2, 1), TENSOR("<i4", both, 1, 2)}};
    wire_logprobs_t logprobs;
    frame_t frame = frame_of_tensors(&tensors);
    const wire_bytes_t frames[] = {{frame.data, frame.size}, {(const uint8_t *)both, sizeof both}};
    assert_int_equal(read_frame(&logprobs, &frame, frames, 2, NULL), WG_OK);
    assert_int_equal(wire_logprobs_id(&logprobs, 1, 0), 7);
    assert_int_equal(wire_logprobs_rank(&logprobs, 1), 7);
    frame_free(&frame);
}

static void test_no_positions_are_no_data(void **state)
{
    (void)state;
    const tensors_t tensors = {
        .tensors = {TENSOR_EMPTY("<i4", 0, 5), TENSOR_EMPTY("<f4", 0, 5), TENSOR_EMPTY("<i4", 0)}};
    wire_logprobs_t logprobs;
    frame_t frame = frame_of_tensors(&tensors);
    assert_int_equal(read_frame(&logprobs, &frame, NULL, 0, NULL), WG_OK);
    assert_int_equal(logprobs.positions, 0);
    assert_int_equal(logprobs.width, 5);
    frame_free(&frame);
}

/* cu_num_generated_tokens, nil or an array of ints, and what later versions append. */
static void test_what_follows_the_ranks_is_passed_over(void **state)
{
    (void)state;
    static const char *const tails[] = {NULL,  "null",        "[0,3,4]", "[]",
                                        "'x'", "{'a':[1.5]}", "7",       "[['<i4',[1],99]]"};
    for (size_t i = 0; i < COUNT_OF(tails); i++) {
        for (size_t times = 1; times < 4; times++) {
            wire_logprobs_t logprobs;
            tensors_t tensors = sound_inline;
            tensors.tail = tails[i];
            tensors.tail_times = tails[i] ? times : 0;
            frame_t frame = frame_of_tensors(&tensors);
            assert_int_equal(read_frame(&logprobs, &frame, NULL, 0, NULL), WG_OK);
            assert_sound(&logprobs);
            frame_free(&frame);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_families_of_dtypes_are_read_inline_and_from_frames),
        cmocka_unit_test(test_a_frame_that_did_not_come_is_missed),
        cmocka_unit_test(test_any_number_is_read_as_it_is),
        cmocka_unit_test(test_data_at_odd_addresses_is_read),
        cmocka_unit_test(test_one_frame_may_serve_two_tensors),
        cmocka_unit_test(test_no_positions_are_no_data),
        cmocka_unit_test(test_what_follows_the_ranks_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
