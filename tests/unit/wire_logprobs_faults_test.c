/* Logprobs that are refused: each fault of a tensor, inline and in a frame, and random damage. */
#include "tests/unit/logprobs_frame.h"
#include "tests/unit/wire_random.h"

static const wire_bytes_t sound_frames[] = {
    {(const uint8_t *)"envelope", 8},
    {(const uint8_t *)sound_ids, sizeof sound_ids},
    {(const uint8_t *)sound_values, sizeof sound_values},
    {(const uint8_t *)sound_ranks, sizeof sound_ranks},
};

static void assert_refused(wg_status_t status, const wg_error_t *error, const char *why)
{
    char expected[256];
    snprintf(expected, sizeof expected, "unsupported auxiliary frame(s): %s", why);
    if (status != WG_E_UNSUPPORTED_AUX_FRAMES)
        fail_msg("status %s, expected: %s", wg_status_name(status), expected);
    assert_int_equal(error->status, WG_E_UNSUPPORTED_AUX_FRAMES);
    assert_string_equal(error->message, expected);
}

/* --- what is not three tensors --- */

static void test_what_is_not_an_array_of_three_is_no_logprobs(void **state)
{
    (void)state;
    static const char *const values[] = {"null", "7",  "'text'", "{'a':1}", "true",
                                         "1.5",  "[]", "[1]",    "[[],[]]"};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        wire_logprobs_t logprobs;
        wg_error_t error = {0};
        frame_t frame = frame_of_json(values[i]);
        wg_status_t status = read_frame(&logprobs, &frame, sound_frames, 4, &error);
        assert_decode_error(status, &error, "logprobs", values[i][0] == '[',
                            "not an array of token ids, logprobs and ranks");
        assert_int_equal(read_frame(&logprobs, &frame, sound_frames, 4, NULL), WG_E_DECODE);
        frame_free(&frame);
    }
    wire_logprobs_t logprobs;
    assert_int_equal(wire_logprobs_read(&logprobs, (wire_bytes_t){NULL, 0}, NULL, 0, NULL), WG_E_DECODE);
}

#define VALUES ",['<f4',[2,3],2]"
#define RANKS ",['int64',[2],3]"

