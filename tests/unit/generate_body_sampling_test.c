/* sampling_params: every number at both ends of its range and beyond, and the stop ids that follow from the
 * user's and the model's. */
#include "tests/unit/generate_body_fixture.h"

#include <float.h>

static void test_without_parameters_the_engines_defaults_hold(void **state)
{
    (void)state;
    static const char *const texts[] = {"{'token_ids':[1]}", SAMPLING("")};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        request_body_t body = taken(texts[i]);
        wire_sampling_t defaults;
        wire_sampling_defaults(&defaults);
        assert_float_equal(body.sampling.temperature, defaults.temperature, 0.0);
        assert_float_equal(body.sampling.top_p, defaults.top_p, 0.0);
        assert_float_equal(body.sampling.min_p, defaults.min_p, 0.0);
        assert_float_equal(body.sampling.presence_penalty, defaults.presence_penalty, 0.0);
        assert_float_equal(body.sampling.frequency_penalty, defaults.frequency_penalty, 0.0);
        assert_float_equal(body.sampling.repetition_penalty, defaults.repetition_penalty, 0.0);
        assert_int_equal(body.sampling.top_k, defaults.top_k);
        assert_int_equal(body.sampling.min_tokens, 0);
        assert_int_equal(body.sampling.max_tokens, 0); /* not 16: as many as fit */
        assert_false(body.sampling.has_seed || body.sampling.ignore_eos);
        request_body_free(&body);
    }
}

/* --- floats --- */

typedef struct {
    const char *name;
    size_t offset; /* in wire_sampling_t */
    const char *good[4];
    const char *bad[4];
    const char *range;
} float_row_t;

#define FLOAT(name) #name, offsetof(wire_sampling_t, name)

static const float_row_t floats[] = {
    {FLOAT(temperature), {"0", "0.0", "2", "0.7"}, {"-0.1", "2.0000001", "-1", "1e300"}, "from 0 to 2"},
    {FLOAT(top_p), {"1", "1.0", "0.0001", "0.5"}, {"0", "0.0", "1.0000001", "-0.5"}, "above 0 and at most 1"},
    {FLOAT(min_p), {"0", "1", "0.0", "0.05"}, {"-0.01", "1.01", "2", "-1"}, "from 0 to 1"},
    {FLOAT(presence_penalty), {"-2", "2", "0", "-0.5"}, {"-2.01", "2.01", "3", "-3"}, "from -2 to 2"},
    {FLOAT(frequency_penalty),
     {"-2.0", "2.0", "0.0", "1e-3"},
     {"-2.01", "2.01", "3", "-1e9"},
     "from -2 to 2"},
    {FLOAT(repetition_penalty), {"0.001", "1", "1000", "1.5"}, {"0", "0.0", "-0.0", "-1"}, "above 0"},
};

static double float_of(const request_body_t *body, const float_row_t *row)
{
    double number;
    memcpy(&number, (const char *)&body->sampling + row->offset, sizeof number);
    return number;
}

static void assert_float_refused(const float_row_t *row, const char *value)
{
    char json[128];
    char param[64];
    char message[128];
    snprintf(json, sizeof json, SAMPLING("'%s':%s"), row->name, value);
    snprintf(param, sizeof param, "sampling_params.%s", row->name);
    snprintf(message, sizeof message, "sampling_params.%s: must be a number %s", row->name, row->range);
    const bad_body_t bad = INVALID(json, param, message);
    assert_refused_by(model(), &bad, 1);
}

