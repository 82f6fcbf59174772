/* ADD, ABORT and the others, byte for byte as msgspec would encode them. */
#include "tests/unit/golden/client_vectors.h"
#include "tests/unit/request_frame.h"

static void test_the_smallest_add(void **state)
{
    (void)state;
    static const uint32_t prompt[] = {1, 2, 3};
    wire_add_t add = add_of(prompt, COUNT_OF(prompt));
    assert_add(&add, golden_add_minimal, sizeof golden_add_minimal);
}

static void test_an_add_with_every_field(void **state)
{
    (void)state;
    static const uint32_t prompt[] = {0, 127, 128, 255, 256, 31999};
    static const int64_t stops[] = {5, 31999, 2};
    wire_add_t add = add_of(prompt, COUNT_OF(prompt));
    add.request_id = TEXT("ünïcode-00c0ffee");
    add.external_req_id = TEXT("ünïcode");
    add.cache_salt = TEXT("tenant-7");
    add.data_parallel_rank = 3;
    add.client_index = 2;
    add.priority = -1;
    add.sampling = (wire_sampling_t){
        .presence_penalty = -1.5,
        .frequency_penalty = 2.0,
        .repetition_penalty = 1.25,
        .temperature = 0.5,
        .top_p = 0.875,
        .min_p = 0.0625,
        .top_k = 40,
        .has_seed = true,
        .seed = 1234,
        .max_tokens = 300,
        .min_tokens = 3,
        .ignore_eos = true,
        .all_stop_token_ids = stops,
        .all_stop_count = 3,
        .stop_count = 2,
        .eos_token_id = 2,
        NOTHING_ELSE,
    };
    assert_add(&add, golden_add_all_fields, sizeof golden_add_all_fields);
}

/* A map that is packed already, as the checks of the body make it. */
static wire_bytes_t packed_json(frame_t *owner, const char *json)
{
    *owner = frame_of_json(json);
    return (wire_bytes_t){owner->data, owner->size};
}

static void test_an_add_with_the_later_fields(void **state)
{
    (void)state;
    static const uint32_t prompt[] = {9};
    static const int64_t logprob_ids[] = {7, 65536};
    static const int64_t allowed_ids[] = {0, 1, 128};
    static const wire_logit_bias_t biases[] = {{5, -100.0}, {31999, 0.5}};
    static const wire_lora_t lora = {{"sql", 3}, 3, {"/loras/sql", 10}};
    frame_t owners[3];
    wire_add_t add = add_of(prompt, COUNT_OF(prompt));
    add.request_id = TEXT("g-00c0ffee");
    add.external_req_id = TEXT("g");
    add.lora = &lora;
    add.trace = (wire_trace_t){TEXT("00-ab-cd-01"), TEXT("vendor=1")};
    add.sampling.max_tokens = 300;
    add.sampling.logprobs = 5;
    add.sampling.prompt_logprobs = -1;
    add.sampling.logprob_token_ids = (wire_ids_t){logprob_ids, COUNT_OF(logprob_ids)};
    add.sampling.allowed_token_ids = (wire_ids_t){allowed_ids, COUNT_OF(allowed_ids)};
    add.sampling.logit_bias = biases;
    add.sampling.logit_bias_count = COUNT_OF(biases);
    add.sampling.thinking_token_budget = -1;
    add.sampling.skip_reading_prefix_cache = 0;
    add.sampling.structured_outputs =
        packed_json(&owners[0], "{'choice':['yes','n\u00f6'],'_backend':'guidance'}");
    add.sampling.repetition_detection =
        packed_json(&owners[1], "{'max_pattern_size':20,'min_pattern_size':3,'min_count':2}");
    add.sampling.extra_args =
        packed_json(&owners[2], "{'kv_transfer_params':{'do_remote_decode':true,'blocks':[1,2.5,null]}}");
    assert_add(&add, golden_add_later_fields, sizeof golden_add_later_fields);
    for (size_t i = 0; i < COUNT_OF(owners); i++)
        frame_free(&owners[i]);
}

