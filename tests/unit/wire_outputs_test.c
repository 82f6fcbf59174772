/* The envelope that engines send: stats, utility outputs, waves, finished requests. Its single outputs are
 * wire_output_test.c's. */
#include "tests/unit/outputs_frame.h"

static const char type[] = "EngineCoreOutputs";

static frame_t frame_of(const vector_t *vector)
{
    return frame_of_bytes(vector->data, vector->size);
}

static void assert_empty_but(const wire_outputs_t *out, bool stats, bool utility, bool finished)
{
    assert_int_equal(out->output_count, 0);
    assert_int_equal(out->has_stats, stats);
    assert_int_equal(out->has_utility, utility);
    assert_int_equal(out->finished_count > 0, finished);
    assert_float_equal(out->timestamp, 1234.5, 0.0);
    assert_int_equal(out->engine_index, 1);
}

static void test_an_envelope_with_nothing_is_all_defaults(void **state)
{
    (void)state;
    static const vector_t forms[] = BOTH_FORMS(nothing);
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        wire_outputs_cursor_t cursor;
        wire_output_t output;
        wire_text_t id;
        wg_status_t status;
        frame_t frame = frame_of(&forms[i]);
        wire_outputs_t out = outputs_of(&frame);
        assert_int_equal(out.engine_index, 0);
        assert_int_equal(out.output_count, 0);
        assert_int_equal(out.finished_count, 0);
        assert_false(out.has_stats || out.has_utility || out.has_wave_complete || out.has_start_wave);
        assert_float_equal(out.timestamp, 0.0, 0.0);
        wire_outputs_begin(&cursor, &out);
        assert_false(wire_outputs_next(&cursor, &output, &status, NULL));
        wire_finished_begin(&cursor, &out);
        assert_false(wire_finished_next(&cursor, &id));
        frame_free(&frame);
    }
}

static void test_scheduler_stats_are_read(void **state)
{
    (void)state;
    static const vector_t forms[] = BOTH_FORMS(scheduler_stats);
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        frame_t frame = frame_of(&forms[i]);
        wire_outputs_t out = outputs_of(&frame);
        assert_empty_but(&out, true, false, false);
        assert_int_equal(out.stats.running, 7);
        assert_int_equal(out.stats.waiting, 3 + 2); /* the skipped ones wait, too */
        assert_int_equal(out.stats.step_counter, 4096);
        assert_int_equal(out.stats.current_wave, 12);
        assert_float_equal(out.stats.kv_cache_usage, 0.375, 0.0);
        frame_free(&frame);
    }
}

static void assert_stats(const char *json, int64_t running, int64_t waiting, double usage)
{
    char text[256];
    snprintf(text, sizeof text, "[3,[],%s]", json);
    frame_t frame = frame_of_json(text);
    wire_outputs_t out = outputs_of(&frame);
    assert_true(out.has_stats);
    assert_int_equal(out.stats.running, running);
    assert_int_equal(out.stats.waiting, waiting);
    assert_float_equal(out.stats.kv_cache_usage, usage, 0.0);
    frame_free(&frame);
}

static void test_absent_stats_are_zero_and_unknown_ones_passed_over(void **state)
{
    (void)state;
    assert_stats("{}", 0, 0, 0.0);
    assert_stats("{'num_running_reqs':2}", 2, 0, 0.0);
    assert_stats("{'num_skipped_waiting_reqs':4}", 0, 4, 0.0);
    assert_stats("{'later':[{'a':1}],'kv_cache_usage':1,'num_waiting_reqs':1,'':null}", 0, 1, 1.0);
    assert_stats("{'kv_cache_usage':0.0,'num_waiting_reqs':9223372036854775807}", 0, INT64_MAX, 0.0);
}

