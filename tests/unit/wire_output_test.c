/* The single outputs of an envelope: every field, every layout, and one that is malformed among sound ones. */
#include "tests/unit/outputs_frame.h"

static const char type[] = "EngineCoreOutput";

typedef struct {
    const char *id;
    size_t token_count;
    int64_t tokens[2];
    wire_finish_t finish;
    bool has_tensors;
    int64_t stop_token;
    const char *stop_text;
    int64_t cached_tokens;
} expected_t;

#define SOUND .finish = WIRE_FINISH_NONE, .stop_token = WIRE_NO_STOP_TOKEN, .cached_tokens = -1

static void assert_output(const wire_output_t *output, const expected_t *expected)
{
    wire_reader_t tokens = output->tokens;
    assert_true(wire_text_is(output->request_id, expected->id));
    assert_int_equal(output->token_count, expected->token_count);
    for (size_t i = 0; i < expected->token_count; i++) {
        int64_t token = -1;
        assert_true(wire_reader_int(&tokens, &token));
        assert_int_equal(token, expected->tokens[i]);
    }
    assert_int_equal(output->finish, expected->finish);
    assert_true(output->stop_token == expected->stop_token);
    if (expected->stop_text)
        assert_true(wire_text_is(output->stop_text, expected->stop_text));
    else
        assert_null(output->stop_text.data);
    assert_int_equal(output->cached_tokens, expected->cached_tokens);
    assert_int_equal(output->logprobs.size + output->prompt_logprobs.size > 0, expected->has_tensors);
}

static void assert_outputs(const frame_t *frame, const expected_t *expected, size_t count)
{
    wire_outputs_cursor_t cursor;
    wire_output_t output;
    wg_status_t status;
    wg_error_t error;
    wire_outputs_t outputs = outputs_of(frame);
    assert_int_equal(outputs.output_count, count);
    wire_outputs_begin(&cursor, &outputs);
    for (size_t i = 0; i < count; i++) {
        assert_true(wire_outputs_next(&cursor, &output, &status, &error));
        if (status != WG_OK)
            fail_msg("output %zu: %s", i, error.message);
        assert_output(&output, &expected[i]);
    }
    assert_false(wire_outputs_next(&cursor, &output, &status, &error));
}

static void assert_both_forms(const vector_t forms[2], const expected_t *expected, size_t count)
{
    for (size_t i = 0; i < 2; i++) {
        frame_t frame = frame_of_bytes(forms[i].data, forms[i].size);
        assert_outputs(&frame, expected, count);
        frame_free(&frame);
    }
}

static void assert_json(const char *json, const expected_t *expected)
{
    frame_t frame = frame_of_json(json);
    assert_outputs(&frame, expected, 1);
    frame_free(&frame);
}

static void test_tokens_are_read(void **state)
{
    (void)state;
    static const vector_t forms[] = BOTH_FORMS(plain);
    static const expected_t expected[] = {
        {.id = "a-00000001", .token_count = 2, .tokens = {17, 31999}, SOUND},
        {.id = "b-00000002", .token_count = 1, .tokens = {70000}, SOUND},
    };
    assert_both_forms(forms, expected, COUNT_OF(expected));
}

static void test_every_finish_and_stop_reason_is_read(void **state)
{
    (void)state;
#define ENDED(number, reason, token, text)                                                                   \
    {                                                                                                        \
        .id = "f-0000000" #number, .token_count = 1, .tokens = {number}, .finish = (reason),                 \
        .stop_token = (token), .stop_text = (text), .cached_tokens = -1                                      \
    }
    static const vector_t forms[] = BOTH_FORMS(finish_reasons);
    static const expected_t expected[] = {
        ENDED(0, WIRE_FINISH_STOP, WIRE_NO_STOP_TOKEN, NULL),
        ENDED(1, WIRE_FINISH_STOP, 5, NULL),
        ENDED(2, WIRE_FINISH_STOP, WIRE_NO_STOP_TOKEN, "stop text"),
        ENDED(3, WIRE_FINISH_LENGTH, WIRE_NO_STOP_TOKEN, NULL),
        ENDED(4, WIRE_FINISH_ABORT, WIRE_NO_STOP_TOKEN, NULL),
        ENDED(5, WIRE_FINISH_ERROR, WIRE_NO_STOP_TOKEN, NULL),
        ENDED(6, WIRE_FINISH_REPETITION, WIRE_NO_STOP_TOKEN, NULL),
    };
    assert_both_forms(forms, expected, COUNT_OF(expected));
}