/* The configuration's, or the model's own. */
static void test_what_a_request_does_not_say_is_configured(void **state)
{
    (void)state;
    wg_config_t config = *model();
    config.defaults.temperature = 0.6;
    config.defaults.top_p = 0.95;
    config.defaults.min_p = 0.1;
    config.defaults.repetition_penalty = 1.05;
    config.defaults.top_k = 20;
    config.defaults.max_tokens = 500;
    request_body_t body = taken_by(&config, SAMPLING("'temperature':null"));
    assert_float_equal(body.sampling.temperature, 0.6, 0.0);
    assert_float_equal(body.sampling.top_p, 0.95, 0.0);
    assert_float_equal(body.sampling.min_p, 0.1, 0.0);
    assert_float_equal(body.sampling.repetition_penalty, 1.05, 0.0);
    assert_int_equal(body.sampling.top_k, 20);
    assert_int_equal(body.sampling.max_tokens, 500);
    assert_false(body.has_max_tokens);
    request_body_free(&body);
    body = taken_by(&config, SAMPLING("'temperature':1,'top_p':1,'min_p':0,'repetition_penalty':1,'top_k':0,"
                                      "'max_tokens':7"));
    assert_float_equal(body.sampling.temperature, 1.0, 0.0);
    assert_float_equal(body.sampling.top_p, 1.0, 0.0);
    assert_float_equal(body.sampling.min_p, 0.0, 0.0);
    assert_float_equal(body.sampling.repetition_penalty, 1.0, 0.0);
    assert_int_equal(body.sampling.top_k, 0);
    assert_int_equal(body.sampling.max_tokens, 7);
    assert_true(body.has_max_tokens);
    request_body_free(&body);
    config.defaults.temperature = 0; /* then n > 1 is refused unless the request is warmer */
    static const bad_body_t cold = INVALID(SAMPLING("'n':2"), "sampling_params.n", "must be 1");
    assert_refused_by(&config, &cold, 1);
    body = taken_by(&config, SAMPLING("'n':2,'temperature':0.5"));
    request_body_free(&body);
}

static void test_floats_within_their_range_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4 * COUNT_OF(floats); i++) {
        const float_row_t *row = &floats[i / 4];
        char json[128];
        snprintf(json, sizeof json, SAMPLING("'%s':%s"), row->name, row->good[i % 4]);
        request_body_t body = taken(json);
        assert_float_equal(float_of(&body, row), strtod(row->good[i % 4], NULL), 0.0);
        request_body_free(&body);
    }
}

static void test_floats_outside_their_range_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4 * COUNT_OF(floats); i++)
        assert_float_refused(&floats[i / 4], floats[i / 4].bad[i % 4]);
}

static void test_floats_of_another_type_are_refused(void **state)
{
    (void)state;
    static const char *const values[] = {"'1'", "true", "false", "[1]", "{}", "''"};
    for (size_t i = 0; i < COUNT_OF(floats); i++) {
        for (size_t k = 0; k < COUNT_OF(values); k++)
            assert_float_refused(&floats[i], values[k]);
    }
}

/* Case B074. None of them is JSON, or a double. */
static void test_numbers_that_are_none_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        const char *message;
    } rows[] = {
        {"NaN", "body: not valid JSON at line 1"},      {"nan", "body: not valid JSON at line 1"},
        {"Infinity", "body: not valid JSON at line 1"}, {"-Infinity", "body: not valid JSON at line 1"},
        {"1e999", "body: a number is out of range"},    {"-1e999", "body: a number is out of range"},
        {"+1", "body: not valid JSON at line 1"},       {".5", "body: not valid JSON at line 1"},
        {"0x1", "body: not valid JSON at line 1"},      {"01", "body: not valid JSON at line 1"},
    };
    for (size_t i = 0; i < COUNT_OF(floats) * COUNT_OF(rows); i++) {
        char json[128];
        snprintf(json, sizeof json, SAMPLING("'%s':%s"), floats[i / COUNT_OF(rows)].name,
                 rows[i % COUNT_OF(rows)].value);
        const bad_body_t bad = INVALID(json, "body", rows[i % COUNT_OF(rows)].message);
        assert_refused_by(model(), &bad, 1);
    }
}

static void test_a_tiny_temperature_is_greedy(void **state)
{
    (void)state;
    request_body_t body = taken(SAMPLING("'temperature':1e-320,'min_p':1e-320,'presence_penalty':-1e-320"));
    assert_true(body.sampling.temperature > 0.0 && body.sampling.temperature < 1e-5);
    request_body_free(&body);
    body = taken(SAMPLING("'temperature':-0.0"));
    assert_float_equal(body.sampling.temperature, 0.0, 0.0);
    request_body_free(&body);
}