static void test_a_utility_output_is_read(void **state)
{
    (void)state;
    static const struct {
        vector_t forms[2];
        int64_t call_id;
        const char *failure;
        const char *result; /* as JSON */
    } rows[] = {
        {BOTH_FORMS(utility_result), 7, NULL, "[null,true]"},
        {BOTH_FORMS(utility_failure), 8, "no such method", NULL},
        {BOTH_FORMS(utility_notice), -1, NULL, "['str','reconfigured']"},
    };
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        frame_t frame = frame_of(&rows[i / 2].forms[i % 2]);
        wire_outputs_t out = outputs_of(&frame);
        assert_empty_but(&out, false, true, false);
        assert_int_equal(out.utility.call_id, rows[i / 2].call_id);
        if (rows[i / 2].failure)
            assert_true(wire_text_is(out.utility.failure, rows[i / 2].failure));
        else
            assert_null(out.utility.failure.data);
        if (rows[i / 2].result) {
            frame_t result = frame_of_json(rows[i / 2].result);
            assert_int_equal(out.utility.result.size, result.size);
            assert_memory_equal(out.utility.result.data, result.data, result.size);
            frame_free(&result);
        } else {
            assert_int_equal(out.utility.result.size, 0);
        }
        frame_free(&frame);
    }
}

static void test_a_utility_output_may_be_short_or_long(void **state)
{
    (void)state;
    static const char *const texts[] = {"[1,[],null,1234.5,[9]]", "[1,[],null,1234.5,[9,null]]",
                                        "[1,[],null,1234.5,[9,null,null]]",
                                        "[1,[],null,1234.5,[9,null,null,{'later':1},5]]"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        frame_t frame = frame_of_json(texts[i]);
        wire_outputs_t out = outputs_of(&frame);
        assert_empty_but(&out, false, true, false);
        assert_int_equal(out.utility.call_id, 9);
        assert_null(out.utility.failure.data);
        assert_int_equal(out.utility.result.size, 0);
        frame_free(&frame);
    }
    frame_t frame = frame_of_json("[1,[],null,1234.5,[9,'']]");
    wire_outputs_t out = outputs_of(&frame);
    assert_non_null(out.utility.failure.data); /* a failure without words is a failure */
    assert_int_equal(out.utility.failure.size, 0);
    frame_free(&frame);
}

static void test_waves_are_read(void **state)
{
    (void)state;
    static const vector_t complete[] = BOTH_FORMS(wave_complete);
    static const vector_t start[] = BOTH_FORMS(start_wave);
    for (size_t i = 0; i < 2; i++) {
        frame_t frame = frame_of(&complete[i]);
        wire_outputs_t out = outputs_of(&frame);
        assert_empty_but(&out, false, false, false);
        assert_true(out.has_wave_complete && !out.has_start_wave);
        assert_int_equal(out.wave_complete, 5);
        frame_free(&frame);
        frame = frame_of(&start[i]);
        out = outputs_of(&frame);
        assert_empty_but(&out, false, false, false);
        assert_true(out.has_start_wave && !out.has_wave_complete);
        assert_int_equal(out.start_wave, 6);
        frame_free(&frame);
    }
    frame_t frame = frame_of_json("[1,[],null,1234.5,null,null,0,9223372036854775807]");
    wire_outputs_t out = outputs_of(&frame);
    assert_true(out.has_wave_complete && out.has_start_wave);
    assert_int_equal(out.wave_complete, 0);
    assert_true(out.start_wave == INT64_MAX);
    frame_free(&frame);
}

static void test_finished_requests_are_listed(void **state)
{
    (void)state;
    static const vector_t forms[] = BOTH_FORMS(finished_requests);
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        wire_outputs_cursor_t cursor;
        wire_text_t id;
        frame_t frame = frame_of(&forms[i]);
        wire_outputs_t out = outputs_of(&frame);
        assert_empty_but(&out, false, false, true);
        wire_finished_begin(&cursor, &out);
        assert_true(wire_finished_next(&cursor, &id));
        assert_true(wire_text_is(id, "a-00000001"));
        assert_true(wire_finished_next(&cursor, &id));
        assert_true(wire_text_is(id, "never-seen"));
        assert_false(wire_finished_next(&cursor, &id));
        assert_false(wire_finished_next(&cursor, &id));
        frame_free(&frame);
    }
}

