/* sampling_params: what says how many, and what may be chosen: n, logprobs, lists of token ids, biases,
 * repetition detection; and what is accepted or refused because it is about text. */
#include "tests/unit/generate_body_fixture.h"

static const char *many_ids(size_t count)
{
    static char text[4096];
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%zu", i > 0 ? "," : "", i);
    return text;
}

static request_body_t taken_list(const char *name, const char *list)
{
    char json[8192];
    snprintf(json, sizeof json, SAMPLING("'%s':[%s]"), name, list);
    return taken(json);
}

static void assert_list_refused(const char *name, const char *list, const char *message)
{
    char json[8192];
    char param[64];
    snprintf(json, sizeof json, SAMPLING("'%s':%s"), name, list);
    snprintf(param, sizeof param, "sampling_params.%s", name);
    const bad_body_t bad = INVALID(json, param, message);
    assert_refused_by(model(), &bad, 1);
}

/* --- n and seeds --- */

static void test_n_is_within_the_limit(void **state)
{
    (void)state;
    request_body_t body = taken(SAMPLING("'n':8"));
    assert_int_equal(body.n, 8);
    request_body_free(&body);
    body = taken(SAMPLING("'n':null"));
    assert_int_equal(body.n, 1);
    request_body_free(&body);
    static const char *const values[] = {"0", "9", "-1", "9223372036854775807", "1.0", "'1'", "true", "[1]"};
    for (size_t i = 0; i < COUNT_OF(values); i++)
        assert_list_refused("n", values[i], "sampling_params.n: must be an integer from 1 to 8");
}

static void test_greedy_choices_would_all_be_the_same(void **state)
{
    (void)state;
    request_body_t body = taken(SAMPLING("'n':1,'temperature':0"));
    request_body_free(&body);
    body = taken(SAMPLING("'n':2,'temperature':1e-5"));
    assert_int_equal(body.n, 2);
    request_body_free(&body);
    ASSERT_REFUSED(INVALID(SAMPLING("'n':2,'temperature':0"), "sampling_params.n",
                           "must be 1 where the temperature is 0"),
                   INVALID(SAMPLING("'temperature':9e-6,'n':8"), "sampling_params.n", "must be 1 where"));
}

/* The choices' seeds are seed, seed + 1, ... */
static void test_the_last_choice_has_a_seed_of_64_bits_too(void **state)
{
    (void)state;
    request_body_t body = taken(SAMPLING("'n':3,'seed':9223372036854775805"));
    assert_true(body.sampling.has_seed && body.sampling.seed == INT64_MAX - 2);
    request_body_free(&body);
    body = taken(SAMPLING("'n':8,'seed':-9223372036854775808"));
    assert_true(body.sampling.seed == INT64_MIN);
    request_body_free(&body);
    ASSERT_REFUSED(
        INVALID(SAMPLING("'n':3,'seed':9223372036854775806"), "sampling_params.seed", "is too large"),
        INVALID(SAMPLING("'seed':9223372036854775807,'n':2"), "sampling_params.seed", "is too large"));
}

/* --- logprobs: case B080 --- */

static void test_logprobs_are_within_the_limit(void **state)
{
    (void)state;
    request_body_t body = taken("{'token_ids':[1]}");
    assert_true(body.sampling.logprobs == WIRE_UNSET && body.sampling.prompt_logprobs == WIRE_UNSET);
    request_body_free(&body);
    body = taken(SAMPLING("'logprobs':0,'prompt_logprobs':20"));
    assert_int_equal(body.sampling.logprobs, 0);
    assert_int_equal(body.sampling.prompt_logprobs, 20);
    request_body_free(&body);
    static const char *const values[] = {"21",         "-1",          "-2",  "1000000000", "2147483648",
                                         "4294967297", "-4294967295", "1.0", "'5'",        "true"};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        assert_list_refused("logprobs", values[i],
                            "sampling_params.logprobs: must be an integer from 0 to 20");
        assert_list_refused("prompt_logprobs", values[i], "must be an integer from 0 to 20");
    }
}