static void test_prefill_stats_are_found_in_either_layout(void **state)
{
    (void)state;
    static const vector_t today[] = BOTH_FORMS(prefill_stats);
    static const vector_t older[] = BOTH_FORMS(prefill_stats_older); /* one place lower */
    static const expected_t expected = {.id = "p-00000001",
                                        .token_count = 1,
                                        .tokens = {9},
                                        .finish = WIRE_FINISH_NONE,
                                        .stop_token = WIRE_NO_STOP_TOKEN,
                                        .cached_tokens = 16};
    assert_both_forms(today, &expected, 1);
    assert_both_forms(older, &expected, 1);
}

/* kv_transfer_params may have any keys, and stands before index 9. */
static void test_transfer_parameters_are_not_taken_for_prefill_stats(void **state)
{
    (void)state;
    static const vector_t forms[] = BOTH_FORMS(transfer_params);
    static const expected_t expected = {.id = "k-00000001",
                                        .token_count = 1,
                                        .tokens = {9},
                                        .finish = WIRE_FINISH_LENGTH,
                                        .stop_token = WIRE_NO_STOP_TOKEN,
                                        .cached_tokens = 16};
    assert_both_forms(forms, &expected, 1);
}

static void test_logprobs_are_noticed_inline_or_in_frames(void **state)
{
    (void)state;
    static const vector_t vectors[] = {
        {golden_outputs_logprobs_inline, sizeof golden_outputs_logprobs_inline},
        {golden_outputs_logprobs_aux, sizeof golden_outputs_logprobs_aux},
    };
    static const expected_t expected = {
        .id = "t-00000001", .token_count = 2, .tokens = {11, 12}, SOUND, .has_tensors = true};
    assert_both_forms(vectors, &expected, 1);
    assert_json("[0,[['t-00000001',[11,12],null,[1]]]]", &expected);
    assert_json("[0,[['t-00000001',[11,12],[1],null]]]", &expected);
}

#define P "['p',[],null,null,null,null,null,null,null,"

static void test_prefill_stats_are_the_first_map_with_prompt_tokens_behind_index_8(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int64_t cached_tokens;
    } rows[] = {
        {"[0,[" P "{'num_prompt_tokens':4,'num_cached_tokens':3}]]]", 3},
        {"[0,[" P "{'num_cached_tokens':3,'num_prompt_tokens':4}]]]", 3},
        {"[0,[" P "{'num_prompt_tokens':4}]]]", 0},
        {"[0,[" P "{'num_cached_tokens':3}]]]", -1},
        {"[0,[" P "{},{'a':1},null,7,{'num_prompt_tokens':4,'num_cached_tokens':2}]]]", 2},
        {"[0,[" P "{'num_prompt_tokens':4,'num_cached_tokens':1},"
         "{'num_prompt_tokens':4,'num_cached_tokens':2}]]]",
         1},
        {"[0,[" P "null,null,null,null,null,null,null,null,"
         "{'num_prompt_tokens':4,'num_cached_tokens':5}]]]",
         5},
        /* numbers that mean nothing are as good as none, and no reason to lose the request's tokens */
        {"[0,[" P "{'num_prompt_tokens':4,'num_cached_tokens':-1}]]]", -1},
        {"[0,[" P "{'num_prompt_tokens':4,'num_cached_tokens':'3'}]]]", 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const expected_t expected = {.id = "p",
                                     .finish = WIRE_FINISH_NONE,
                                     .stop_token = WIRE_NO_STOP_TOKEN,
                                     .cached_tokens = rows[i].cached_tokens};
        assert_json(rows[i].json, &expected);
    }
}

