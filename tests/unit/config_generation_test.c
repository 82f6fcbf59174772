/* The keys of what requests may ask for: defaults, adapters, the limits of a body. */
#include "common/config_table.h"

#include "tests/unit/config_file.h"

#include <inttypes.h>
#include <math.h>

#define BEFORE "frontends = (\n"
#define MODEL(more) "model = { name = \"demo\"; vocab_size = 32000; " more " };\n"
#define WITH(more) CONFIG_MODEL CONFIG_RANKS CONFIG_COORDINATOR more CONFIG_FRONTEND_LIST
#define ADAPTERS                                                                                             \
    "adapters = ( { name = \"sql\"; id = 1; path = \"/loras/sql\"; },\n"                                     \
    "             { name = \"py \xc3\xa9\"; id = 2147483647; path = \"/loras/py\"; } );\n"
#define DEFAULTS                                                                                             \
    "defaults = { temperature = 0; top_p = 0.95; min_p = 0.5; repetition_penalty = 1.1; top_k = -1; "        \
    "max_tokens = 9; };\n"

static bool is_near(double number, double expected)
{
    return fabs(number - expected) < 1e-12;
}

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
    wg_config_destroy(&config);
}

static void test_absent_limits_have_their_defaults(void **state)
{
    (void)state;
    wg_config_t *config = config_of(CONFIG_TEXT);
    assert_int_equal(config->limits.max_header_bytes, 8192);
    assert_int_equal(config->limits.max_headers, 100);
    assert_int_equal(config->limits.max_json_depth, 32);
    assert_int_equal(config->limits.max_ids_per_list, 1024);
    assert_int_equal(config->limits.max_choices, 16);
    assert_int_equal(config->limits.max_prompts, 64);
    assert_int_equal(config->limits.max_logprobs, 20);
    assert_int_equal(config->timeouts.request_deadline_ms, 0);
    assert_int_equal(config->timeouts.keep_alive_ms, 0);
    assert_int_equal(config->timeouts.http_header_ms, 10000);
    assert_int_equal(config->timeouts.http_body_ms, 60000);
    wg_config_destroy(&config);
}

static void test_defaults_and_adapters_are_read(void **state)
{
    (void)state;
    wg_config_t *config = config_of(WITH(ADAPTERS DEFAULTS));
    assert_true(is_near(config->defaults.temperature, 0));
    assert_true(is_near(config->defaults.top_p, 0.95));
    assert_true(is_near(config->defaults.min_p, 0.5));
    assert_true(is_near(config->defaults.repetition_penalty, 1.1));
    assert_int_equal(config->defaults.top_k, -1);
    assert_int_equal(config->defaults.max_tokens, 9);
    assert_int_equal(config->adapter_count, 2);
    assert_string_equal(config->adapters[0].name, "sql");
    assert_string_equal(config->adapters[1].name, "py \xc3\xa9");
    assert_int_equal(config->adapters[1].id, INT32_MAX);
    assert_string_equal(config->adapters[1].path, "/loras/py");
    wg_config_destroy(&config);
}

static void test_every_backend_of_structured_outputs_is_known(void **state)
{
    (void)state;
    static const char *const names[] = {"guidance", "xgrammar", "outlines", "lm-format-enforcer"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char key[96];
        snprintf(key, sizeof key, "name = \"demo\"; structured_outputs_backend = \"%s\";", names[i]);
        wg_config_t *config = config_of_replaced("name = \"demo\";", key);
        assert_string_equal(config->model.structured_outputs_backend, names[i]);
        wg_config_destroy(&config);
    }
}

static void test_a_float_may_stand_in_any_form(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double number;
    } forms[] = {
        {"1", 1}, {"1L", 1},       {"0x1", 1},    {"1.", 1},        {".5", 0.5},
        {"2", 2}, {"+0.5", 0.5},   {"1e0", 1},    {"1e-10", 1e-10}, {"1.5E-1", 0.15},
        {"0", 0}, {"2.000e0", 2.}, {"0.1", 1e-1},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char more[96];
        snprintf(more, sizeof more, "defaults = { temperature = %s; };\n" BEFORE, forms[i].text);
        wg_config_t *config = config_of_replaced(BEFORE, more);
        assert_true(is_near(config->defaults.temperature, forms[i].number));
        wg_config_destroy(&config);
    }
}