static void test_each_length_of_the_envelope_is_valid(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[]",
        "[65535]",
        "[65535,[]]",
        "[65535,[],{}]",
        "[65535,[],{},3]", /* an int may stand for a float */
        "[65535,[],{},3,null]",
        "[65535,[],{},3,null,['x']]",
        "[65535,[],{},3,null,['x'],null]",
        "[65535,[],{},3,null,['x'],null,null]",
        "[65535,[],{},3,null,['x'],null,null,{'later':[1,2]}]",
        "[65535,[],{},3,null,['x'],null,null,null,'x',[[[]]],1.5]",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        frame_t frame = frame_of_json(texts[i]);
        wire_outputs_t out = outputs_of(&frame);
        assert_int_equal(out.engine_index, i > 0 ? 65535 : 0);
        assert_int_equal(out.has_stats, i > 2);
        assert_float_equal(out.timestamp, i > 3 ? 3.0 : 0.0, 0.0);
        assert_int_equal(out.finished_count, i > 5);
        frame_free(&frame);
    }
}

/* --- what is refused --- */

static void test_malformed_envelopes_are_refused(void **state)
{
    (void)state;
    static const frame_refusal_t refusals[] = {
        {RAW(""), 0, "the frame ends too early"},
        {RAW("ENGINE_CORE_DEAD"), 0, "not an array"},
        {JSON("null"), 0, "not an array"},
        {JSON("{'engine_index':1}"), 0, "not an array"},
        {JSON("[-1]"), 2, "an engine index out of range"},
        {JSON("[65536]"), 6, "an engine index out of range"},
        {JSON("['0']"), 1, "not an integer"},
        {JSON("[0.0]"), 1, "not an integer"},
        {JSON("[null]"), 1, "not an integer"},
        {JSON("[0,null]"), 2, "not an array"},
        {JSON("[0,{}]"), 2, "not an array"},
        {JSON("[0,[],[]]"), 3, "not a map"},
        {JSON("[0,[],{'num_running_reqs':-1}]"), 22, "a queue count out of range"},
        {JSON("[0,[],{'num_waiting_reqs':-1}]"), 22, "a queue count out of range"},
        {JSON("[0,[],{'num_skipped_waiting_reqs':-1}]"), 30, "a queue count out of range"},
        {JSON("[0,[],{'num_waiting_reqs':9223372036854775807,'num_skipped_waiting_reqs':1}]"), 56,
         "a queue count out of range"},
        {JSON("[0,[],{'num_running_reqs':1.0}]"), 21, "not an integer"},
        {JSON("[0,[],{'step_counter':null}]"), 17, "not an integer"},
        {JSON("[0,[],{'current_wave':'1'}]"), 17, "not an integer"},
        {JSON("[0,[],{'kv_cache_usage':-0.1}]"), 28, "kv_cache_usage is not within 0 and 1"},
        {JSON("[0,[],{'kv_cache_usage':1.1}]"), 28, "kv_cache_usage is not within 0 and 1"},
        {JSON("[0,[],{'kv_cache_usage':null}]"), 19, "not a number"},
        {RAW("\x93\x00\x90\x81\xaekv_cache_usage\xca\x7f\xc0\x00\x00"), 24,
         "kv_cache_usage is not within 0 and 1"}, /* NaN */
        {RAW("\x93\x00\x90\x81\x01\x02"), 4, "not a string"},
        {JSON("[0,[],null,'0']"), 4, "not a number"},
        {JSON("[0,[],null,null]"), 4, "not a number"},
        {JSON("[0,[],null,0,7]"), 5, "not an array"},
        {JSON("[0,[],null,0,[]]"), 6, "a utility output without call id"},
        {JSON("[0,[],null,0,['7']]"), 6, "not an integer"},
        {JSON("[0,[],null,0,[null]]"), 6, "not an integer"},
        {JSON("[0,[],null,0,[7,false]]"), 7, "not a string"},
        {JSON("[0,[],null,0,null,'x']"), 6, "not an array"},
        {JSON("[0,[],null,0,null,null,-1]"), 8, "a negative wave"},
        {JSON("[0,[],null,0,null,null,1.0]"), 7, "not an integer"},
        {JSON("[0,[],null,0,null,null,null,-1]"), 9, "a negative wave"},
        {JSON("[0,[],null,0,null,null,null,'1']"), 8, "not an integer"},
        {RAW("\x90\xc0"), 1, "bytes are left over"},
        {RAW("\x92\x00"), 1, "a count is larger than the frame"},
        {RAW("\x92\x00\x92\xc0\xc1"), 4, "not MessagePack (byte c1)"},
        {RAW("\x99\x00\x90\xc0\x00\xc0\xc0\xc0\xc0\xc1"), 9, "not MessagePack (byte c1)"},
        {RAW("\x91\xcf\x80\0\0\0\0\0\0\0"), 1, "an integer beyond int64"},
    };
    assert_frames_refused(decode_outputs, type, refusals, COUNT_OF(refusals));
}

