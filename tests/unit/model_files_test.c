/* What a model's own files fill in, and what they may not say. */
#include "common/model_files.h"

#include "tests/unit/json_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char folder[64];
    wg_config_t config;
} fixture_t;

static void write_file(const fixture_t *f, const char *name, const char *json)
{
    char path[128];
    char *text = json_text(json);
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fwrite(text, 1, strlen(json), file);
    fclose(file);
    free(text);
}

static int setup(void **state)
{
    fixture_t *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    strcpy(f->folder, "/tmp/wavegate-model-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->config.model.path = f->folder;
    f->config.defaults.temperature = f->config.defaults.top_p = f->config.defaults.min_p = NAN;
    f->config.defaults.repetition_penalty = NAN;
    f->config.defaults.top_k = f->config.defaults.max_tokens = WG_CONFIG_UNSET;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture_t *f = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/config.json", f->folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/generation_config.json", f->folder);
    unlink(path);
    assert_int_equal(rmdir(f->folder), 0);
    free(f->config.model.eos_token_ids);
    free(f);
    return 0;
}

static void apply(fixture_t *f)
{
    wg_error_t error;
    if (model_files_apply(&f->config, &error) != WG_OK)
        fail_msg("refused: %s", error.message);
}

static void assert_eos_ids(const fixture_t *f, const int64_t *ids, uint32_t count)
{
    assert_int_equal(f->config.model.eos_count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(f->config.model.eos_token_ids[i], ids[i]);
}

static void assert_defaults(const fixture_t *f, double temperature, double top_p, int64_t top_k,
                            int64_t max_tokens)
{
    assert_true(fabs(f->config.defaults.temperature - temperature) < 1e-12);
    assert_true(fabs(f->config.defaults.top_p - top_p) < 1e-12);
    assert_int_equal(f->config.defaults.top_k, top_k);
    assert_int_equal(f->config.defaults.max_tokens, max_tokens);
}

static void test_both_files_are_read(void **state)
{
    fixture_t *f = *state;
    static const int64_t eos[] = {7, 9, 8};
    write_file(f, "config.json", "{'vocab_size':151936,'eos_token_id':7,'architectures':['X']}");
    write_file(f, "generation_config.json",
               "{'eos_token_id':[9,7,8],'temperature':0.6,'top_p':0.95,'top_k':20,'max_new_tokens':2048,"
               "'repetition_penalty':1.05,'do_sample':true}");
    apply(f);
    assert_int_equal(f->config.model.vocab_size, 151936);
    assert_eos_ids(f, eos, 3);
    assert_defaults(f, 0.6, 0.95, 20, 2048);
    assert_true(fabs(f->config.defaults.repetition_penalty - 1.05) < 1e-12);
    assert_true(fabs(f->config.defaults.min_p) < 1e-12);
}

static void test_what_the_configuration_says_wins(void **state)
{
    fixture_t *f = *state;
    static const int64_t eos[] = {3};
    write_file(f, "config.json", "{'vocab_size':100,'eos_token_id':7}");
    write_file(f, "generation_config.json",
               "{'eos_token_id':[9],'temperature':0.6,'top_k':20,'max_new_tokens':5}");
    f->config.model.vocab_size = 50;
    f->config.model.eos_token_ids = calloc(1, sizeof(int64_t));
    f->config.model.eos_token_ids[0] = 3;
    f->config.model.eos_count = 1;
    f->config.defaults.temperature = 0.0;
    f->config.defaults.top_k = 0;
    f->config.defaults.max_tokens = 0;
    apply(f);
    assert_int_equal(f->config.model.vocab_size, 50);
    assert_eos_ids(f, eos, 1);
    assert_defaults(f, 0.0, 1.0, 0, 0);
}

static void test_one_file_and_no_file_are_enough(void **state)
{
    fixture_t *f = *state;
    static const int64_t eos[] = {1, 2};
    write_file(f, "config.json",
               "{'vocab_size':null,'text_config':{'vocab_size':32,'eos_token_id':[1,2,1]}}");
    apply(f);
    assert_int_equal(f->config.model.vocab_size, 32);
    assert_eos_ids(f, eos, 2);
    assert_defaults(f, 1.0, 1.0, 0, 0);
    fixture_t bare = {.config = {.defaults = {NAN, NAN, NAN, NAN, WG_CONFIG_UNSET, WG_CONFIG_UNSET}}};
    apply(&bare);
    assert_defaults(&bare, 1.0, 1.0, 0, 0);
    assert_int_equal(bare.config.model.vocab_size, 0);
}

static void assert_refused(fixture_t *f, const char *model, const char *generation, const char *message)
{
    wg_error_t error = {0};
    if (model)
        write_file(f, "config.json", model);
    write_file(f, "generation_config.json", generation);
    assert_int_equal(model_files_apply(&f->config, &error), WG_E_CONFIG);
    if (!strstr(error.message, message))
        fail_msg("said: %s\nexpected: %s", error.message, message);
    assert_non_null(strstr(error.message, f->folder));
    free(f->config.model.eos_token_ids);
    f->config.model.eos_token_ids = NULL;
    f->config.model.eos_count = 0;
    f->config.model.vocab_size = 0;
}

static void test_a_fault_names_the_file_and_the_member(void **state)
{
    fixture_t *f = *state;
    assert_refused(f, NULL, "{}", "config.json:0: model.path: No such file or directory");
    assert_refused(f, "{", "{}", "config.json:1: model.path: ");
    assert_refused(f, "[]", "{}", "config.json:0: model.path: is not a JSON object");
    assert_refused(f, "{'vocab_size':0}", "{}", "config.json:0: vocab_size: must be an integer");
    assert_refused(f, "{'vocab_size':'10'}", "{}", "vocab_size: must be an integer");
    assert_refused(f, "{'vocab_size':2147483648}", "{}", "vocab_size: must be an integer");
    assert_refused(f, "{'vocab_size':10,'eos_token_id':10}", "{}",
                   "eos_token_id: must be an id of the vocabulary");
    assert_refused(f, "{'vocab_size':10}", "{'eos_token_id':[1,-1]}",
                   "generation_config.json:0: eos_token_id: must be an id");
    assert_refused(f, "{}", "{'temperature':2.5}", "generation_config.json:0: temperature: is not a number");
    assert_refused(f, "{}", "{'temperature':true}", "temperature: is not a number");
    assert_refused(f, "{}", "{'top_p':0}", "top_p: is not a number");
    assert_refused(f, "{}", "{'top_k':1.5}", "top_k: is not an integer");
    assert_refused(f, "{}", "{'max_new_tokens':0}", "max_new_tokens: is not an integer");
}

static void test_a_file_that_is_too_large_is_not_read(void **state)
{
    fixture_t *f = *state;
    char path[128];
    wg_error_t error;
    write_file(f, "config.json", "{}");
    snprintf(path, sizeof path, "%s/config.json", f->folder);
    assert_int_equal(truncate(path, 17L << 20), 0);
    assert_int_equal(model_files_apply(&f->config, &error), WG_E_CONFIG);
    assert_non_null(strstr(error.message, "more than 16 MiB"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_both_files_are_read),
        TEST(test_what_the_configuration_says_wins),
        TEST(test_one_file_and_no_file_are_enough),
        TEST(test_a_fault_names_the_file_and_the_member),
        TEST(test_a_file_that_is_too_large_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