/* Case B074: the engine computes in float32, where these are the 0 that they must not be. */
static void test_what_is_above_zero_in_double_only_is_refused(void **state)
{
    (void)state;
    static const char *const values[] = {"1e-320", "1e-45", "1.1754943e-38"};
    static const size_t rows[] = {1, 5}; /* top_p and repetition_penalty */
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const float_row_t *row = &floats[rows[i]];
        char json[128];
        for (size_t k = 0; k < COUNT_OF(values); k++)
            assert_float_refused(row, values[k]);
        snprintf(json, sizeof json, SAMPLING("'%s':%.17g"), row->name, (double)FLT_MIN);
        request_body_t body = taken(json);
        assert_float_equal(float_of(&body, row), (double)FLT_MIN, 0.0);
        request_body_free(&body);
    }
}

/* --- integers --- */

static void test_integers_within_their_range_are_taken(void **state)
{
    (void)state;
    request_body_t body = taken(SAMPLING("'top_k':-1,'max_tokens':1,'min_tokens':0"));
    assert_int_equal(body.sampling.top_k, -1);
    assert_int_equal(body.sampling.max_tokens, 1);
    assert_int_equal(body.sampling.min_tokens, 0);
    request_body_free(&body);
    body = taken(SAMPLING("'top_k':2147483647,'max_tokens':9223372036854775807,"
                          "'min_tokens':9223372036854775807"));
    assert_int_equal(body.sampling.top_k, INT32_MAX);
    assert_true(body.sampling.max_tokens == INT64_MAX);
    assert_true(body.sampling.min_tokens == INT64_MAX);
    request_body_free(&body);
    body = taken(SAMPLING("'top_k':0,'max_tokens':null"));
    assert_int_equal(body.sampling.top_k, 0);
    assert_int_equal(body.sampling.max_tokens, 0);
    request_body_free(&body);
}

static void test_integers_outside_their_range_are_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        INVALID(
            SAMPLING("'top_k':-2"), "sampling_params.top_k",
            "sampling_params.top_k: must be an integer from -1 to 2147483647, where -1 and 0 turn it off"),
        INVALID(SAMPLING("'top_k':2147483648"), "sampling_params.top_k", "from -1 to 2147483647"),
        INVALID(SAMPLING("'top_k':-9223372036854775808"), "sampling_params.top_k", "must be an integer"),
        INVALID(SAMPLING("'max_tokens':0"), "sampling_params.max_tokens",
                "sampling_params.max_tokens: must be an integer, at least 1"),
        INVALID(SAMPLING("'max_tokens':-1"), "sampling_params.max_tokens", "at least 1"),
        INVALID(SAMPLING("'min_tokens':-1"), "sampling_params.min_tokens",
                "sampling_params.min_tokens: must be an integer, at least 0"),
        INVALID(SAMPLING("'max_tokens':9223372036854775808"), "sampling_params.max_tokens",
                "sampling_params.max_tokens: a number is out of range; integers have 64 bits"),
        INVALID(SAMPLING("'top_k':99999999999999999999"), "sampling_params.top_k", "integers have 64 bits"));
}

static void test_integers_of_another_type_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"top_k", "max_tokens", "min_tokens", "seed"};
    static const char *const values[] = {"1.0", "1.5", "1e2", "'1'", "true", "[1]", "{}"};
    for (size_t i = 0; i < COUNT_OF(names) * COUNT_OF(values); i++) {
        const char *name = names[i / COUNT_OF(values)];
        char json[128];
        char param[64];
        snprintf(json, sizeof json, SAMPLING("'%s':%s"), name, values[i % COUNT_OF(values)]);
        snprintf(param, sizeof param, "sampling_params.%s", name);
        const bad_body_t bad = INVALID(json, param, "must be an integer");
        assert_refused_by(model(), &bad, 1);
    }
}

static void test_min_tokens_are_at_most_max_tokens(void **state)
{
    (void)state;
    request_body_t body = taken(SAMPLING("'min_tokens':5,'max_tokens':5"));
    request_body_free(&body);
    body = taken(SAMPLING("'min_tokens':5")); /* against what fits, by the client */
    request_body_free(&body);
    ASSERT_REFUSED(INVALID(SAMPLING("'min_tokens':6,'max_tokens':5"), "sampling_params.min_tokens",
                           "sampling_params.min_tokens: must be at most max_tokens = 5"),
                   INVALID(SAMPLING("'max_tokens':5,'min_tokens':6"), "sampling_params.min_tokens",
                           "must be at most max_tokens = 5"));
}

