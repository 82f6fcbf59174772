/* The body of a generate request, but for its sampling parameters (generate_body_sampling_test.c and its
 * neighbours) and what was made to hurt (generate_body_hostile_test.c). */
#include "tests/unit/generate_body_fixture.h"

static void test_token_ids_are_enough(void **state)
{
    (void)state;
    request_body_t body = taken("{'token_ids':[0,31999,5]}");
    static const uint32_t prompt[] = {0, 31999, 5};
    assert_prompt(&body, 0, prompt, COUNT_OF(prompt));
    assert_null(body.request_id.data);
    assert_null(body.cache_salt.data);
    assert_int_equal(body.priority, 0);
    assert_false(body.stream || body.include_usage || body.has_rank);
    assert_int_equal(body.sampling.max_tokens, 0);
    request_body_free(&body);
    assert_null(body.root);
    request_body_free(&body); /* twice does no harm */
}

static void test_every_field_is_taken(void **state)
{
    (void)state;
    request_body_t body = taken("{'request_id':'r-1','model':'demo','token_ids':[7],'stream':true,"
                                "'stream_options':{'include_usage':true},'priority':-3,"
                                "'cache_salt':'ten\\u00e4nt','data_parallel_rank':2,'deadline_ms':1500,"
                                "'features':null,'sampling_params':{}}");
    assert_true(wire_text_is(body.request_id, "r-1"));
    assert_true(wire_text_is(body.cache_salt, "ten\xc3\xa4nt"));
    assert_prompt(&body, 0, (const uint32_t[]){7}, 1);
    assert_true(body.stream && body.include_usage && body.has_rank);
    assert_false(body.continuous_usage);
    assert_null(body.adapter);
    assert_int_equal(body.priority, -3);
    assert_int_equal(body.deadline_ms, 1500);
    assert_string_equal(body.rank, "2");
    request_body_free(&body);
}

static void test_null_is_like_absent(void **state)
{
    (void)state;
    request_body_t body = taken(BODY("'request_id':null,'model':null,'stream':null,'stream_options':null,"
                                     "'priority':null,'cache_salt':null,'data_parallel_rank':null,"
                                     "'deadline_ms':null,'kv_transfer_params':null,'ec_transfer_params':null,"
                                     "'sampling_params':null"));
    assert_null(body.request_id.data);
    assert_null(body.cache_salt.data);
    assert_false(body.stream || body.include_usage || body.has_rank);
    request_body_free(&body);
    body = taken("{'stream':true,'token_ids':[1],'stream_options':{'include_usage':null}}");
    assert_false(body.include_usage);
    request_body_free(&body);
    ASSERT_REFUSED(INVALID("{'token_ids':null}", "token_ids", "at least one token id"));
}

/* --- token ids: cases B072 and B076 --- */

static void test_a_body_without_a_prompt_is_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED(INVALID("{}", "token_ids", "token_ids: must be an array of at least one token id"),
                   INVALID("{'token_ids':[]}", "token_ids", "at least one token id"),
                   INVALID("{'token_ids':{}}", "token_ids", "at least one token id"),
                   INVALID("{'token_ids':'1'}", "token_ids", "at least one token id"),
                   INVALID("{'token_ids':1}", "token_ids", "at least one token id"),
                   INVALID("{'token_ids':true}", "token_ids", "at least one token id"),
                   INVALID("{'stream':true}", "token_ids", "at least one token id"));
}

static void test_ids_outside_the_vocabulary_are_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        INVALID("{'token_ids':[-1]}", "token_ids", "token_ids: element 0 is -1, but must be from 0 to 31999"),
        INVALID("{'token_ids':[1,2,32000]}", "token_ids", "element 2 is 32000, but must be from 0 to 31999"),
        INVALID("{'token_ids':[2147483648]}", "token_ids", "element 0 is 2147483648"),
        INVALID("{'token_ids':[4294967296]}", "token_ids", "element 0 is 4294967296"),
        INVALID("{'token_ids':[4294967297]}", "token_ids", "element 0 is 4294967297"), /* 1 in 32 bits */
        INVALID("{'token_ids':[9223372036854775807]}", "token_ids", "element 0 is 9223372036854775807"),
        INVALID("{'token_ids':[-9223372036854775808]}", "token_ids", "element 0 is -9223372036854775808"),
        INVALID("{'token_ids':[9223372036854775808]}", "token_ids", "integers have 64 bits"),
        INVALID("{'token_ids':[1,-9223372036854775809]}", "token_ids", "integers have 64 bits"),
        INVALID("{'token_ids':[99999999999999999999999999]}", "token_ids", "integers have 64 bits"));
}

