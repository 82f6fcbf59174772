/* The ready response: as msgspec encodes it, with fewer keys, with more, and malformed. */
#include "common/wire_registration.h"

#include "tests/unit/golden/engine_vectors.h"
#include "tests/unit/wire_frame.h"

static const char type[] = "EngineCoreReadyResponse";

static wg_status_t decode(const void *data, size_t size, wg_error_t *error)
{
    wire_registration_t out;
    return wire_registration_decode(&out, data, size, error);
}

static wire_registration_t registration_of(const void *data, size_t size)
{
    wire_registration_t out;
    wg_error_t error;
    frame_t frame = frame_of_bytes(data, size);
    if (wire_registration_decode(&out, frame.data, frame.size, &error) != WG_OK)
        fail_msg("refused: %s", error.message);
    frame_free(&frame); /* nothing of it points into the frame */
    return out;
}

static wire_registration_t registration_of_json(const char *json)
{
    frame_t frame = frame_of_json(json);
    wire_registration_t out = registration_of(frame.data, frame.size);
    frame_free(&frame);
    return out;
}

static void assert_all_unknown(const wire_registration_t *registration)
{
    assert_int_equal(registration->max_model_len, WIRE_UNKNOWN);
    assert_int_equal(registration->num_gpu_blocks, WIRE_UNKNOWN);
    assert_int_equal(registration->block_size, WIRE_UNKNOWN);
    assert_int_equal(registration->max_num_seqs, WIRE_UNKNOWN);
    assert_int_equal(registration->data_parallel_size, WIRE_UNKNOWN);
    assert_string_equal(registration->vllm_version, "");
}

static void test_an_engine_of_today_sends_every_key(void **state)
{
    (void)state;
    wire_registration_t out =
        registration_of(golden_registration_all_keys, sizeof golden_registration_all_keys);
    assert_int_equal(out.max_model_len, 4096);
    assert_int_equal(out.num_gpu_blocks, 1024);
    assert_int_equal(out.block_size, 16);
    assert_int_equal(out.max_num_seqs, 256);
    assert_int_equal(out.data_parallel_size, 1);
    assert_string_equal(out.vllm_version, "0.15.0");
}

static void test_an_older_engine_sends_two(void **state)
{
    (void)state;
    wire_registration_t out = registration_of(golden_registration_2_keys, sizeof golden_registration_2_keys);
    assert_int_equal(out.max_model_len, 8192);
    assert_int_equal(out.num_gpu_blocks, 512);
    assert_int_equal(out.block_size, WIRE_UNKNOWN);
    assert_int_equal(out.max_num_seqs, WIRE_UNKNOWN);
    assert_int_equal(out.data_parallel_size, WIRE_UNKNOWN);
    assert_string_equal(out.vllm_version, "");
}

static void test_the_oldest_engines_send_an_empty_frame(void **state)
{
    (void)state;
    wire_registration_t out = registration_of(NULL, 0);
    assert_all_unknown(&out);
    out = registration_of_json("{}");
    assert_all_unknown(&out);
}

static void test_a_later_engine_sends_keys_that_we_do_not_know(void **state)
{
    (void)state;
    wire_registration_t out =
        registration_of(golden_registration_extra_keys, sizeof golden_registration_extra_keys);
    assert_int_equal(out.max_model_len, 4096);
    assert_int_equal(out.data_parallel_size, 1);
    assert_string_equal(out.vllm_version, "0.15.0");
}

static void test_a_nil_is_unknown_and_a_zero_is_zero(void **state)
{
    (void)state;
    wire_registration_t out =
        registration_of_json("{'max_model_len':null,'num_gpu_blocks':null,'block_size':null,"
                             "'max_num_seqs':null,'data_parallel_size':null,'vllm_version':null}");
    assert_all_unknown(&out);
    out = registration_of_json("{'max_model_len':0,'num_gpu_blocks':0,'block_size':0,'max_num_seqs':0,"
                               "'data_parallel_size':0}");
    assert_int_equal(out.max_model_len, 0);
    assert_int_equal(out.num_gpu_blocks, 0);
    assert_int_equal(out.block_size, 0);
    assert_int_equal(out.max_num_seqs, 0);
    assert_int_equal(out.data_parallel_size, 0);
    out = registration_of_json("{'max_model_len':9223372036854775807}");
    assert_true(out.max_model_len == INT64_MAX);
}