static void test_without_a_limit_logprobs_are_at_most_the_vocabulary(void **state)
{
    (void)state;
    wg_config_t config = *model();
    config.limits.max_logprobs = -1;
    request_body_t body = taken_by(&config, SAMPLING("'logprobs':-1,'prompt_logprobs':32000"));
    assert_int_equal(body.sampling.logprobs, -1);
    assert_int_equal(body.sampling.prompt_logprobs, 32000);
    request_body_free(&body);
    static const bad_body_t rows[] = {
        INVALID(SAMPLING("'logprobs':32001"), "sampling_params.logprobs",
                "must be an integer from -1 to 32000"),
        INVALID(SAMPLING("'prompt_logprobs':-2"), "sampling_params.prompt_logprobs", "from -1 to 32000"),
        INVALID(SAMPLING("'logprobs':9223372036854775807"), "sampling_params.logprobs", "from -1 to 32000"),
    };
    assert_refused_by(&config, rows, COUNT_OF(rows));
    config.limits.max_logprobs = 20;
    config.model.vocab_size = 10; /* below the limit */
    config.model.eos_count = 0;
    static const bad_body_t small =
        INVALID(SAMPLING("'logprobs':11"), "sampling_params.logprobs", "must be an integer from 0 to 10");
    assert_refused_by(&config, &small, 1);
}

static void test_a_stream_has_no_prompt_logprobs(void **state)
{
    (void)state;
    request_body_t body =
        taken(BODY("'stream':true,'sampling_params':{'logprobs':1,'prompt_logprobs':null}"));
    assert_int_equal(body.sampling.logprobs, 1);
    request_body_free(&body);
    ASSERT_REFUSED(INVALID(BODY("'sampling_params':{'prompt_logprobs':0},'stream':true"),
                           "sampling_params.prompt_logprobs", "cannot go with \"stream\": true"));
}

static void test_ids_with_logprobs_are_few(void **state)
{
    (void)state;
    wg_config_t config = *model();
    config.limits.max_ids_per_list = 1000;
    char json[4200];
    snprintf(json, sizeof json, SAMPLING("'logprob_token_ids':[%s]"), many_ids(128));
    request_body_t body = taken_by(&config, json);
    assert_int_equal(body.sampling.logprob_token_ids.count, 128);
    assert_int_equal(body.sampling.logprob_token_ids.ids[127], 127);
    request_body_free(&body);
    snprintf(json, sizeof json, SAMPLING("'logprob_token_ids':[%s]"), many_ids(129));
    const bad_body_t many =
        INVALID(json, "sampling_params.logprob_token_ids", "has 129 ids, engines take 128");
    assert_refused_by(&config, &many, 1);
}

/* Engines make rows of one width for both. */
static void test_logprobs_beside_ids_are_as_many(void **state)
{
    (void)state;
    request_body_t body = taken(SAMPLING("'logprobs':2,'logprob_token_ids':[7,5]"));
    assert_int_equal(body.sampling.logprobs, 2);
    assert_int_equal(body.sampling.logprob_token_ids.ids[0], 7);
    request_body_free(&body);
    ASSERT_REFUSED(INVALID(SAMPLING("'logprobs':1,'logprob_token_ids':[7,5]"), "sampling_params.logprobs",
                           "must be the number of logprob_token_ids"),
                   INVALID(SAMPLING("'logprob_token_ids':[7,5],'logprobs':0"), "sampling_params.logprobs",
                           "must be the number of logprob_token_ids"));
}

/* --- lists of ids: all go through one check --- */

static const char *const lists[] = {"allowed_token_ids", "logprob_token_ids", "stop_token_ids"};

