/* What an output has besides tokens: logprobs and transfer parameters, as raw values, in either layout. */
#include "tests/unit/outputs_frame.h"

static wire_output_t only_output(const frame_t *frame)
{
    wire_outputs_cursor_t cursor;
    wire_output_t output;
    wg_status_t status;
    wg_error_t error;
    wire_outputs_t outputs = outputs_of(frame);
    assert_int_equal(outputs.output_count, 1);
    wire_outputs_begin(&cursor, &outputs);
    assert_true(wire_outputs_next(&cursor, &output, &status, &error));
    if (status != WG_OK)
        fail_msg("refused: %s", error.message);
    return output;
}

/* json NULL: not there. */
static void assert_raw(wire_bytes_t raw, const char *json)
{
    if (!json) {
        assert_int_equal(raw.size, 0);
        return;
    }
    frame_t expected = frame_of_json(json);
    assert_int_equal(raw.size, expected.size);
    assert_memory_equal(raw.data, expected.data, raw.size);
    frame_free(&expected);
}

static void assert_params(const frame_t *frame, const char *kv, const char *ec, int64_t cached_tokens)
{
    wire_output_t output = only_output(frame);
    assert_raw(output.kv_transfer_params, kv);
    assert_raw(output.ec_transfer_params, ec);
    assert_int_equal(output.cached_tokens, cached_tokens);
}

static void test_transfer_parameters_of_today_are_read(void **state)
{
    (void)state;
    static const vector_t forms[] = BOTH_FORMS(transfer_params);
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        frame_t frame = frame_of_bytes(forms[i].data, forms[i].size);
        assert_params(&frame, "{'remote_block_ids':[1,2],'num_prompt_tokens':'not the stats'}",
                      "{'peer':{'host':'h'}}", 16);
        frame_free(&frame);
    }
}

static void test_an_older_engine_has_none_for_encoders(void **state)
{
    (void)state;
    static const vector_t forms[] = BOTH_FORMS(transfer_params_older);
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        frame_t frame = frame_of_bytes(forms[i].data, forms[i].size);
        assert_params(&frame, "{'remote_block_ids':[1,2]}", NULL, 16);
        frame_free(&frame);
    }
}

static void test_a_map_at_index_9_is_what_its_keys_say(void **state)
{
    (void)state;
    static const struct {
        const char *late; /* from index 8 on */
        const char *kv;
        const char *ec;
        int64_t cached_tokens;
    } rows[] = {
        {"null", NULL, NULL, -1},
        {"{}", "{}", NULL, -1},
        {"null,{}", NULL, "{}", -1},
        {"{'a':1},{'b':[{}]}", "{'a':1}", "{'b':[{}]}", -1},
        {"null,{'num_prompt_tokens':4,'num_cached_tokens':3}", NULL, NULL, 3},
        {"null,{'b':1,'num_prompt_tokens':4}", NULL, NULL, 0},
        {"null,{'traceparent':'00-1-1-00'}", NULL, NULL, -1},
        {"null,{'tracestate':'v=1'}", NULL, NULL, -1},
        {"null,{'a':'b','traceparent':'00-1-1-00'}", NULL, NULL, -1},
        {"null,{'peer':{'traceparent':1,'num_prompt_tokens':2}}", NULL,
         "{'peer':{'traceparent':1,'num_prompt_tokens':2}}", -1}, /* only its own keys count */
        {"null,{'num_cached_tokens':3}", NULL, "{'num_cached_tokens':3}", -1},
        {"{'num_prompt_tokens':4,'num_cached_tokens':3}", "{'num_prompt_tokens':4,'num_cached_tokens':3}",
         NULL, -1},
        {"{'traceparent':'x'}", "{'traceparent':'x'}", NULL, -1},
        {"null,null,{'c':1}", NULL, NULL, -1}, /* index 10 */
        {"null,[1]", NULL, NULL, -1},          /* no map: as of an engine that is newer still */
        {"null,'text'", NULL, NULL, -1},
        {"null,7,{'num_prompt_tokens':4,'num_cached_tokens':2}", NULL, NULL, 2},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char json[256];
        snprintf(json, sizeof json, "[0,[['p',[],null,null,null,null,null,null,%s]]]", rows[i].late);
        frame_t frame = frame_of_json(json);
        assert_params(&frame, rows[i].kv, rows[i].ec, rows[i].cached_tokens);
        frame_free(&frame);
    }
}

static void test_a_map_may_have_keys_that_are_no_texts(void **state)
{
    (void)state;
    static const char bytes[] =
        "\x92\x00\x91\x9a\xa1p\x90\xc0\xc0\xc0\xc0\xc0\xc0\x81\x01\x02\x82\x07\x08\xc0\x90";
    frame_t frame = frame_of_bytes(bytes, sizeof bytes - 1);
    wire_output_t output = only_output(&frame);
    assert_int_equal(output.kv_transfer_params.size, 3);
    assert_memory_equal(output.kv_transfer_params.data, "\x81\x01\x02", 3);
    assert_int_equal(output.ec_transfer_params.size, 5);
    assert_memory_equal(output.ec_transfer_params.data, "\x82\x07\x08\xc0\x90", 5);
    frame_free(&frame);
}

static void test_kv_transfer_parameters_that_are_no_map_fail_their_output_alone(void **state)
{
    (void)state;
    static const char *const values[] = {"7", "'text'", "[1]", "true", "1.5", "[]"};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        char json[256];
        wire_outputs_cursor_t cursor;
        wire_output_t output;
        wg_status_t status;
        wg_error_t error = {0};
        snprintf(json, sizeof json,
                 "[0,[['bad',[],null,null,null,null,null,null,%s],"
                 "['z',[],null,null,null,null,null,null,{'a':1}]]]",
                 values[i]);
        frame_t frame = frame_of_json(json);
        wire_outputs_t outputs = outputs_of(&frame);
        wire_outputs_begin(&cursor, &outputs);
        assert_true(wire_outputs_next(&cursor, &output, &status, &error));
        assert_decode_error(status, &error, "EngineCoreOutput", 12, "not a map");
        assert_true(wire_text_is(output.request_id, "bad"));
        assert_true(wire_outputs_next(&cursor, &output, &status, &error));
        assert_int_equal(status, WG_OK);
        assert_raw(output.kv_transfer_params, "{'a':1}");
        frame_free(&frame);
    }
}

static void test_logprobs_are_kept_as_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *logprobs;
        const char *prompt_logprobs;
    } rows[] = {
        {"[0,[['a',[]]]]", NULL, NULL},
        {"[0,[['a',[],null,null]]]", NULL, NULL},
        {"[0,[['a',[],[1,[2]]]]]", "[1,[2]]", NULL},
        {"[0,[['a',[],null,['x',{}]]]]", NULL, "['x',{}]"},
        {"[0,[['a',[],[],7]]]", "[]", "7"}, /* what they are is asked later, and of them alone */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        frame_t frame = frame_of_json(rows[i].json);
        wire_output_t output = only_output(&frame);
        assert_raw(output.logprobs, rows[i].logprobs);
        assert_raw(output.prompt_logprobs, rows[i].prompt_logprobs);
        frame_free(&frame);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfer_parameters_of_today_are_read),
        cmocka_unit_test(test_an_older_engine_has_none_for_encoders),
        cmocka_unit_test(test_a_map_at_index_9_is_what_its_keys_say),
        cmocka_unit_test(test_a_map_may_have_keys_that_are_no_texts),
        cmocka_unit_test(test_kv_transfer_parameters_that_are_no_map_fail_their_output_alone),
        cmocka_unit_test(test_logprobs_are_kept_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