static void test_ids_of_another_type_are_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED(INVALID("{'token_ids':[1.5]}", "token_ids", "token_ids: element 0 must be an integer"),
                   INVALID("{'token_ids':[1,2.0]}", "token_ids", "element 1 must be an integer"),
                   INVALID("{'token_ids':[1e3]}", "token_ids", "element 0 must be an integer"),
                   INVALID("{'token_ids':['5']}", "token_ids", "element 0 must be an integer"),
                   INVALID("{'token_ids':[true]}", "token_ids", "element 0 must be an integer"),
                   INVALID("{'token_ids':[null]}", "token_ids", "element 0 must be an integer"),
                   INVALID("{'token_ids':[[1,2]]}", "token_ids", "element 0 must be an integer"),
                   INVALID("{'token_ids':[{}]}", "token_ids", "element 0 must be an integer"),
                   INVALID("{'token_ids':[-0.0]}", "token_ids", "element 0 must be an integer"));
}

static void test_without_a_vocabulary_ids_are_within_int32(void **state)
{
    (void)state;
    request_body_t body = taken_by(unknown_model(), "{'token_ids':[0,2147483647]}");
    assert_prompt(&body, 0, (const uint32_t[]){0, INT32_MAX}, 2);
    request_body_free(&body);
    static const bad_body_t rows[] = {
        INVALID("{'token_ids':[2147483648]}", "token_ids", "must be from 0 to 2147483647"),
        INVALID("{'token_ids':[-1]}", "token_ids", "must be from 0 to 2147483647"),
        INVALID("{'token_ids':[4294967296]}", "token_ids", "must be from 0 to 2147483647"),
    };
    assert_refused_by(unknown_model(), rows, COUNT_OF(rows));
}

static void test_a_long_prompt_is_taken_whole(void **state)
{
    (void)state;
    enum { LONG = 200000 };
    char *text = malloc(LONG * 6 + 32);
    uint32_t *ids = calloc(LONG, sizeof *ids);
    assert_true(text && ids);
    size_t size = (size_t)sprintf(text, "{\"token_ids\":[");
    for (unsigned i = 0; i < LONG; i++) {
        ids[i] = i % 32000;
        size += (size_t)sprintf(text + size, "%s%u", i > 0 ? "," : "", ids[i]);
    }
    size += (size_t)sprintf(text + size, "]}");
    request_body_t body;
    assert_int_equal(generate_body_parse(&body, model(), text, size, NULL), WG_OK);
    assert_prompt(&body, 0, ids, LONG);
    request_body_free(&body);
    free(ids);
    free(text);
}

/* --- the other fields --- */

static void test_another_model_does_not_exist(void **state)
{
    (void)state;
    ASSERT_REFUSED({BODY("'model':'Demo'"), WG_E_MODEL_NOT_FOUND, "model", "the model `Demo` does not exist"},
                   {BODY("'model':'demo '"), WG_E_MODEL_NOT_FOUND, "model", "the model `demo `"},
                   {BODY("'model':'d\\u00e9mo\\n'"), WG_E_MODEL_NOT_FOUND, "model", "the model `d??mo?`"},
                   INVALID(BODY("'model':''"), "model", "must be a string that is not empty"),
                   INVALID(BODY("'model':1"), "model", "must be a string that is not empty"),
                   INVALID(BODY("'model':['demo']"), "model", "must be a string that is not empty"));
}

static void test_a_model_may_be_an_adapter(void **state)
{
    (void)state;
    request_body_t body = taken(BODY("'model':'sql'"));
    assert_non_null(body.adapter);
    assert_int_equal(body.adapter->id, 3);
    request_body_free(&body);
    ASSERT_REFUSED({BODY("'model':'sq'"), WG_E_MODEL_NOT_FOUND, "model", "the model `sq` does not exist"},
                   {BODY("'model':'sqlx'"), WG_E_MODEL_NOT_FOUND, "model", "the model `sqlx` does not"});
}

static void test_an_id_is_visible_ascii(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "!", "~", "chatcmpl-123_4.5:6/7", "{}"};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        char json[128];
        snprintf(json, sizeof json, BODY("'request_id':'%s'"), good[i]);
        request_body_t body = taken(json);
        assert_true(wire_text_is(body.request_id, good[i]));
        request_body_free(&body);
    }
    ASSERT_REFUSED(INVALID(BODY("'request_id':''"), "request_id", "must be a string that is not empty"),
                   INVALID(BODY("'request_id':5"), "request_id", "must be a string that is not empty"),
                   INVALID(BODY("'request_id':['a']"), "request_id", "must be a string that is not empty"),
                   INVALID(BODY("'request_id':'a b'"), "request_id",
                           "request_id: must be 1 to 256 visible ASCII characters without spaces"),
                   INVALID(BODY("'request_id':' '"), "request_id", "visible ASCII"),
                   INVALID(BODY("'request_id':'a\\n'"), "request_id", "visible ASCII"),
                   INVALID(BODY("'request_id':'a\\u007f'"), "request_id", "visible ASCII"),
                   INVALID(BODY("'request_id':'\\u00e9'"), "request_id", "visible ASCII"));
}