static char *text_with_adapters(unsigned count)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    fputs("adapters = (\n", stream);
    for (unsigned i = 1; i <= count; i++)
        fprintf(stream, "%s{ name = \"a%u\"; id = %u; path = \"p\"; }\n", i > 1 ? "," : "", i, i);
    fputs(");\n" CONFIG_TEXT, stream);
    fclose(stream);
    return text;
}

static void test_many_adapters_are_read_and_more_are_refused(void **state)
{
    (void)state;
    char *many = text_with_adapters(1024);
    wg_config_t *config = config_of(many);
    assert_int_equal(config->adapter_count, 1024);
    assert_int_equal(config->adapters[1023].id, 1024);
    wg_config_destroy(&config);
    free(many);
    char *more = text_with_adapters(1025);
    assert_refused_at(more, 1, "adapters", "has 1025 adapters, must have 0 to 1024");
    free(more);
}

/* --- printing --- */

/* NAN is as good as NAN. */
static bool is_same(double left, double right)
{
    return (left >= right && left <= right) || (isnan(left) && isnan(right));
}

static void assert_same_values(const wg_config_t *left, const wg_config_t *right)
{
    assert_string_equal(left->model.path ? left->model.path : "", right->model.path ? right->model.path : "");
    assert_string_equal(left->model.structured_outputs_backend, right->model.structured_outputs_backend);
    assert_true(is_same(left->defaults.temperature, right->defaults.temperature));
    assert_true(is_same(left->defaults.top_p, right->defaults.top_p));
    assert_true(is_same(left->defaults.min_p, right->defaults.min_p));
    assert_true(is_same(left->defaults.repetition_penalty, right->defaults.repetition_penalty));
    assert_true(left->defaults.top_k == right->defaults.top_k);
    assert_true(left->defaults.max_tokens == right->defaults.max_tokens);
    assert_int_equal(left->adapter_count, right->adapter_count);
    for (uint32_t i = 0; i < left->adapter_count; i++) {
        assert_string_equal(left->adapters[i].name, right->adapters[i].name);
        assert_int_equal(left->adapters[i].id, right->adapters[i].id);
        assert_string_equal(left->adapters[i].path, right->adapters[i].path);
    }
    assert_memory_equal(&left->limits, &right->limits, sizeof left->limits);
    assert_memory_equal(&left->timeouts, &right->timeouts, sizeof left->timeouts);
}

static void assert_round_trip(const char *text)
{
    wg_config_t *config = config_of(text);
    char *once = printed(config);
    wg_config_t *again = config_of(once);
    char *twice = printed(again);
    assert_same_values(config, again);
    assert_string_equal(once, twice);
    free(twice);
    free(once);
    wg_config_destroy(&again);
    wg_config_destroy(&config);
}

static void test_what_is_printed_means_the_same(void **state)
{
    (void)state;
    assert_round_trip(CONFIG_TEXT);
    assert_round_trip(WITH("adapters = ( );\n"));
    assert_round_trip(WITH(ADAPTERS DEFAULTS));
    /* Floats of 17 digits, of few, and of none behind the point. */
    assert_round_trip(WITH("defaults = { temperature = 0.30000000000000004; top_p = 1e-300; min_p = 1; "
                           "repetition_penalty = 2147483647; top_k = 0; };\n"));
    assert_round_trip(
        MODEL("path = \"/models/demo\"; structured_outputs_backend = \"lm-format-enforcer\";")
            CONFIG_RANKS CONFIG_COORDINATOR
        "limits = { max_header_bytes = 65536; max_headers = 8; max_json_depth = 64; max_ids_per_list = 1; "
        "max_choices = 1024; max_prompts = 4096; max_logprobs = -1; };\n"
        "timeouts = { request_deadline_ms = 1; keep_alive_ms = 2; http_header_ms = 0; http_body_ms = 0; "
        "};\n" CONFIG_FRONTEND_LIST);
}

static void test_what_is_printed_is_short(void **state)
{
    (void)state;
    wg_config_t *config = config_of(WITH(ADAPTERS "defaults = { temperature = 0.7; top_p = 1; };\n"));
    char *text = printed(config);
    assert_non_null(strstr(text, "temperature = 0.7;"));
    assert_non_null(strstr(text, "top_p = 1.0;"));
    assert_non_null(strstr(text, "name = \"sql\";"));
    assert_null(strstr(text, "min_p"));
    assert_null(strstr(text, "top_k"));
    free(text);
    wg_config_destroy(&config);
}

/* --- refusals --- */