static void test_each_fault_of_a_tensor_has_its_reason(void **state)
{
    (void)state;
#define NO_TENSOR "a tensor is not [dtype, shape, data]"
#define DTYPE "a tensor's dtype is wrong"
#define WRONG_SHAPE "a tensor's shape is wrong"
#define NO_FRAME "a tensor's data is in a frame that is not there"
#define NO_DATA "a tensor's data is neither inline nor a frame"
#define MISMATCH "a tensor's bytes do not match its shape"
#define NO_FIT "the shapes of token ids, logprobs and ranks do not fit together"
    static const struct {
        const char *json;
        const char *why;
    } rows[] = {
        {"[null" VALUES RANKS "]", NO_TENSOR},
        {"['<i4'" VALUES RANKS "]", NO_TENSOR},
        {"[{'dtype':'<i4'}" VALUES RANKS "]", NO_TENSOR},
        {"[[]" VALUES RANKS "]", NO_TENSOR},
        {"[['<i4',[2,3]]" VALUES RANKS "]", NO_TENSOR},
        {"[['<i4',[2,3],1,0]" VALUES RANKS "]", NO_TENSOR},
        {"[['<i4',[2,3],1]" VALUES ",['int64',[2],3,0]]", NO_TENSOR},
        {"[[4,[2,3],1]" VALUES RANKS "]", NO_TENSOR},
        {"[['<i4',[2,3],1],null" RANKS "]", NO_TENSOR},
        {"[['<i4',[2,3],1]" VALUES ",null]", NO_TENSOR},
        {"[['',[2,3],1]" VALUES RANKS "]", DTYPE},
        {"[['<i',[2,3],1]" VALUES RANKS "]", DTYPE},
        {"[['<i44',[2,3],1]" VALUES RANKS "]", DTYPE},
        {"[['<i2',[2,3],1]" VALUES RANKS "]", DTYPE},
        {"[['>i4',[2,3],1]" VALUES RANKS "]", DTYPE},
        {"[['<u4',[2,3],1]" VALUES RANKS "]", DTYPE},
        {"[['torch.int32',[2,3],1]" VALUES RANKS "]", DTYPE},
        {"[['<f4',[2,3],1]" VALUES RANKS "]", DTYPE}, /* ids are ints */
        {"[['<i4',[2,3],1],['<f8',[2,3],2]" RANKS "]", DTYPE},
        {"[['<i4',[2,3],1],['float64',[2,3],2]" RANKS "]", DTYPE},
        {"[['<i4',[2,3],1],['bfloat16',[2,3],2]" RANKS "]", DTYPE},
        {"[['<i4',[2,3],1],['<i4',[2,3],2]" RANKS "]", DTYPE}, /* and logprobs are floats */
        {"[['<i4',[2,3],1]" VALUES ",['<f4',[2],3]]", DTYPE},
        {"[['<i4',6,1]" VALUES RANKS "]", WRONG_SHAPE},
        {"[['<i4',null,1]" VALUES RANKS "]", WRONG_SHAPE},
        {"[['<i4',[],1]" VALUES RANKS "]", WRONG_SHAPE},
        {"[['<i4',[6],1]" VALUES RANKS "]", WRONG_SHAPE},
        {"[['<i4',[1,2,3],1]" VALUES RANKS "]", WRONG_SHAPE},
        {"[['<i4',[2,3],1]" VALUES ",['int64',[2,1],3]]", WRONG_SHAPE},
        {"[['<i4',[2,3],1]" VALUES ",['int64',[],3]]", WRONG_SHAPE},
        {"[['<i4',['2',3],1]" VALUES RANKS "]", WRONG_SHAPE},
        {"[['<i4',[2.0,3],1]" VALUES RANKS "]", WRONG_SHAPE},
        {"[['<i4',[-2,-3],1]" VALUES RANKS "]", WRONG_SHAPE}, /* whose product is right */
        {"[['<i4',[-1,3],1]" VALUES RANKS "]", WRONG_SHAPE},
        {"[['<i4',[2147483648,3],1]" VALUES RANKS "]", WRONG_SHAPE},
        {"[['<i4',[9223372036854775807,3],1]" VALUES RANKS "]", WRONG_SHAPE},
        {"[['<i4',[4294967296,4294967296],1]" VALUES RANKS "]", WRONG_SHAPE}, /* 2^64 */
        {"[['<i4',[2147483647,2147483647],1]" VALUES RANKS "]", MISMATCH},
        {"[['<i8',[2147483647,2147483647],1]" VALUES RANKS "]", MISMATCH},
        {"[['<i4',[65536,65536],1]" VALUES RANKS "]", MISMATCH}, /* 2^32 elements: 0 in 32 bits */
        {"[['<i4',[0,3],1]" VALUES RANKS "]", MISMATCH},
        {"[['<i4',[2,4],1]" VALUES RANKS "]", MISMATCH},
        {"[['<i4',[1,3],1]" VALUES RANKS "]", MISMATCH},
        {"[['<i8',[2,3],1]" VALUES RANKS "]", MISMATCH},
        {"[['<i4',[2,3],1]" VALUES ",['<i4',[2],3]]", MISMATCH},
        {"[['<i4',[2,3],0]" VALUES RANKS "]", NO_FRAME}, /* the envelope is no tensor */
        {"[['<i4',[2,3],4]" VALUES RANKS "]", NO_FRAME},
        {"[['<i4',[2,3],-1]" VALUES RANKS "]", NO_FRAME},
        {"[['<i4',[2,3],9223372036854775807]" VALUES RANKS "]", NO_FRAME},
        {"[['<i4',[2,3],-9223372036854775808]" VALUES RANKS "]", NO_FRAME},
        {"[['<i4',[2,3],4294967297]" VALUES RANKS "]", NO_FRAME}, /* 1 in 32 bits */
        {"[['<i4',[2,3],null]" VALUES RANKS "]", NO_DATA},
        {"[['<i4',[2,3],'1']" VALUES RANKS "]", NO_DATA},
        {"[['<i4',[2,3],1.0]" VALUES RANKS "]", NO_DATA},
        {"[['<i4',[2,3],[1]]" VALUES RANKS "]", NO_DATA},
        {"[['<i4',[3,2],1]" VALUES RANKS "]", NO_FIT},
        {"[['<i4',[2,3],1],['<f4',[3,2],2]" RANKS "]", NO_FIT},
        {"[['<i4',[2,3],1],['<f4',[6,1],2]" RANKS "]", NO_FIT},
        {"[['<i4',[2,3],1],['<f4',[2,2],3]" RANKS "]", NO_FIT}, /* of as many rows */
        {"[['<i4',[6,1],1],['<f4',[6,1],2]" RANKS "]", NO_FIT},
        {"[['<i4',[2,3],1]" VALUES ",['<i4',[4],3]]", NO_FIT},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        wire_logprobs_t logprobs;
        wg_error_t error = {0};
        frame_t frame = frame_of_json(rows[i].json);
        wg_status_t status = read_frame(&logprobs, &frame, sound_frames, 4, &error);
        if (status == WG_OK)
            fail_msg("accepted: %s", rows[i].json);
        assert_refused(status, &error, rows[i].why);
        assert_int_equal(read_frame(&logprobs, &frame, sound_frames, 4, NULL), WG_E_UNSUPPORTED_AUX_FRAMES);
        frame_free(&frame);
    }
}