static void test_finished_requests_that_are_not_texts_are_refused(void **state)
{
    (void)state;
    static const frame_refusal_t refusals[] = {
        {JSON("[0,[],null,0,null,[5,'a-00000001']]"), 7, "not a string"},
        {JSON("[0,[],null,0,null,['a-00000001',null]]"), 18, "not a string"},
    };
    assert_frames_refused(decode_outputs, type, refusals, COUNT_OF(refusals));
}

#define ONE "['a',[1]]"

static void test_request_outputs_may_not_be_mixed_with_utilities_or_waves(void **state)
{
    (void)state;
    static const frame_refusal_t refusals[] = {
        {JSON("[0,[" ONE "],null,0,[7]]"), 12, "request outputs mixed with a utility output or a wave"},
        {JSON("[0,[" ONE "],null,0,null,null,5]"), 13,
         "request outputs mixed with a utility output or a wave"},
        {JSON("[0,[" ONE "],null,0,null,null,null,5]"), 14,
         "request outputs mixed with a utility output or a wave"},
    };
    assert_frames_refused(decode_outputs, type, refusals, COUNT_OF(refusals));
    /* stats and finished requests come along with outputs */
    frame_t frame = frame_of_json("[0,[" ONE "],{'num_running_reqs':1},0,null,['a']]");
    wire_outputs_t out = outputs_of(&frame);
    assert_int_equal(out.output_count, 1);
    assert_int_equal(out.finished_count, 1);
    assert_true(out.has_stats);
    frame_free(&frame);
}

static const vector_t every_form[][2] = {
    BOTH_FORMS(plain),
    BOTH_FORMS(finish_reasons),
    BOTH_FORMS(prefill_stats),
    BOTH_FORMS(transfer_params),
    BOTH_FORMS(utility_result),
    BOTH_FORMS(utility_failure),
    BOTH_FORMS(wave_complete),
    BOTH_FORMS(scheduler_stats),
    BOTH_FORMS(finished_requests),
    BOTH_FORMS(logprobs_inline),
    BOTH_FORMS(logprobs_aux),
    BOTH_FORMS(logprobs_inline_torch),
    BOTH_FORMS(transfer_params_older),
};

static void test_no_part_of_an_envelope_is_an_envelope(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(every_form); i++) {
        const vector_t *vector = &every_form[i / 2][i % 2];
        assert_truncations_refused(decode_outputs, type, vector->data, vector->size, 0);
    }
}

/* As a whole or one output alone: what was damaged is refused, or says something else that is sound. */
static void test_damage_does_no_harm(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(every_form); i++)
        assert_survives_damage(decode_outputs, every_form[i / 2][i % 2].data, every_form[i / 2][i % 2].size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_envelope_with_nothing_is_all_defaults),
        cmocka_unit_test(test_scheduler_stats_are_read),
        cmocka_unit_test(test_absent_stats_are_zero_and_unknown_ones_passed_over),
        cmocka_unit_test(test_a_utility_output_is_read),
        cmocka_unit_test(test_a_utility_output_may_be_short_or_long),
        cmocka_unit_test(test_waves_are_read),
        cmocka_unit_test(test_finished_requests_are_listed),
        cmocka_unit_test(test_each_length_of_the_envelope_is_valid),
        cmocka_unit_test(test_malformed_envelopes_are_refused),
        cmocka_unit_test(test_finished_requests_that_are_not_texts_are_refused),
        cmocka_unit_test(test_request_outputs_may_not_be_mixed_with_utilities_or_waves),
        cmocka_unit_test(test_no_part_of_an_envelope_is_an_envelope),
        cmocka_unit_test(test_damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