static void test_lists_of_ids_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        request_body_t body = taken_list(lists[i], "31999,0");
        const int64_t *ids = i == 0   ? body.sampling.allowed_token_ids.ids
                             : i == 1 ? body.sampling.logprob_token_ids.ids
                                      : body.sampling.all_stop_token_ids;
        assert_int_equal(ids[0], 31999);
        assert_int_equal(ids[1], 0);
        assert_int_equal(body.sampling.allowed_token_ids.count, i == 0 ? 2 : 0);
        assert_int_equal(body.sampling.logprob_token_ids.count, i == 1 ? 2 : 0);
        request_body_free(&body);
        body = taken_list(lists[i], many_ids(100)); /* the limit */
        request_body_free(&body);
    }
}

static void test_lists_of_anything_else_are_refused(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"7", "must be an array of token ids"},
        {"'7'", "must be an array of token ids"},
        {"{}", "must be an array of token ids"},
        {"true", "must be an array of token ids"},
        {"[32000]", "element 0 is 32000, but must be from 0 to 31999"},
        {"[1,-1]", "element 1 is -1, but must be from 0 to 31999"},
        {"[1,2,4294967297]", "element 2 is 4294967297"},
        {"[1.0]", "element 0 must be an integer"},
        {"['1']", "element 0 must be an integer"},
        {"[null]", "element 0 must be an integer"},
        {"[[1]]", "element 0 must be an integer"},
    };
    for (size_t i = 0; i < COUNT_OF(lists) * COUNT_OF(rows); i++) {
        const char *const *row = rows[i % COUNT_OF(rows)];
        assert_list_refused(lists[i / COUNT_OF(rows)], row[0], row[1]);
    }
}

static void test_lists_of_ids_are_bounded_and_not_empty(void **state)
{
    (void)state;
    char list[4200];
    snprintf(list, sizeof list, "[%s]", many_ids(101));
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        assert_list_refused(lists[i], list, "has 101 ids, the limit is 100");
    assert_list_refused("allowed_token_ids", "[]", "must have at least one token id");
    assert_list_refused("logprob_token_ids", "[]", "must have at least one token id");
}

/* --- biases --- */

static void test_biases_are_taken(void **state)
{
    (void)state;
    request_body_t body = taken(SAMPLING("'logit_bias':{'0':-100,'31999':100.0,'7':0.5}"));
    double sum = 0;
    assert_int_equal(body.sampling.logit_bias_count, 3);
    for (size_t i = 0; i < 3; i++) {
        const wire_logit_bias_t *row = &body.sampling.logit_bias[i];
        assert_float_equal(row->bias, row->id == 0 ? -100.0 : row->id == 7 ? 0.5 : 100.0, 0.0);
        sum += (double)row->id;
    }
    assert_float_equal(sum, 0 + 31999 + 7, 0.0);
    request_body_free(&body);
    body = taken(SAMPLING("'logit_bias':{}"));
    assert_int_equal(body.sampling.logit_bias_count, 0);
    request_body_free(&body);
}

static void test_biases_of_anything_else_are_refused(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"[]", "must be an object of token ids and numbers"},
        {"'7'", "must be an object of token ids and numbers"},
        {"{'32000':1}", "each key must be a token id from 0 to 31999"},
        {"{'':1}", "each key must be a token id"},
        {"{'07':1}", "each key must be a token id"}, /* with "7" it would be there twice */
        {"{'00':1}", "each key must be a token id"},
        {"{'-1':1}", "each key must be a token id"},
        {"{'+1':1}", "each key must be a token id"},
        {"{' 1':1}", "each key must be a token id"},
        {"{'1 ':1}", "each key must be a token id"},
        {"{'1.0':1}", "each key must be a token id"},
        {"{'0x1':1}", "each key must be a token id"},
        {"{'4294967297':1}", "each key must be a token id"},
        {"{'99999999999999999999':1}", "each key must be a token id"},
        {"{'\\u0661':1}", "each key must be a token id"},
        {"{'1':100.0001}", "each value must be a number from -100 to 100"},
        {"{'1':-101}", "each value must be a number from -100 to 100"},
        {"{'1':9223372036854775807}", "each value must be a number"},
        {"{'1':'1'}", "each value must be a number"},
        {"{'1':null}", "each value must be a number"},
        {"{'1':true}", "each value must be a number"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_list_refused("logit_bias", rows[i][0], rows[i][1]);
    ASSERT_REFUSED(INVALID(SAMPLING("'logit_bias':{'7':1,'7':2}"), "body", "a key is there twice"));
}