static void test_a_width_of_none_is_refused(void **state)
{
    (void)state;
    const tensors_t tensors = {
        .tensors = {TENSOR_EMPTY("<i4", 2, 0), TENSOR_EMPTY("<f4", 2, 0), sound_inline.tensors[2]}};
    wire_logprobs_t logprobs;
    wg_error_t error = {0};
    frame_t frame = frame_of_tensors(&tensors);
    assert_refused(read_frame(&logprobs, &frame, NULL, 0, &error), &error, NO_FIT);
    frame_free(&frame);
}

/* Of 2^32 elements no byte is there: in 32 bits that would fit. */
static void test_a_product_beyond_32_bits_is_not_taken_for_nothing(void **state)
{
    (void)state;
    static const int32_t ranks[65536];
    const tensors_t tensors = {.tensors = {TENSOR_EMPTY("<i4", 65536, 65536),
                                           TENSOR_EMPTY("<f4", 65536, 65536),
                                           TENSOR("<i4", ranks, 0, 65536)}};
    wire_logprobs_t logprobs;
    wg_error_t error = {0};
    frame_t frame = frame_of_tensors(&tensors);
    assert_refused(read_frame(&logprobs, &frame, NULL, 0, &error), &error, MISMATCH);
    frame_free(&frame);
}

static void test_inline_data_has_the_one_type_and_the_right_size(void **state)
{
    (void)state;
    for (size_t which = 0; which < 3; which++) {
        wire_logprobs_t logprobs;
        wg_error_t error = {0};
        tensors_t tensors = sound_inline;
        for (int type = INT8_MIN; type <= INT8_MAX; type++) {
            tensors.tensors[which].ext = (int8_t)type;
            frame_t frame = frame_of_tensors(&tensors);
            wg_status_t status = read_frame(&logprobs, &frame, NULL, 0, &error);
            if (type == 3)
                assert_int_equal(status, WG_OK);
            else
                assert_refused(status, &error, "inline data of an unknown extension type");
            frame_free(&frame);
        }
        tensors = sound_inline;
        size_t right = tensors.tensors[which].size;
        for (size_t size = 0; size < right; size++) {
            tensors.tensors[which].size = size;
            frame_t frame = frame_of_tensors(&tensors);
            assert_refused(read_frame(&logprobs, &frame, NULL, 0, &error), &error, MISMATCH);
            frame_free(&frame);
        }
    }
}