static void test_a_seed_is_any_integer_of_64_bits(void **state)
{
    (void)state;
    static const int64_t seeds[] = {0, -1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(seeds); i++) {
        char json[128];
        snprintf(json, sizeof json, SAMPLING("'seed':%lld"), (long long)seeds[i]);
        request_body_t body = taken(json);
        assert_true(body.sampling.has_seed && body.sampling.seed == seeds[i]);
        request_body_free(&body);
    }
    request_body_t body = taken(SAMPLING("'seed':null"));
    assert_false(body.sampling.has_seed);
    request_body_free(&body);
    ASSERT_REFUSED(
        INVALID(SAMPLING("'seed':18446744073709551615"), "sampling_params.seed", "integers have 64 bits"));
}

/* The largest integer that fits is not the one at fault. */
static void test_the_number_that_is_out_of_range_is_named(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        INVALID("{'priority':9223372036854775807,'token_ids':[18446744073709551616]}", "token_ids",
                "integers have 64 bits"),
        INVALID("{'token_ids':[9223372036854775808],'priority':1}", "token_ids", "integers have 64 bits"),
        /* as reals the two are equal, so neither is accused */
        INVALID("{'token_ids':[9223372036854775808],'priority':9223372036854775807}", "body",
                "integers have 64 bits"));
}

static void test_ignore_eos_is_a_boolean(void **state)
{
    (void)state;
    request_body_t body = taken(SAMPLING("'ignore_eos':false"));
    assert_false(body.sampling.ignore_eos);
    request_body_free(&body);
    ASSERT_REFUSED(INVALID(SAMPLING("'ignore_eos':1"), "sampling_params.ignore_eos",
                           "sampling_params.ignore_eos: must be true or false"),
                   INVALID(SAMPLING("'ignore_eos':'false'"), "sampling_params.ignore_eos", "true or false"));
}

static void test_parameters_are_an_object(void **state)
{
    (void)state;
    ASSERT_REFUSED(INVALID(BODY("'sampling_params':[]"), "sampling_params", "must be an object"),
                   INVALID(BODY("'sampling_params':'greedy'"), "sampling_params", "must be an object"),
                   INVALID(BODY("'sampling_params':0"), "sampling_params", "must be an object"));
}

/* --- stop ids --- */

static void assert_stops(const wg_config_t *config, const char *json, const int64_t *ids, size_t count,
                         size_t sent, int64_t eos)
{
    request_body_t body = taken_by(config, json);
    assert_int_equal(body.sampling.all_stop_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(body.sampling.all_stop_token_ids[i], ids[i]);
    assert_int_equal(body.sampling.stop_count, sent);
    assert_int_equal(body.sampling.eos_token_id, eos);
    request_body_free(&body);
}

/* The model's ids are 2, the primary one, and 7. */
static void test_the_models_eos_ids_end_a_request_too(void **state)
{
    (void)state;
    assert_stops(model(), "{'token_ids':[1]}", (const int64_t[]){7, 2}, 2, 1, 2);
    assert_stops(model(), SAMPLING("'stop_token_ids':[]"), (const int64_t[]){7, 2}, 2, 1, 2);
    assert_stops(model(), SAMPLING("'stop_token_ids':null"), (const int64_t[]){7, 2}, 2, 1, 2);
    assert_stops(model(), SAMPLING("'stop_token_ids':[9,0,31999]"), (const int64_t[]){9, 0, 31999, 7, 2}, 5,
                 4, 2);
}

/* They are masked all the same until min_tokens (protocol.md 5). */
static void test_ignored_eos_ids_are_masked_but_do_not_stop(void **state)
{
    (void)state;
    assert_stops(model(), SAMPLING("'ignore_eos':true"), (const int64_t[]){7, 2}, 2, 0, WIRE_NO_TOKEN);
    assert_stops(model(), SAMPLING("'stop_token_ids':[9],'ignore_eos':true"), (const int64_t[]){9, 7, 2}, 3,
                 1, WIRE_NO_TOKEN);
    assert_stops(model(), SAMPLING("'ignore_eos':true,'stop_token_ids':[9]"), (const int64_t[]){9, 7, 2}, 3,
                 1, WIRE_NO_TOKEN);
}

static void test_a_model_without_eos_ids_has_the_users_only(void **state)
{
    (void)state;
    assert_stops(unknown_model(), "{'token_ids':[1]}", NULL, 0, 0, WIRE_NO_TOKEN);
    assert_stops(unknown_model(), SAMPLING("'stop_token_ids':[]"), NULL, 0, 0, WIRE_NO_TOKEN);
    assert_stops(unknown_model(), SAMPLING("'stop_token_ids':[9]"), (const int64_t[]){9}, 1, 1,
                 WIRE_NO_TOKEN);
}

static void test_stop_ids_are_token_ids(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        INVALID(SAMPLING("'stop_token_ids':7"), "sampling_params.stop_token_ids",
                "sampling_params.stop_token_ids: must be an array of token ids"),
        INVALID(SAMPLING("'stop_token_ids':{}"), "sampling_params.stop_token_ids", "must be an array"),
        INVALID(SAMPLING("'stop_token_ids':[1,-1]"), "sampling_params.stop_token_ids",
                "element 1 is -1, but must be from 0 to 31999"),
        INVALID(SAMPLING("'stop_token_ids':[32000]"), "sampling_params.stop_token_ids", "element 0 is 32000"),
        INVALID(SAMPLING("'stop_token_ids':[1.0]"), "sampling_params.stop_token_ids",
                "element 0 must be an integer"),
        INVALID(SAMPLING("'stop_token_ids':[null]"), "sampling_params.stop_token_ids",
                "element 0 must be an integer"),
        INVALID(SAMPLING("'stop_token_ids':[99999999999999999999]"), "sampling_params.stop_token_ids",
                "integers have 64 bits"));
}