static void test_biases_are_bounded(void **state)
{
    (void)state;
    char text[4096] = "{";
    size_t size = 1;
    for (unsigned i = 0; i < 101; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s'%u':1", i > 0 ? "," : "", i);
    snprintf(text + size, sizeof text - size, "}");
    assert_list_refused("logit_bias", text, "has 101 ids, the limit is 100");
}

/* --- small ones --- */

static void test_a_thinking_budget_is_a_number_or_none(void **state)
{
    (void)state;
    request_body_t body = taken("{'token_ids':[1]}");
    assert_true(body.sampling.thinking_token_budget == WIRE_UNSET);
    request_body_free(&body);
    static const char *const good[] = {"-1", "0", "1000"};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        char json[128];
        snprintf(json, sizeof json, SAMPLING("'thinking_token_budget':%s"), good[i]);
        body = taken(json);
        assert_int_equal(body.sampling.thinking_token_budget, strtoll(good[i], NULL, 10));
        request_body_free(&body);
    }
    static const char *const bad[] = {"-2", "1.0", "'1'", "true", "[]"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_list_refused("thinking_token_budget", bad[i], "must be an integer, -1 or above");
}

static void test_skipping_the_prefix_cache_has_three_states(void **state)
{
    (void)state;
    static const char *const values[] = {"null", "false", "true"};
    for (int i = 0; i < 3; i++) {
        char json[128];
        snprintf(json, sizeof json, SAMPLING("'skip_reading_prefix_cache':%s"), values[i]);
        request_body_t body = taken(json);
        assert_int_equal(body.sampling.skip_reading_prefix_cache, i - 1);
        request_body_free(&body);
    }
    assert_list_refused("skip_reading_prefix_cache", "1", "must be true or false");
}

static void test_repetition_detection_is_taken(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{}", "{'max_pattern_size'=>0, 'min_pattern_size'=>0, 'min_count'=>0}"},
        {"{'max_pattern_size':8,'min_pattern_size':8,'min_count':2}",
         "{'max_pattern_size'=>8, 'min_pattern_size'=>8, 'min_count'=>2}"},
        {"{'min_count':1,'max_pattern_size':null}",
         "{'max_pattern_size'=>0, 'min_pattern_size'=>0, 'min_count'=>1}"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char json[256];
        snprintf(json, sizeof json, SAMPLING("'repetition_detection':%s"), rows[i][0]);
        request_body_t body = taken(json);
        assert_packed(body.sampling.repetition_detection, rows[i][1]);
        request_body_free(&body);
    }
}

static void test_repetition_detection_must_make_sense(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"[]", "must be an object"},
        {"true", "must be an object"},
        {"{'max_pattern_size':-1}", "max_pattern_size must be an integer from 0 to 2147483647"},
        {"{'max_pattern_size':2147483648}", "max_pattern_size must be an integer from 0"},
        {"{'min_pattern_size':1.0}", "min_pattern_size must be an integer from 0"},
        {"{'min_count':'2'}", "min_count must be an integer from 0"},
        {"{'max_pattern_size':2,'min_pattern_size':3,'min_count':2}", "min_pattern_size must be at most"},
        {"{'min_pattern_size':1}", "min_pattern_size must be at most"},
        {"{'max_pattern_size':2,'min_count':1}", "min_count must be at least 2"},
        {"{'max_pattern_size':2}", "min_count must be at least 2"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_list_refused("repetition_detection", rows[i][0], rows[i][1]);
    ASSERT_REFUSED(UNSUPPORTED(SAMPLING("'repetition_detection':{'size':1}"), "size",
                               "unsupported field `size` in repetition_detection"));
}

/* --- about text --- */

static void test_what_asks_for_no_text_is_accepted(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "'stop':[]",
        "'stop':''",
        "'stop':null,'bad_words':null,'include_stop_str_in_output':null,'truncate_prompt_tokens':null",
        "'bad_words':[]",
        "'include_stop_str_in_output':false,'flat_logprobs':false",
        "'detokenize':true,'skip_special_tokens':false,'spaces_between_special_tokens':true",
        "'output_kind':0",
        "'output_kind':2",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        char json[256];
        snprintf(json, sizeof json, SAMPLING("%s"), texts[i]);
        request_body_t body = taken(json);
        request_body_free(&body);
    }
}

