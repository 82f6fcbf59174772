/* The coordinator's publishes: ours as msgspec would encode them, and those of older and later coordinators. */
#include "common/wire_publish.h"

#include "tests/unit/golden/client_vectors.h"
#include "tests/unit/wire_frame.h"

static const char type[] = "publish";

static wg_status_t decode(const void *data, size_t size, wg_error_t *error)
{
    wire_publish_t out;
    wg_status_t status = wire_publish_decode(&out, data, size, error);
    for (uint32_t i = 0; status == WG_OK && i < out.count; i++) {
        wire_load_t load;
        wire_publish_next(&out, &load);
        assert_null(out.loads.fault); /* it was checked as a whole */
        assert_true(load.waiting >= 0 && load.running >= 0);
        assert_true(load.kv_cache_usage >= 0.0 && load.kv_cache_usage <= 1.0);
    }
    return status;
}

static wire_publish_t publish_of(const frame_t *frame)
{
    wire_publish_t out;
    wg_error_t error;
    if (wire_publish_decode(&out, frame->data, frame->size, &error) != WG_OK)
        fail_msg("refused: %s", error.message);
    return out;
}

static void assert_next(wire_publish_t *publish, int64_t waiting, int64_t running, double usage)
{
    wire_load_t load;
    memset(&load, 0xff, sizeof load);
    wire_publish_next(publish, &load);
    assert_int_equal(load.waiting, waiting);
    assert_int_equal(load.running, running);
    assert_float_equal(load.kv_cache_usage, usage, 0.0);
}

static void assert_encodes(const wire_load_t *loads, uint32_t count, int64_t wave, bool running,
                           const void *expected, size_t size)
{
    msgpack_sbuffer buffer;
    wg_error_t error;
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_publish_encode(&buffer, loads, count, wave, running, &error), WG_OK);
    frame_t frame = frame_of_buffer(&buffer);
    assert_int_equal(frame.size, size);
    assert_memory_equal(frame.data, expected, size);
    frame_free(&frame);
}

static const wire_load_t two_loads[] = {{.waiting = 1, .running = 2, .kv_cache_usage = 0.5},
                                        {.running = 300}};

static void test_counts_are_encoded_with_three_numbers(void **state)
{
    (void)state;
    assert_encodes(two_loads, 2, 4, true, golden_publish_3_numbers, sizeof golden_publish_3_numbers);
    frame_t none = frame_of_json("[[],0,false]");
    assert_encodes(two_loads, 0, 0, false, none.data, none.size);
    frame_free(&none);
}

static void test_without_counts_nil_is_encoded(void **state)
{
    (void)state;
    assert_encodes(NULL, 0, (int64_t)1 << 33, false, golden_publish_no_counts,
                   sizeof golden_publish_no_counts);
    assert_encodes(NULL, 2, (int64_t)1 << 33, false, golden_publish_no_counts,
                   sizeof golden_publish_no_counts);
}

static void test_counts_are_read(void **state)
{
    (void)state;
    frame_t frame = frame_of_bytes(golden_publish_3_numbers, sizeof golden_publish_3_numbers);
    wire_publish_t out = publish_of(&frame);
    assert_true(out.has_counts && out.engines_running);
    assert_int_equal(out.count, 2);
    assert_int_equal(out.current_wave, 4);
    assert_next(&out, 1, 2, 0.5);
    assert_next(&out, 0, 300, 0.0);
    frame_free(&frame);
}

static void test_an_older_coordinator_sends_two_numbers(void **state)
{
    (void)state;
    frame_t frame = frame_of_bytes(golden_publish_2_numbers, sizeof golden_publish_2_numbers);
    wire_publish_t out = publish_of(&frame);
    assert_true(out.has_counts && !out.engines_running);
    assert_int_equal(out.count, 2);
    assert_int_equal(out.current_wave, 4);
    assert_next(&out, 1, 2, 0.0);
    assert_next(&out, 0, 300, 0.0);
    frame_free(&frame);
}

static void test_a_change_of_the_wave_has_no_counts(void **state)
{
    (void)state;
    frame_t frame = frame_of_bytes(golden_publish_no_counts, sizeof golden_publish_no_counts);
    wire_publish_t out = publish_of(&frame);
    assert_false(out.has_counts || out.engines_running);
    assert_int_equal(out.count, 0);
    assert_int_equal(out.current_wave, (int64_t)1 << 33);
    frame_free(&frame);
}

static void test_a_later_coordinator_may_send_more(void **state)
{
    (void)state;
    frame_t frame = frame_of_json("[[[1,2,0.25,'later',{}],[3,4]],9223372036854775807,true,null,{'a':[1]}]");
    wire_publish_t out = publish_of(&frame);
    assert_int_equal(out.count, 2);
    assert_true(out.current_wave == INT64_MAX && out.engines_running);
    assert_next(&out, 1, 2, 0.25);
    assert_next(&out, 3, 4, 0.0);
    frame_free(&frame);
}