static void test_a_trace_may_have_no_state(void **state)
{
    (void)state;
    wire_add_t add = add_of((const uint32_t[]){7}, 1);
    add.trace.traceparent = TEXT("00-ab-cd-01");
    frame_t expected =
        frame_of_json("['req-1-0000abcd',[7],null,{'max_tokens':16},null,1750000000.25,null,null,null,"
                      "null,null,1,0,0,{'traceparent':'00-ab-cd-01'},false,'req-1']");
    assert_add(&add, expected.data, expected.size);
    frame_free(&expected);
}

static void test_a_state_without_a_trace_is_not_sent(void **state)
{
    (void)state;
    wire_add_t add = add_of((const uint32_t[]){7}, 1);
    add.trace.tracestate = TEXT("vendor=1");
    frame_t expected = frame_of_json("['req-1-0000abcd',[7],null,{'max_tokens':16},null,1750000000.25,null,"
                                     "null,null,null,null,1,0,0,null,false,'req-1']");
    assert_add(&add, expected.data, expected.size);
    frame_free(&expected);
}

static void test_large_numbers_take_the_width_that_they_need(void **state)
{
    (void)state;
    static const uint32_t prompt[] = {0xffff, 0x10000, 0x7fffffff};
    wire_add_t add = add_of(prompt, COUNT_OF(prompt));
    add.request_id = TEXT("b-ffffffff");
    add.external_req_id = TEXT("b");
    add.client_index = 65535;
    add.current_wave = (int64_t)1 << 40;
    add.priority = INT64_MIN;
    add.data_parallel_rank = 65535;
    add.sampling.has_seed = true;
    add.sampling.seed = INT64_MIN;
    add.sampling.max_tokens = (int64_t)1 << 31;
    add.sampling.min_tokens = 1 << 16;
    assert_add(&add, golden_add_big_ints, sizeof golden_add_big_ints);

    static const uint32_t one[] = {1};
    add = add_of(one, 1);
    add.request_id = TEXT("b-ffffffff");
    add.external_req_id = TEXT("b");
    add.priority = INT64_MAX;
    add.sampling.has_seed = true;
    add.sampling.seed = INT64_MAX;
    add.sampling.max_tokens = 1;
    assert_add(&add, golden_add_big_ints_positive, sizeof golden_add_big_ints_positive);
}

static const uint32_t seven[] = {7};

static void test_a_text_that_is_not_given_is_nil_and_an_empty_one_is_empty(void **state)
{
    (void)state;
    wire_add_t add = add_of(seven, 1);
    add.external_req_id = (wire_text_t){NULL, 0};
    add.cache_salt = (wire_text_t){"", 0};
    add.data_parallel_rank = 0;
    frame_t expected =
        frame_of_json("['req-1-0000abcd',[7],null,{'max_tokens':16},null,1750000000.25,null,'',"
                      "0,null,null,1,0,0,null,false,null]");
    assert_add(&add, expected.data, expected.size);
    frame_free(&expected);
}

static void test_a_prompt_may_be_empty_or_long(void **state)
{
    (void)state;
    enum { LONG = 100000 };
    uint32_t *prompt = calloc(LONG, sizeof *prompt);
    assert_non_null(prompt);
    for (uint32_t i = 0; i < LONG; i++)
        prompt[i] = i;
    for (size_t count = 0; count <= LONG; count += LONG) {
        msgpack_sbuffer buffer;
        wire_reader_t reader;
        uint32_t fields = 0;
        uint32_t tokens = 0;
        int64_t token = -1;
        wire_add_t add = add_of(prompt, count);
        msgpack_sbuffer_init(&buffer);
        assert_int_equal(wire_add_encode(&buffer, &add, NULL), WG_OK);
        wire_reader_init(&reader, buffer.data, buffer.size);
        assert_true(wire_reader_array(&reader, &fields) && wire_reader_skip(&reader));
        assert_true(wire_reader_array(&reader, &tokens));
        assert_int_equal(tokens, count);
        for (uint32_t i = 0; i < tokens; i++)
            assert_true(wire_reader_int(&reader, &token) && token == i);
        for (uint32_t i = 2; i < fields; i++)
            assert_true(wire_reader_skip(&reader));
        assert_int_equal(fields, 17);
        assert_int_equal(wire_reader_finish(&reader, "ADD", NULL), WG_OK);
        msgpack_sbuffer_destroy(&buffer);
    }
    free(prompt);
}