static void test_a_frame_has_the_right_size(void **state)
{
    (void)state;
    frame_t frame = frame_of_tensors(&sound_in_frames);
    for (size_t which = 1; which < 4; which++) {
        wire_logprobs_t logprobs;
        wg_error_t error = {0};
        wire_bytes_t frames[4];
        memcpy(frames, sound_frames, sizeof frames);
        for (size_t size = 0; size < sound_frames[which].size; size++) {
            frames[which].size = size;
            assert_refused(read_frame(&logprobs, &frame, frames, 4, &error), &error, MISMATCH);
        }
        frame_t longer = frame_of_size(sound_frames[which].size + 1);
        frames[which] = (wire_bytes_t){longer.data, longer.size};
        assert_refused(read_frame(&logprobs, &frame, frames, 4, &error), &error, MISMATCH);
        frame_free(&longer);
        frames[which] = (wire_bytes_t){NULL, 0};
        assert_refused(read_frame(&logprobs, &frame, frames, 4, &error), &error, MISMATCH);
    }
    frame_free(&frame);
}

static void test_a_frame_index_beyond_int64_is_no_frame(void **state)
{
    (void)state;
    static const char bytes[] = "\x93\x93\xa3<i4\x92\x01\x01\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x90\x90";
    wire_logprobs_t logprobs;
    wg_error_t error = {0};
    frame_t frame = frame_of_bytes(bytes, sizeof bytes - 1);
    assert_refused(read_frame(&logprobs, &frame, sound_frames, 4, &error), &error, NO_DATA);
    frame_free(&frame);
}

/* --- parts and damage --- */

static void test_no_part_of_the_three_tensors_is_logprobs(void **state)
{
    (void)state;
    const tensors_t both[] = {sound_inline, sound_in_frames};
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        wire_logprobs_t logprobs;
        frame_t whole = frame_of_tensors(&both[i]);
        for (size_t cut = 0; cut < whole.size; cut++) {
            frame_t part = frame_of_bytes(whole.data, cut);
            if (read_frame(&logprobs, &part, sound_frames, 4, NULL) == WG_OK)
                fail_msg("accepted: the first %zu of %zu bytes", cut, whole.size);
            frame_free(&part);
        }
        frame_free(&whole);
    }
}

/* What was damaged is refused, or is other logprobs whose every element is there. */
static void test_random_damage_does_no_harm(void **state)
{
    (void)state;
    enum { ROUNDS = 40000 };
    const tensors_t *const both[] = {&sound_inline, &sound_in_frames};
    size_t accepted = 0;
    random_seed = 5;
    for (int round = 0; round < ROUNDS; round++) {
        wire_logprobs_t logprobs;
        frame_t whole = frame_of_tensors(both[round % 2]);
        frame_t damaged = frame_of_bytes(whole.data, damage_randomly(whole.data, whole.size));
        wg_status_t status = read_frame(&logprobs, &damaged, sound_frames, 4, NULL);
        if (status == WG_OK) {
            accepted++;
            read_all(&logprobs);
        } else if (status != WG_E_DECODE && status != WG_E_UNSUPPORTED_AUX_FRAMES) {
            fail_msg("round %d: %s", round, wg_status_name(status));
        }
        frame_free(&damaged);
        frame_free(&whole);
    }
    assert_true(accepted > ROUNDS / 100 && accepted < ROUNDS); /* else nothing was tested */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_an_array_of_three_is_no_logprobs),
        cmocka_unit_test(test_each_fault_of_a_tensor_has_its_reason),
        cmocka_unit_test(test_a_width_of_none_is_refused),
        cmocka_unit_test(test_a_product_beyond_32_bits_is_not_taken_for_nothing),
        cmocka_unit_test(test_inline_data_has_the_one_type_and_the_right_size),
        cmocka_unit_test(test_a_frame_has_the_right_size),
        cmocka_unit_test(test_a_frame_index_beyond_int64_is_no_frame),
        cmocka_unit_test(test_no_part_of_the_three_tensors_is_logprobs),
        cmocka_unit_test(test_random_damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