static void test_each_length_of_an_output_is_valid(void **state)
{
    (void)state;
    static const expected_t expected = {.id = "a", SOUND};
    static const char *const fields[] = {"'a'",  "[]",   "null", "null", "null", "null", "null",    "null",
                                         "null", "null", "null", "null", "null", "0",    "'later'", "[1,{}]"};
    char json[256] = "[0,[[";
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        char whole[264];
        snprintf(json + strlen(json), sizeof json - strlen(json), "%s%s", i > 0 ? "," : "", fields[i]);
        snprintf(whole, sizeof whole, "%s]]]", json);
        if (i >= 1)
            assert_json(whole, &expected);
    }
}

static void test_unread_fields_may_have_any_shape(void **state)
{
    (void)state;
    static const expected_t expected = {.id = "a", SOUND};
    assert_json("[0,[['a',[],null,null,{'pooled':[1]},null,null,'events',null,5,'x',[],{'a':{}},null]]]",
                &expected);
}

/* --- what is refused, alone --- */

typedef struct {
    const char *json; /* of the output */
    bool has_id;
    size_t at;
    const char *why;
} bad_output_t;

static const bad_output_t bad_outputs[] = {
    {"null", false, 0, "not an array"},
    {"7", false, 0, "not an array"},
    {"'a'", false, 0, "not an array"},
    {"{'bad':[1]}", false, 0, "not an array"},
    {"[]", false, 1, "an output without request id and tokens"},
    {"['bad']", false, 1, "an output without request id and tokens"},
    {"[1,[1]]", false, 1, "not a string"},
    {"[null,[1]]", false, 1, "not a string"},
    {"['bad',null]", true, 5, "not an array"},
    {"['bad',5]", true, 5, "not an array"},
    {"['bad',[1,'2']]", true, 7, "not an integer"},
    {"['bad',[1.0]]", true, 6, "not an integer"},
    {"['bad',[null]]", true, 6, "not an integer"},
    {"['bad',[[1]]]", true, 6, "not an integer"},
    {"['bad',[],null,null,null,5]", true, 10, "an unknown finish reason"},
    {"['bad',[],null,null,null,-1]", true, 10, "an unknown finish reason"},
    {"['bad',[],null,null,null,'stop']", true, 9, "not an integer"},
    {"['bad',[],null,null,null,true]", true, 9, "not an integer"},
    {"['bad',[],null,null,null,0,1.5]", true, 10, "not an integer"},
    {"['bad',[],null,null,null,0,[5]]", true, 10, "not an integer"},
};

static void test_a_malformed_output_fails_alone(void **state)
{
    (void)state;
    static const expected_t before = {.id = "a", .token_count = 1, .tokens = {1}, SOUND};
    static const expected_t after = {.id = "z", .token_count = 1, .tokens = {2}, SOUND};
    for (size_t i = 0; i < COUNT_OF(bad_outputs); i++) {
        const bad_output_t *bad = &bad_outputs[i];
        char json[256];
        wire_outputs_cursor_t cursor;
        wire_output_t output;
        wg_status_t status;
        wg_error_t error = {0};
        snprintf(json, sizeof json, "[0,[['a',[1]],%s,['z',[2]]]]", bad->json);
        frame_t frame = frame_of_json(json);
        wire_outputs_t outputs = outputs_of(&frame);
        assert_int_equal(outputs.output_count, 3);
        wire_outputs_begin(&cursor, &outputs);
        assert_true(wire_outputs_next(&cursor, &output, &status, &error));
        assert_int_equal(status, WG_OK);
        assert_output(&output, &before);
        assert_true(wire_outputs_next(&cursor, &output, &status, &error));
        assert_decode_error(status, &error, type, bad->at, bad->why);
        if (bad->has_id)
            assert_true(wire_text_is(output.request_id, "bad"));
        else
            assert_null(output.request_id.data);
        assert_true(wire_outputs_next(&cursor, &output, &status, &error));
        assert_int_equal(status, WG_OK);
        assert_output(&output, &after);
        assert_false(wire_outputs_next(&cursor, &output, &status, &error));
        frame_free(&frame);
    }
}