static void test_what_is_encoded_is_read_back(void **state)
{
    (void)state;
    enum { RANKS = 3000 };
    static wire_load_t loads[RANKS];
    msgpack_sbuffer buffer;
    for (int i = 0; i < RANKS; i++)
        loads[i] = (wire_load_t){
            .waiting = i, .running = INT64_MAX - i, .kv_cache_usage = (double)i / (double)RANKS};
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_publish_encode(&buffer, loads, RANKS, 0, true, NULL), WG_OK);
    frame_t frame = frame_of_buffer(&buffer);
    wire_publish_t out = publish_of(&frame);
    assert_int_equal(out.count, RANKS);
    for (int i = 0; i < RANKS; i++)
        assert_next(&out, loads[i].waiting, loads[i].running, loads[i].kv_cache_usage);
    frame_free(&frame);
}

static void test_malformed_publishes_are_refused(void **state)
{
    (void)state;
    static const frame_refusal_t refusals[] = {
        {RAW(""), 0, "the frame ends too early"},
        {RAW("READY"), 0, "not an array"},
        {RAW("\x01"), 0, "not an array"},
        {JSON("{}"), 0, "not an array"},
        {JSON("[]"), 1, "less than three fields"},
        {JSON("[null]"), 1, "less than three fields"},
        {JSON("[null,0]"), 1, "less than three fields"},
        {JSON("[0,0,true]"), 1, "not an array"},
        {JSON("[{},0,true]"), 1, "not an array"},
        {JSON("[[null],0,true]"), 2, "not an array"},
        {JSON("[[1],0,true]"), 2, "not an array"},
        {JSON("[[[]],0,true]"), 3, "a load of less than two numbers"},
        {JSON("[[[1]],0,true]"), 3, "a load of less than two numbers"},
        {JSON("[[['1',2]],0,true]"), 3, "not an integer"},
        {JSON("[[[1,null]],0,true]"), 4, "not an integer"},
        {JSON("[[[1.0,2]],0,true]"), 3, "not an integer"},
        {JSON("[[[-1,2]],0,true]"), 5, "a load out of range"},
        {JSON("[[[1,-2]],0,true]"), 5, "a load out of range"},
        {JSON("[[[1,2,1.01]],0,true]"), 14, "a load out of range"},
        {JSON("[[[1,2,-0.01]],0,true]"), 14, "a load out of range"},
        {JSON("[[[1,2,null]],0,true]"), 5, "not a number"},
        {RAW("\x93\x91\x93\x01\x02\xca\x7f\xc0\x00\x00\x00\xc3"), 10, "a load out of range"}, /* NaN */
        {JSON("[[[1,2],[1,2],[1]],0,true]"), 9, "a load of less than two numbers"},
        {JSON("[null,-1,true]"), 3, "a negative wave"},
        {JSON("[null,null,true]"), 2, "not an integer"},
        {JSON("[null,1.0,true]"), 2, "not an integer"},
        {JSON("[null,0,1]"), 3, "not a boolean"},
        {JSON("[null,0,null]"), 3, "not a boolean"},
        {RAW("\x93\xc0\x00\xc3\xc0"), 4, "bytes are left over"},
        {RAW("\x94\xc0\x00\xc3\xc1"), 4, "not MessagePack (byte c1)"},
        {RAW("\x94\xc0\x00\xc3"), 1, "a count is larger than the frame"},
        {RAW("\x93\xc0\xcf\x80\0\0\0\0\0\0\0\xc3"), 2, "an integer beyond int64"},
    };
    assert_frames_refused(decode, type, refusals, COUNT_OF(refusals));
}

static void test_no_part_of_a_publish_is_a_publish(void **state)
{
    (void)state;
    assert_truncations_refused(decode, type, golden_publish_3_numbers, sizeof golden_publish_3_numbers, 0);
    assert_truncations_refused(decode, type, golden_publish_2_numbers, sizeof golden_publish_2_numbers, 0);
    assert_truncations_refused(decode, type, golden_publish_no_counts, sizeof golden_publish_no_counts, 0);
}

static void test_damage_does_no_harm(void **state)
{
    (void)state;
    assert_survives_damage(decode, golden_publish_3_numbers, sizeof golden_publish_3_numbers);
    assert_survives_damage(decode, golden_publish_2_numbers, sizeof golden_publish_2_numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_are_encoded_with_three_numbers),
        cmocka_unit_test(test_without_counts_nil_is_encoded),
        cmocka_unit_test(test_counts_are_read),
        cmocka_unit_test(test_an_older_coordinator_sends_two_numbers),
        cmocka_unit_test(test_a_change_of_the_wave_has_no_counts),
        cmocka_unit_test(test_a_later_coordinator_may_send_more),
        cmocka_unit_test(test_what_is_encoded_is_read_back),
        cmocka_unit_test(test_malformed_publishes_are_refused),
        cmocka_unit_test(test_no_part_of_a_publish_is_a_publish),
        cmocka_unit_test(test_damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