static void assert_default_refused(const config_key_t *key, const char *value, const char *reason)
{
    char text[4096];
    char name[64];
    snprintf(text, sizeof text, "defaults = { %s = %s; };\n" CONFIG_TEXT, key->name, value);
    snprintf(name, sizeof name, "defaults.%s", key->name);
    assert_refused_at(text, 1, name, reason);
}

static void test_every_default_names_its_range(void **state)
{
    (void)state;
    size_t count;
    size_t floats = 0;
    const config_key_t *keys = config_keys(&count);
    for (const config_key_t *key = keys; key < keys + count; key++) {
        if (strcmp(key->section, "defaults") != 0)
            continue;
        bool is_float = key->type->kind == CONFIG_NODE_FLOAT;
        char value[32];
        char reason[64];
        snprintf(value, sizeof value, "%" PRId64 "%s", is_float ? key->max : key->max + 1,
                 is_float ? ".5" : "");
        snprintf(reason, sizeof reason, "%s is out of range, must be ", value);
        assert_default_refused(key, value, reason);
        snprintf(value, sizeof value, "%" PRId64, key->min - 1);
        snprintf(reason, sizeof reason, "%s is out of range, must be ", value);
        assert_default_refused(key, value, reason);
        floats += is_float;
    }
    assert_int_equal(floats, 4);
}

#define ROW(more, key, reason)                                                                               \
    {                                                                                                        \
        BEFORE, more BEFORE, key, reason, 0                                                                  \
    }

static void test_a_default_that_cannot_be_is_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        ROW("defaults = { temperature = 2.0000001; };\n", "defaults.temperature",
            "2.0000001 is out of range, must be at least 0 and at most 2"),
        ROW("defaults = { temperature = 1e999; };\n", "defaults.temperature", "inf is out of range"),
        ROW("defaults = { temperature = -1e999; };\n", "defaults.temperature", "-inf is out of range"),
        ROW("defaults = { top_p = 0.0; };\n", "defaults.top_p",
            "0 is out of range, must be above 0 and at most 1"),
        ROW("defaults = { top_p = 0; };\n", "defaults.top_p", "0 is out of range, must be above 0"),
        ROW("defaults = { repetition_penalty = 0.0; };\n", "defaults.repetition_penalty", "must be above 0"),
        ROW("defaults = { top_p = \"1\"; };\n", "defaults.top_p", "must be a float, not a string"),
        ROW("defaults = { min_p = true; };\n", "defaults.min_p", "must be a float, not a bool"),
        ROW("defaults = { temperature = [ 1.0 ]; };\n", "defaults.temperature",
            "must be a float, not an array"),
        ROW("defaults = { top_k = 1.0; };\n", "defaults.top_k", "must be an int, not a float"),
        ROW("defaults = { seed = 1; };\n", "defaults.seed", "unknown key"),
        ROW("defaults = 1;\n", "defaults", "must be a group, not an int"), );
}

static void test_an_adapter_that_cannot_be_is_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        ROW("adapters = { name = \"a\"; };\n", "adapters", "must be a list, not a group"),
        ROW("adapters = ( \"a\" );\n", "adapters[0]", "must be a group, not a string"),
        ROW("adapters = ( { name = \"a\"; id = 1; } );\n", "adapters[0].path", "is required"),
        ROW("adapters = ( { name = \"a\"; path = \"p\"; } );\n", "adapters[0].id", "is required"),
        ROW("adapters = ( { id = 1; path = \"p\"; } );\n", "adapters[0].name", "is required"),
        ROW("adapters = ( { name = \"a\"; id = 0; path = \"p\"; } );\n", "adapters[0].id",
            "0 is out of range, must be in [1, 2147483647]"),
        ROW("adapters = ( { name = \"a\"; id = 2147483648; path = \"p\"; } );\n", "adapters[0].id",
            "2147483648 is out of range"),
        ROW("adapters = ( { name = \"a\"; id = \"1\"; path = \"p\"; } );\n", "adapters[0].id",
            "must be an int, not a string"),
        ROW("adapters = ( { name = \"\"; id = 1; path = \"p\"; } );\n", "adapters[0].name", "has 0 bytes"),
        ROW("adapters = ( { name = \"\\xff\"; id = 1; path = \"p\"; } );\n", "adapters[0].name",
            "is not UTF-8"),
        ROW("adapters = ( { name = \"a\"; id = 1; path = \"\"; } );\n", "adapters[0].path", "has 0 bytes"),
        ROW("adapters = ( { name = \"a\"; id = 1; path = \"p\"; rank = 1; } );\n", "adapters[0].rank",
            "unknown key"),
        ROW("adapters = ( { name = \"demo\"; id = 1; path = \"p\"; } );\n", "adapters[0].name",
            "`demo` is the name of the model too"), );
}