static void test_with_min_tokens_there_are_only_so_many_stop_ids(void **state)
{
    (void)state;
    wg_config_t config = *model();
    config.limits.max_ids_per_list = 1000;
    for (int count = 126; count <= 127; count++) { /* and the model's own two */
        char json[2048];
        size_t size =
            (size_t)sprintf(json, "{'token_ids':[1],'sampling_params':{'min_tokens':1,'stop_token_ids':[");
        for (int i = 0; i < count; i++)
            size += (size_t)sprintf(json + size, "%s%d", i > 0 ? "," : "", 100 + i);
        sprintf(json + size, "]}}");
        const bad_body_t bad =
            INVALID(json, "sampling_params.stop_token_ids", "more ids than engines can mask");
        if (count == 126) {
            request_body_t body = taken_by(&config, json);
            assert_int_equal(body.sampling.all_stop_count, 128);
            request_body_free(&body);
        } else {
            assert_refused_by(&config, &bad, 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_with_min_tokens_there_are_only_so_many_stop_ids),
        cmocka_unit_test(test_without_parameters_the_engines_defaults_hold),
        cmocka_unit_test(test_what_a_request_does_not_say_is_configured),
        cmocka_unit_test(test_floats_within_their_range_are_taken),
        cmocka_unit_test(test_floats_outside_their_range_are_refused),
        cmocka_unit_test(test_floats_of_another_type_are_refused),
        cmocka_unit_test(test_numbers_that_are_none_are_refused),
        cmocka_unit_test(test_a_tiny_temperature_is_greedy),
        cmocka_unit_test(test_what_is_above_zero_in_double_only_is_refused),
        cmocka_unit_test(test_integers_within_their_range_are_taken),
        cmocka_unit_test(test_integers_outside_their_range_are_refused),
        cmocka_unit_test(test_integers_of_another_type_are_refused),
        cmocka_unit_test(test_min_tokens_are_at_most_max_tokens),
        cmocka_unit_test(test_a_seed_is_any_integer_of_64_bits),
        cmocka_unit_test(test_the_number_that_is_out_of_range_is_named),
        cmocka_unit_test(test_ignore_eos_is_a_boolean),
        cmocka_unit_test(test_parameters_are_an_object),
        cmocka_unit_test(test_the_models_eos_ids_end_a_request_too),
        cmocka_unit_test(test_ignored_eos_ids_are_masked_but_do_not_stop),
        cmocka_unit_test(test_a_model_without_eos_ids_has_the_users_only),
        cmocka_unit_test(test_stop_ids_are_token_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