static void test_an_id_has_at_most_256_characters(void **state)
{
    (void)state;
    wg_error_t error;
    char id[REQUEST_ID_MAX + 2];
    memset(id, 'a', sizeof id);
    assert_int_equal(request_check_id("X-Request-Id", id, 1, &error), WG_OK);
    assert_int_equal(request_check_id("X-Request-Id", id, REQUEST_ID_MAX, &error), WG_OK);
    assert_int_equal(request_check_id("X-Request-Id", id, REQUEST_ID_MAX + 1, &error), WG_E_INVALID_REQUEST);
    assert_string_equal(error.param, "X-Request-Id");
    assert_string_equal(error.message,
                        "X-Request-Id: must be 1 to 256 visible ASCII characters without spaces");
    assert_int_equal(request_check_id("X-Request-Id", id, 0, NULL), WG_E_INVALID_REQUEST);
    assert_int_equal(request_check_id("X-Request-Id", "a\0b", 3, NULL), WG_E_INVALID_REQUEST);
    assert_int_equal(request_check_id("X-Request-Id", "a\xff", 2, NULL), WG_E_INVALID_REQUEST);
}

static void test_stream_is_a_boolean(void **state)
{
    (void)state;
    request_body_t body = taken(BODY("'stream':false"));
    assert_false(body.stream);
    request_body_free(&body);
    ASSERT_REFUSED(INVALID(BODY("'stream':'true'"), "stream", "stream: must be true or false"),
                   INVALID(BODY("'stream':1"), "stream", "must be true or false"),
                   INVALID(BODY("'stream':{}"), "stream", "must be true or false"));
}

static void test_stream_options_need_a_stream(void **state)
{
    (void)state;
    request_body_t body = taken(BODY("'stream_options':{},'stream':true")); /* in any order */
    assert_false(body.include_usage);
    request_body_free(&body);
    ASSERT_REFUSED(
        INVALID(BODY("'stream_options':{}"), "stream_options", "stream_options: needs \"stream\": true"),
        INVALID(BODY("'stream':false,'stream_options':{'include_usage':true}"), "stream_options", "needs"),
        INVALID(BODY("'stream':true,'stream_options':[]"), "stream_options", "must be an object"),
        INVALID(BODY("'stream':true,'stream_options':true"), "stream_options", "must be an object"),
        INVALID(BODY("'stream':true,'stream_options':{'include_usage':'yes'}"),
                "stream_options.include_usage", "stream_options.include_usage: must be true or false"));
}

static void test_usage_on_every_event_is_usage_too(void **state)
{
    (void)state;
    request_body_t body = taken(BODY("'stream':true,'stream_options':{'continuous_usage_stats':true}"));
    assert_true(body.continuous_usage && body.include_usage);
    request_body_free(&body);
    body = taken(BODY("'stream':true,'stream_options':{'continuous_usage_stats':false}"));
    assert_false(body.continuous_usage || body.include_usage);
    request_body_free(&body);
    ASSERT_REFUSED(INVALID(BODY("'stream':true,'stream_options':{'continuous_usage_stats':1}"),
                           "stream_options.continuous_usage_stats", "must be true or false"));
}

static void test_a_deadline_is_at_most_a_day(void **state)
{
    (void)state;
    wg_config_t config = *model();
    config.timeouts.request_deadline_ms = 30000;
    request_body_t body = taken(BODY("'deadline_ms':1"));
    assert_int_equal(body.deadline_ms, 1);
    request_body_free(&body);
    body = taken_by(&config, BODY("'deadline_ms':86400000"));
    assert_int_equal(body.deadline_ms, 86400000);
    request_body_free(&body);
    body = taken_by(&config, "{'token_ids':[1]}");
    assert_int_equal(body.deadline_ms, 30000);
    request_body_free(&body);
    ASSERT_REFUSED(INVALID(BODY("'deadline_ms':0"), "deadline_ms", "must be an integer from 1 to 86400000"),
                   INVALID(BODY("'deadline_ms':86400001"), "deadline_ms", "from 1 to 86400000"),
                   INVALID(BODY("'deadline_ms':-1"), "deadline_ms", "from 1 to 86400000"),
                   INVALID(BODY("'deadline_ms':1.5"), "deadline_ms", "from 1 to 86400000"),
                   INVALID(BODY("'deadline_ms':'1'"), "deadline_ms", "from 1 to 86400000"));
}