/* The fault is of the second adapter, and on its line. */
static void test_two_adapters_that_are_alike_are_refused(void **state)
{
    (void)state;
    static const char *const seconds[][3] = {
        {"name = \"a\"; id = 2;", "adapters[1].name", "`a` is the name of adapters[0] too"},
        {"name = \"b\"; id = 1;", "adapters[1].id", "1 is the id of adapters[0] too"},
        {"name = \"demo\"; id = 2;", "adapters[1].name", "`demo` is the name of the model too"},
        {"name = \"b\"; id = -1;", "adapters[1].id", "-1 is out of range"},
    };
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        char text[4096];
        snprintf(text, sizeof text,
                 "adapters = (\n  { name = \"a\"; id = 1; path = \"p\"; },\n  { path = \"p\"; %s } "
                 ");\n" CONFIG_TEXT,
                 seconds[i][0]);
        assert_refused_at(text, 3, seconds[i][1], seconds[i][2]);
    }
}

static void test_a_backend_that_engines_do_not_have_is_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED({"name = \"demo\";", "name = \"demo\"; structured_outputs_backend = \"regex\";",
                    "model.structured_outputs_backend",
                    "must be guidance, xgrammar, outlines or lm-format-enforcer, not `regex`", 0},
                   {"name = \"demo\";", "name = \"demo\"; structured_outputs_backend = \"\";",
                    "model.structured_outputs_backend", "must be guidance", 0},
                   {"name = \"demo\";", "name = \"demo\"; path = \"\";", "model.path", "has 0 bytes", 0}, );
}

/* --- what stands elsewhere --- */

/* In the sample, lines that begin with # are examples: without it they must be right, too. */
static void test_the_examples_in_the_sample_are_right(void **state)
{
    (void)state;
    FILE *stream = fopen(WG_SOURCE_DIR "/conf/local.cfg", "re");
    assert_non_null(stream);
    char *text = NULL;
    size_t size = 0;
    ssize_t length = getdelim(&text, &size, '\0', stream);
    assert_true(length > 0);
    fclose(stream);
    for (ssize_t i = 1; i < length; i++) {
        if (text[i] == '#' && text[i - 1] == '\n')
            text[i] = ' ';
    }
    wg_config_t *config = config_of(text);
    assert_int_equal(config->adapter_count, 2);
    assert_non_null(config->model.path);
    assert_true(is_near(config->defaults.temperature, 0.7));
    assert_int_equal(config->defaults.max_tokens, 2048);
    wg_config_destroy(&config);
    free(text);
}

/* The coordinator does not read the model's files, and must agree with the frontends nevertheless. */
static void test_the_fingerprint_is_not_of_what_requests_may_ask_for(void **state)
{
    (void)state;
    wg_config_t *plain = config_of(CONFIG_TEXT);
    wg_config_t *other = config_of("limits = { max_choices = 2; };\n" ADAPTERS DEFAULTS MODEL(
        "path = \"/m\";") CONFIG_RANKS CONFIG_COORDINATOR CONFIG_FRONTEND_LIST);
    assert_true(wg_config_fingerprint(plain) == wg_config_fingerprint(other));
    wg_config_destroy(&other);
    wg_config_destroy(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_file_does_not_say_is_left_open),
        cmocka_unit_test(test_absent_limits_have_their_defaults),
        cmocka_unit_test(test_defaults_and_adapters_are_read),
        cmocka_unit_test(test_every_backend_of_structured_outputs_is_known),
        cmocka_unit_test(test_a_float_may_stand_in_any_form),
        cmocka_unit_test(test_many_adapters_are_read_and_more_are_refused),
        cmocka_unit_test(test_what_is_printed_means_the_same),
        cmocka_unit_test(test_what_is_printed_is_short),
        cmocka_unit_test(test_every_default_names_its_range),
        cmocka_unit_test(test_a_default_that_cannot_be_is_refused),
        cmocka_unit_test(test_an_adapter_that_cannot_be_is_refused),
        cmocka_unit_test(test_two_adapters_that_are_alike_are_refused),
        cmocka_unit_test(test_a_backend_that_engines_do_not_have_is_refused),
        cmocka_unit_test(test_the_examples_in_the_sample_are_right),
        cmocka_unit_test(test_the_fingerprint_is_not_of_what_requests_may_ask_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