static void test_what_asks_for_text_is_unsupported(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"stop", "'a'"},
        {"stop", "['']"},
        {"stop", "false"},
        {"bad_words", "['a']"},
        {"bad_words", "{}"},
        {"include_stop_str_in_output", "true"},
        {"include_stop_str_in_output", "[]"},
        {"truncate_prompt_tokens", "5"},
        {"truncate_prompt_tokens", "false"},
        {"flat_logprobs", "true"},
        {"flat_logprobs", "''"},
        {"prompt_logprob_token_ids", "[1]"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char json[256];
        snprintf(json, sizeof json, SAMPLING("'%s':%s"), rows[i][0], rows[i][1]);
        const bad_body_t bad = UNSUPPORTED(json, rows[i][0], "unsupported field");
        assert_refused_by(model(), &bad, 1);
    }
}

static void test_what_has_no_effect_still_has_a_type(void **state)
{
    (void)state;
    static const char *const names[] = {"detokenize", "skip_special_tokens", "spaces_between_special_tokens"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_list_refused(names[i], "1", "must be true or false");
    assert_list_refused("output_kind", "3", "must be an integer from 0 to 2");
    assert_list_refused("output_kind", "-1", "must be an integer from 0 to 2");
    assert_list_refused("output_kind", "'DELTA'", "must be an integer from 0 to 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_n_is_within_the_limit),
        cmocka_unit_test(test_greedy_choices_would_all_be_the_same),
        cmocka_unit_test(test_the_last_choice_has_a_seed_of_64_bits_too),
        cmocka_unit_test(test_logprobs_are_within_the_limit),
        cmocka_unit_test(test_without_a_limit_logprobs_are_at_most_the_vocabulary),
        cmocka_unit_test(test_a_stream_has_no_prompt_logprobs),
        cmocka_unit_test(test_ids_with_logprobs_are_few),
        cmocka_unit_test(test_logprobs_beside_ids_are_as_many),
        cmocka_unit_test(test_lists_of_ids_are_taken),
        cmocka_unit_test(test_lists_of_anything_else_are_refused),
        cmocka_unit_test(test_lists_of_ids_are_bounded_and_not_empty),
        cmocka_unit_test(test_biases_are_taken),
        cmocka_unit_test(test_biases_of_anything_else_are_refused),
        cmocka_unit_test(test_biases_are_bounded),
        cmocka_unit_test(test_a_thinking_budget_is_a_number_or_none),
        cmocka_unit_test(test_skipping_the_prefix_cache_has_three_states),
        cmocka_unit_test(test_repetition_detection_is_taken),
        cmocka_unit_test(test_repetition_detection_must_make_sense),
        cmocka_unit_test(test_what_asks_for_no_text_is_accepted),
        cmocka_unit_test(test_what_asks_for_text_is_unsupported),
        cmocka_unit_test(test_what_has_no_effect_still_has_a_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