static void test_priority_is_an_integer_of_64_bits(void **state)
{
    (void)state;
    request_body_t body = taken(BODY("'priority':-9223372036854775808"));
    assert_true(body.priority == INT64_MIN);
    request_body_free(&body);
    body = taken(BODY("'priority':9223372036854775807"));
    assert_true(body.priority == INT64_MAX);
    request_body_free(&body);
    ASSERT_REFUSED(INVALID(BODY("'priority':1.0"), "priority", "priority: must be an integer of 64 bits"),
                   INVALID(BODY("'priority':'1'"), "priority", "must be an integer of 64 bits"),
                   INVALID(BODY("'priority':true"), "priority", "must be an integer of 64 bits"),
                   INVALID(BODY("'priority':9223372036854775808"), "priority",
                           "priority: a number is out of range; integers have 64 bits"));
}

static void test_a_cache_salt_is_any_text_but_the_empty_one(void **state)
{
    (void)state;
    ASSERT_REFUSED(INVALID(BODY("'cache_salt':''"), "cache_salt", "must be a string that is not empty"),
                   INVALID(BODY("'cache_salt':7"), "cache_salt", "must be a string that is not empty"),
                   INVALID(BODY("'cache_salt':{}"), "cache_salt", "must be a string that is not empty"));
}

/* Whether it is a rank is for the client to say: it lists the connected ones. */
static void test_a_rank_is_passed_on_as_it_was_written(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"0", "0"},
        {"65536", "65536"},
        {"-1", "-1"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"1.5", "(not an integer)"},
        {"1.0", "(not an integer)"},
        {"'1'", "(not an integer)"},
        {"true", "(not an integer)"},
        {"[1]", "(not an integer)"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char json[128];
        snprintf(json, sizeof json, BODY("'data_parallel_rank':%s"), rows[i][0]);
        request_body_t body = taken(json);
        assert_true(body.has_rank);
        assert_string_equal(body.rank, rows[i][1]);
        request_body_free(&body);
    }
}

static void test_unknown_fields_are_refused_at_each_level(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        UNSUPPORTED(BODY("'prompt':'hello'"), "prompt", "unsupported field `prompt` in the request body"),
        UNSUPPORTED(BODY("'Stream':true"), "Stream", "unsupported field `Stream` in the request body"),
        UNSUPPORTED(BODY("'features':{}"), "features", "unsupported field `features`"),
        UNSUPPORTED(BODY("'features':[]"), "features", "unsupported field `features`"),
        UNSUPPORTED(BODY("'temperature':1"), "temperature", "unsupported field `temperature` in the request"),
        UNSUPPORTED(BODY("'':1"), "", "unsupported field `` in the request body"),
        UNSUPPORTED(SAMPLING("'best_of':1"), "best_of", "unsupported field `best_of` in sampling_params"),
        UNSUPPORTED(SAMPLING("'stop':['a']"), "stop", "unsupported field `stop` in a request of token ids"),
        UNSUPPORTED(BODY("'stream':true,'stream_options':{'usage':true}"), "usage",
                    "unsupported field `usage` in stream_options"));
}

static void test_a_key_that_is_there_twice_is_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED(INVALID("{'token_ids':[1],'token_ids':[2]}", "body", "a key is there twice"),
                   INVALID(SAMPLING("'top_p':0.5,'top_p':0.5"), "body", "a key is there twice"),
                   INVALID("{'stream':true,'token_ids':[1],'stream_options':{'include_usage':true,"
                           "'include_usage':true}}",
                           "body", "a key is there twice"),
                   INVALID(BODY("'later':{'a':1,'a':1}"), "body", "a key is there twice"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_ids_are_enough),
        cmocka_unit_test(test_every_field_is_taken),
        cmocka_unit_test(test_null_is_like_absent),
        cmocka_unit_test(test_a_body_without_a_prompt_is_refused),
        cmocka_unit_test(test_ids_outside_the_vocabulary_are_refused),
        cmocka_unit_test(test_ids_of_another_type_are_refused),
        cmocka_unit_test(test_without_a_vocabulary_ids_are_within_int32),
        cmocka_unit_test(test_a_long_prompt_is_taken_whole),
        cmocka_unit_test(test_another_model_does_not_exist),
        cmocka_unit_test(test_a_model_may_be_an_adapter),
        cmocka_unit_test(test_an_id_is_visible_ascii),
        cmocka_unit_test(test_an_id_has_at_most_256_characters),
        cmocka_unit_test(test_stream_is_a_boolean),
        cmocka_unit_test(test_stream_options_need_a_stream),
        cmocka_unit_test(test_usage_on_every_event_is_usage_too),
        cmocka_unit_test(test_a_deadline_is_at_most_a_day),
        cmocka_unit_test(test_priority_is_an_integer_of_64_bits),
        cmocka_unit_test(test_a_cache_salt_is_any_text_but_the_empty_one),
        cmocka_unit_test(test_a_rank_is_passed_on_as_it_was_written),
        cmocka_unit_test(test_unknown_fields_are_refused_at_each_level),
        cmocka_unit_test(test_a_key_that_is_there_twice_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