/* Only the whole frame can be judged here: behind bytes that are no MessagePack nothing can be found. */
static void test_an_output_that_is_not_messagepack_fails_the_frame(void **state)
{
    (void)state;
    static const frame_refusal_t refusals[] = {
        {RAW("\x92\x00\x92\x92\xa1"
             "a\xc1\x92\xa1z\x90"),
         6, "not MessagePack (byte c1)"},
        {RAW("\x92\x00\x92\x92\xa1\xff\x90\x92\xa1z\x90"), 6, "a string that is not UTF-8"},
        {RAW("\x92\x00\x92\x92\xa1"
             "a\x9f"),
         7, "a count is larger than the frame"},
    };
    assert_frames_refused(decode_outputs, "EngineCoreOutputs", refusals, COUNT_OF(refusals));
}

static void test_a_token_beyond_int64_fails_its_output_alone(void **state)
{
    (void)state;
    wire_outputs_cursor_t cursor;
    wire_output_t output;
    wg_status_t status;
    wg_error_t error;
    static const char bytes[] = "\x92\x00\x92\x92\xa1"
                                "a\x91\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x92\xa1z\x90";
    frame_t frame = frame_of_bytes(bytes, sizeof bytes - 1);
    wire_outputs_t outputs = outputs_of(&frame);
    wire_outputs_begin(&cursor, &outputs);
    assert_true(wire_outputs_next(&cursor, &output, &status, &error));
    assert_decode_error(status, &error, type, 4, "an integer beyond int64");
    assert_true(wire_text_is(output.request_id, "a"));
    assert_true(wire_outputs_next(&cursor, &output, &status, NULL));
    assert_int_equal(status, WG_OK);
    assert_true(wire_text_is(output.request_id, "z"));
    frame_free(&frame);
}

static void test_ten_thousand_outputs_of_one_step_are_read(void **state)
{
    (void)state;
    enum { OUTPUTS = 10000 };
    msgpack_sbuffer buffer;
    msgpack_packer packer;
    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    msgpack_pack_array(&packer, 2);
    msgpack_pack_int(&packer, 3);
    msgpack_pack_array(&packer, OUTPUTS);
    for (int i = 0; i < OUTPUTS; i++) {
        char id[32];
        snprintf(id, sizeof id, "r-%08x", (unsigned)i);
        msgpack_pack_array(&packer, 2);
        msgpack_pack_str_with_body(&packer, id, strlen(id));
        msgpack_pack_array(&packer, 1);
        msgpack_pack_int(&packer, i);
    }
    wire_outputs_cursor_t cursor;
    wire_output_t output;
    wg_status_t status;
    int64_t count = 0;
    frame_t frame = frame_of_buffer(&buffer);
    wire_outputs_t outputs = outputs_of(&frame);
    wire_outputs_begin(&cursor, &outputs);
    while (wire_outputs_next(&cursor, &output, &status, NULL)) {
        int64_t token = -1;
        assert_int_equal(status, WG_OK);
        assert_true(wire_reader_int(&output.tokens, &token));
        assert_int_equal(token, count++);
    }
    assert_int_equal(count, OUTPUTS);
    frame_free(&frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_are_read),
        cmocka_unit_test(test_every_finish_and_stop_reason_is_read),
        cmocka_unit_test(test_prefill_stats_are_found_in_either_layout),
        cmocka_unit_test(test_transfer_parameters_are_not_taken_for_prefill_stats),
        cmocka_unit_test(test_logprobs_are_noticed_inline_or_in_frames),
        cmocka_unit_test(test_prefill_stats_are_the_first_map_with_prompt_tokens_behind_index_8),
        cmocka_unit_test(test_each_length_of_an_output_is_valid),
        cmocka_unit_test(test_unread_fields_may_have_any_shape),
        cmocka_unit_test(test_a_malformed_output_fails_alone),
        cmocka_unit_test(test_an_output_that_is_not_messagepack_fails_the_frame),
        cmocka_unit_test(test_a_token_beyond_int64_fails_its_output_alone),
        cmocka_unit_test(test_ten_thousand_outputs_of_one_step_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