#define DIGITS_60 "123456789012345678901234567890123456789012345678901234567890"

static void test_a_long_version_is_cut_between_characters(void **state)
{
    (void)state;
    static const struct {
        const char *sent;
        const char *kept;
    } rows[] = {
        {DIGITS_60 "abc", DIGITS_60 "abc"},
        {DIGITS_60 "abcd", DIGITS_60 "abc"},
        {DIGITS_60 "a\xc3\xbc", DIGITS_60 "a\xc3\xbc"},
        {DIGITS_60 "ab\xc3\xbc", DIGITS_60 "ab"},
        {DIGITS_60 "\xf0\x9f\x98\x80", DIGITS_60},
        {DIGITS_60 "a\xe2\x82\xac" DIGITS_60, DIGITS_60 "a"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char json[256];
        snprintf(json, sizeof json, "{'vllm_version':'%s','block_size':7}", rows[i].sent);
        wire_registration_t out = registration_of_json(json);
        assert_string_equal(out.vllm_version, rows[i].kept);
        assert_int_equal(out.block_size, 7);
    }
}

static void test_malformed_registrations_are_refused(void **state)
{
    (void)state;
    static const frame_refusal_t refusals[] = {
        {JSON("null"), 0, "not a map"},
        {JSON("['max_model_len',1]"), 0, "not a map"},
        {JSON("{'max_model_len':'4096'}"), 15, "not an integer"},
        {JSON("{'max_model_len':4096.0}"), 15, "not an integer"},
        {JSON("{'max_model_len':true}"), 15, "not an integer"},
        {JSON("{'max_model_len':-1}"), 16, "a negative count"},
        {JSON("{'num_gpu_blocks':[512]}"), 16, "not an integer"},
        {JSON("{'num_gpu_blocks':-9223372036854775808}"), 25, "a negative count"},
        {JSON("{'block_size':{}}"), 12, "not an integer"},
        {JSON("{'max_num_seqs':false}"), 14, "not an integer"},
        {JSON("{'data_parallel_size':'1'}"), 20, "not an integer"},
        {JSON("{'vllm_version':15}"), 14, "not a string"},
        {RAW("\x81\xadmax_model_len\xcf\x80\0\0\0\0\0\0\0"), 15, "an integer beyond int64"},
        {RAW("\x81\xacvllm_version\xc4\x01"
             "0"),
         14, "not a string"},
        {RAW("\x81\xacvllm_version\xa1\xff"), 16, "a string that is not UTF-8"},
        {RAW("\x81\x01\x02"), 1, "not a string"},
        {RAW("\x80\x80"), 1, "bytes are left over"},
        {RAW("\x81\xa1k\xc1"), 3, "not MessagePack (byte c1)"},
        {RAW("\x82\xa1k\xc0"), 1, "a count is larger than the frame"},
    };
    assert_frames_refused(decode, type, refusals, COUNT_OF(refusals));
}

static void test_no_part_of_a_registration_is_a_registration(void **state)
{
    (void)state;
    assert_truncations_refused(decode, type, golden_registration_all_keys,
                               sizeof golden_registration_all_keys, 1);
    assert_truncations_refused(decode, type, golden_registration_extra_keys,
                               sizeof golden_registration_extra_keys, 1);
}

static void test_damage_does_no_harm(void **state)
{
    (void)state;
    assert_survives_damage(decode, golden_registration_extra_keys, sizeof golden_registration_extra_keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_engine_of_today_sends_every_key),
        cmocka_unit_test(test_an_older_engine_sends_two),
        cmocka_unit_test(test_the_oldest_engines_send_an_empty_frame),
        cmocka_unit_test(test_a_later_engine_sends_keys_that_we_do_not_know),
        cmocka_unit_test(test_a_nil_is_unknown_and_a_zero_is_zero),
        cmocka_unit_test(test_a_long_version_is_cut_between_characters),
        cmocka_unit_test(test_malformed_registrations_are_refused),
        cmocka_unit_test(test_no_part_of_a_registration_is_a_registration),
        cmocka_unit_test(test_damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
