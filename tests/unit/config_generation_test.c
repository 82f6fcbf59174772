/* The keys of what requests may ask for: defaults, adapters, the limits of a body. */
#include "tests/unit/config_file.h"

#include <math.h>

#define BEFORE "frontends = (\n"
#define WITH(more) CONFIG_MODEL CONFIG_RANKS CONFIG_COORDINATOR more CONFIG_FRONTEND_LIST
#define ADAPTERS                                                                                             \
    "adapters = ( { name = \"sql\"; id = 1; path = \"/loras/sql\"; },\n"                                     \
    "             { name = \"py\"; id = 7; path = \"/loras/py\"; } );\n"

static void test_what_the_file_does_not_say_is_left_open(void **state)
{
    (void)state;
    wg_config_t *config = config_of(CONFIG_TEXT);
    assert_true(isnan(config->defaults.temperature) && isnan(config->defaults.top_p));
    assert_true(isnan(config->defaults.min_p) && isnan(config->defaults.repetition_penalty));
    assert_true(config->defaults.top_k == WG_CONFIG_UNSET && config->defaults.max_tokens == WG_CONFIG_UNSET);
    assert_int_equal(config->adapter_count, 0);
    assert_null(config->model.path);
    assert_string_equal(config->model.structured_outputs_backend, "guidance");
    assert_int_equal(config->limits.max_logprobs, 20);
    assert_int_equal(config->timeouts.request_deadline_ms, 0);
    wg_config_destroy(&config);
}

static void test_defaults_and_adapters_are_read(void **state)
{
    (void)state;
    wg_config_t *config = config_of(
        WITH(ADAPTERS
             "defaults = { temperature = 0; top_p = 0.95; min_p = 0.5; repetition_penalty = 1.1; top_k = -1; "
             "max_tokens = 9; };\n"));
    assert_true(fabs(config->defaults.temperature) < 1e-12);
    assert_true(fabs(config->defaults.top_p - 0.95) < 1e-12);
    assert_true(fabs(config->defaults.min_p - 0.5) < 1e-12);
    assert_true(fabs(config->defaults.repetition_penalty - 1.1) < 1e-12);
    assert_int_equal(config->defaults.top_k, -1);
    assert_int_equal(config->defaults.max_tokens, 9);
    assert_int_equal(config->adapter_count, 2);
    assert_string_equal(config->adapters[0].name, "sql");
    assert_int_equal(config->adapters[1].id, 7);
    assert_string_equal(config->adapters[1].path, "/loras/py");
    wg_config_destroy(&config);
}

/* Printed and read again, it is the same text. */
static void test_what_is_printed_means_the_same(void **state)
{
    (void)state;
    char *texts[2] = {NULL, NULL};
    const char *text = WITH(ADAPTERS "defaults = { temperature = 0.7; top_p = 1; top_k = 0; };\n");
    for (int i = 0; i < 2; i++) {
        size_t size;
        wg_config_t *config = config_of(text);
        FILE *stream = open_memstream(&texts[i], &size);
        assert_non_null(stream);
        wg_config_print(config, stream);
        fclose(stream);
        wg_config_destroy(&config);
        text = texts[i];
    }
    assert_string_equal(texts[0], texts[1]);
    assert_non_null(strstr(texts[0], "temperature = 0.7;"));
    assert_non_null(strstr(texts[0], "top_p = 1.0;"));
    assert_non_null(strstr(texts[0], "name = \"py\";"));
    assert_null(strstr(texts[0], "min_p"));
    free(texts[0]);
    free(texts[1]);
}

static void test_what_cannot_be_is_refused(void **state)
{
    (void)state;
#define ROW(more, key, reason) {BEFORE, more BEFORE, key, reason, 0}
    ASSERT_REFUSED(
        ROW("defaults = { temperature = 2.01; };\n", "defaults.temperature",
            "2.01 is out of range, must be at least 0 and at most 2"),
        ROW("defaults = { temperature = -1; };\n", "defaults.temperature",
            "-1 is out of range, must be at least 0"),
        ROW("defaults = { top_p = 0.0; };\n", "defaults.top_p", "0 is out of range, must be above 0"),
        ROW("defaults = { top_p = \"1\"; };\n", "defaults.top_p", "must be a float, not a string"),
        ROW("defaults = { top_k = -2; };\n", "defaults.top_k", "-2 is out of range"),
        ROW("defaults = { top_k = 1.0; };\n", "defaults.top_k", "must be an int, not a float"),
        ROW("defaults = { seed = 1; };\n", "defaults.seed", "unknown key"),
        ROW("limits = { max_json_depth = 65; };\n", "limits.max_json_depth", "65 is out of range"),
        ROW("limits = { max_logprobs = -2; };\n", "limits.max_logprobs", "-2 is out of range"),
        ROW("adapters = { name = \"a\"; };\n", "adapters", "must be a list, not a group"),
        ROW("adapters = ( { name = \"a\"; id = 1; } );\n", "adapters[0].path", "is required"),
        ROW("adapters = ( { name = \"a\"; id = 0; path = \"p\"; } );\n", "adapters[0].id",
            "0 is out of range"),
        ROW("adapters = ( { name = \"\"; id = 1; path = \"p\"; } );\n", "adapters[0].name", "has 0 bytes"),
        ROW("adapters = ( { name = \"a\"; id = 1; path = \"p\"; rank = 1; } );\n", "adapters[0].rank",
            "unknown key"),
        ROW("adapters = ( { name = \"demo\"; id = 1; path = \"p\"; } );\n", "adapters[0].name",
            "`demo` is the name of the model too"),
        ROW("adapters = ( { name = \"a\"; id = 1; path = \"p\"; }, { name = \"a\"; id = 2; path = \"p\"; } "
            ");\n",
            "adapters[1].name", "`a` is the name of adapters[0] too"),
        ROW("adapters = ( { name = \"a\"; id = 1; path = \"p\"; }, { name = \"b\"; id = 1; path = \"p\"; } "
            ");\n",
            "adapters[1].id", "1 is the id of adapters[0] too"),
        {"name = \"demo\";", "name = \"demo\"; structured_outputs_backend = \"regex\";",
         "model.structured_outputs_backend", "must be guidance, xgrammar, outlines or lm-format-enforcer",
         0}, );
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_file_does_not_say_is_left_open),
        cmocka_unit_test(test_defaults_and_adapters_are_read),
        cmocka_unit_test(test_what_is_printed_means_the_same),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