/* --- ABORT --- */

static void test_an_abort_names_its_requests(void **state)
{
    (void)state;
    static const wire_text_t ids[] = {{"req-1-0000abcd", 14}, {"ünïcode-00c0ffee", 18}};
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_abort_encode(&buffer, ids, COUNT_OF(ids), NULL), WG_OK);
    assert_frame(&buffer, golden_abort, sizeof golden_abort);
}

/* Never nil, which would abort everything. */
static void test_an_abort_of_nothing_is_an_empty_array(void **state)
{
    (void)state;
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_abort_encode(&buffer, NULL, 0, NULL), WG_OK);
    assert_frame(&buffer, golden_abort_empty, sizeof golden_abort_empty);
}

/* --- START_DP_WAVE and UTILITY --- */

static void test_a_wake_excludes_nobody(void **state)
{
    (void)state;
    static const struct {
        int64_t wave;
        const char *json;
    } rows[] = {{0, "[0,null]"}, {4, "[4,null]"}, {INT64_MAX, "[9223372036854775807,null]"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        msgpack_sbuffer buffer;
        frame_t expected = frame_of_json(rows[i].json);
        msgpack_sbuffer_init(&buffer);
        assert_int_equal(wire_start_encode(&buffer, rows[i].wave, NULL), WG_OK);
        assert_frame(&buffer, expected.data, expected.size);
        frame_free(&expected);
    }
}

static void test_a_utility_call_has_no_arguments(void **state)
{
    (void)state;
    msgpack_sbuffer buffer;
    frame_t expected = frame_of_json("[65535,9223372036854775807,'is_scheduler_paused',[]]");
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_utility_encode(&buffer, 65535, INT64_MAX, "is_scheduler_paused", NULL), WG_OK);
    assert_frame(&buffer, expected.data, expected.size);
    frame_free(&expected);
}

static void test_encoding_appends(void **state)
{
    (void)state;
    static const wire_text_t ids[] = {{"a", 1}};
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_abort_encode(&buffer, ids, 1, NULL), WG_OK);
    assert_int_equal(wire_abort_encode(&buffer, ids, 1, NULL), WG_OK);
    assert_frame(&buffer,
                 "\x91\xa1"
                 "a\x91\xa1"
                 "a",
                 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_smallest_add),
        cmocka_unit_test(test_an_add_with_every_field),
        cmocka_unit_test(test_an_add_with_the_later_fields),
        cmocka_unit_test(test_a_trace_may_have_no_state),
        cmocka_unit_test(test_a_state_without_a_trace_is_not_sent),
        cmocka_unit_test(test_large_numbers_take_the_width_that_they_need),
        cmocka_unit_test(test_a_text_that_is_not_given_is_nil_and_an_empty_one_is_empty),
        cmocka_unit_test(test_a_prompt_may_be_empty_or_long),
        cmocka_unit_test(test_an_abort_names_its_requests),
        cmocka_unit_test(test_an_abort_of_nothing_is_an_empty_array),
        cmocka_unit_test(test_a_wake_excludes_nobody),
        cmocka_unit_test(test_a_utility_call_has_no_arguments),
        cmocka_unit_test(test_encoding_appends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
