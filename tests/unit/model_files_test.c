/* What a model's own files fill in, and what they may not say. */
#include "common/model_files.h"

#include "tests/unit/json_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* Only the generation_config.json may be missing, and null is like absent. */
static void test_the_model_alone_says_nothing_of_defaults(void **state)
{
    fixture_t *f = *state;
    static const int64_t eos[] = {1, 2};
    write_file(
        f, "config.json",
        "{'vocab_size':null,'eos_token_id':null,'text_config':{'vocab_size':32,'eos_token_id':[1,2,1]},"
        "'temperature':0.1,'max_new_tokens':3}");
    apply(f);
    assert_int_equal(f->config.model.vocab_size, 32);
    assert_eos_ids(f, eos, 2);
    assert_defaults(f, 1.0, 1.0, 0, 0);
}

static void test_without_a_path_the_rest_is_set(void **state)
{
    (void)state;
    fixture_t bare = {.config = {.defaults = {NAN, 0.5, NAN, NAN, WG_CONFIG_UNSET, 7}}};
    apply(&bare);
    assert_defaults(&bare, 1.0, 0.5, 0, 7);
    assert_true(fabs(bare.config.defaults.min_p) < 1e-12);
    assert_true(fabs(bare.config.defaults.repetition_penalty - 1.0) < 1e-12);
    assert_int_equal(bare.config.model.vocab_size, 0);
    assert_int_equal(bare.config.model.eos_count, 0);
}

static void test_null_and_unknown_members_are_passed_over(void **state)
{
    fixture_t *f = *state;
    write_file(f, "config.json",
               "{'text_config':{'vocab_size':null,'eos_token_id':null},'architectures':null}");
    write_file(f, "generation_config.json",
               "{'eos_token_id':null,'temperature':null,'top_p':null,'min_p':null,'repetition_penalty':null,"
               "'top_k':null,'max_new_tokens':null,'do_sample':false,'temp':9,'text_config':[1]}");
    apply(f);
    assert_defaults(f, 1.0, 1.0, 0, 0);
    assert_int_equal(f->config.model.vocab_size, 0);
    assert_int_equal(f->config.model.eos_count, 0);
}

static void test_generation_alone_may_name_the_ends(void **state)
{
    fixture_t *f = *state;
    static const int64_t eos[] = {9, 7};
    write_file(f, "config.json", "{'vocab_size':10,'eos_token_id':[]}");
    write_file(f, "generation_config.json", "{'eos_token_id':[9,7,9]}");
    apply(f);
    assert_eos_ids(f, eos, 2);
}

/* What the range of each key allows at its very ends, and a number without a fraction where floats are. */
static void test_the_ends_of_every_range_are_taken(void **state)
{
    fixture_t *f = *state;
    write_file(f, "config.json", "{'vocab_size':2147483647,'eos_token_id':2147483646}");
    write_file(f, "generation_config.json",
               "{'temperature':2,'top_p':1,'min_p':1,'repetition_penalty':2147483647,'top_k':-1,"
               "'max_new_tokens':2147483647}");
    apply(f);
    assert_defaults(f, 2.0, 1.0, -1, INT32_MAX);
    assert_int_equal(f->config.model.eos_token_ids[0], INT32_MAX - 1);
    assert_true(fabs(f->config.defaults.min_p - 1.0) < 1e-12);
}

/* Python's own spelling, as in models with Mamba layers. */
static void test_infinite_numbers_of_no_interest_are_passed_over(void **state)
{
    fixture_t *f = *state;
    static const int64_t eos[] = {3};
    write_file(f, "config.json",
               "{'time_step_limit':[0.0,Infinity],'low':-Infinity,'x':NaN,'a \\' NaN':'Infinity \\\\',"
               "'vocab_size':10,'eos_token_id':3,'last':Infinity}");
    apply(f);
    assert_int_equal(f->config.model.vocab_size, 10);
    assert_eos_ids(f, eos, 1);
}

/* --- refusals --- */

/* Where the message names no file, that of the model is meant. */
static void assert_refused(fixture_t *f, const char *model, const char *generation, const char *message)
{
    wg_error_t error = {0};
    fixture_t fresh = *f;
    if (model)
        write_file(f, "config.json", model);
    write_file(f, "generation_config.json", generation);
    assert_int_equal(model_files_apply(&fresh.config, &error), WG_E_CONFIG);
    assert_int_equal(error.status, WG_E_CONFIG);
    free(fresh.config.model.eos_token_ids);
    char expected[256];
    snprintf(expected, sizeof expected, "%s/%s", f->folder, message);
    if (strncmp(error.message, expected, strlen(expected)) != 0)
        fail_msg("said: %s\nexpected: %s", error.message, expected);
}

static void test_a_file_that_is_no_json_object_is_refused(void **state)
{
    fixture_t *f = *state;
    assert_refused(f, NULL, "{}", "config.json:0: model.path: No such file or directory");
    assert_refused(f, "", "{}", "config.json:1: model.path: ");
    assert_refused(f, "{", "{}", "config.json:1: model.path: ");
    assert_refused(f, "{'time_step':Infinity,\n'\xff':1}", "{}", "config.json:2: model.path: ");
    assert_refused(f, "{'x':Infinit}", "{}", "config.json:1: model.path: ");
    assert_refused(f, "[]", "{}", "config.json:0: model.path: is not a JSON object");
    assert_refused(f, "{}", "7", "generation_config.json:1: model.path: ");
    assert_refused(f, "{}", "[]", "generation_config.json:0: model.path: is not a JSON object");
    assert_refused(f, "{} {}", "{}", "config.json:1: model.path: ");
}

static void test_a_size_that_cannot_be_is_refused(void **state)
{
    fixture_t *f = *state;
    assert_refused(f, "{'vocab_size':0}", "{}",
                   "config.json:0: vocab_size: 0 is out of range, must be in [1, 2147483647]");
    assert_refused(f, "{'vocab_size':2147483648}", "{}", "config.json:0: vocab_size: 2147483648 is out of");
    assert_refused(f, "{'vocab_size':'10'}", "{}", "config.json:0: vocab_size: must be an integer");
    assert_refused(f, "{'vocab_size':10.0}", "{}", "config.json:0: vocab_size: must be an integer");
    assert_refused(f, "{'text_config':{'vocab_size':true}}", "{}", "config.json:0: vocab_size: must be an");
}

static void test_an_end_that_cannot_be_is_refused(void **state)
{
    fixture_t *f = *state;
    assert_refused(f, "{'eos_token_id':'2'}", "{}", "config.json:0: eos_token_id: must be an integer");
    assert_refused(f, "{'eos_token_id':[1,[2]]}", "{}", "config.json:0: eos_token_id: must be an integer");
    assert_refused(f, "{'eos_token_id':-1}", "{}", "config.json:0: eos_token_id: -1 is out of range");
    assert_refused(f, "{'vocab_size':10,'eos_token_id':10}", "{}",
                   "config.json:0: eos_token_id: 10 is out of range, must be below the vocab_size (10)");
    assert_refused(f, "{'vocab_size':10}", "{'eos_token_id':[1,11]}",
                   "generation_config.json:0: eos_token_id: 11 is out of range, must be below");
}

static void test_too_many_ends_are_refused(void **state)
{
    fixture_t *f = *state;
    char json[16384];
    size_t used = (size_t)snprintf(json, sizeof json, "{'eos_token_id':[0");
    for (unsigned id = 1; id <= 1024; id++)
        used += (size_t)snprintf(json + used, sizeof json - used, ",%u", id);
    snprintf(json + used, sizeof json - used, "]}");
    assert_refused(f, json, "{}", "config.json:0: eos_token_id: has more than 1024 ids");
}

static void test_a_default_that_no_request_could_give_is_refused(void **state)
{
    fixture_t *f = *state;
    static const struct {
        const char *json;
        const char *message;
    } cases[] = {
        {"{'temperature':2.5}", "temperature: 2.5 is out of range, must be at least 0 and at most 2"},
        {"{'temperature':-0.1}", "temperature: -0.1 is out of range"},
        {"{'temperature':true}", "temperature: must be a number"},
        {"{'temperature':Infinity}", "temperature: must be a number"},
        {"{'temperature':NaN}", "temperature: must be a number"},
        {"{'top_p':0}", "top_p: 0 is out of range, must be above 0 and at most 1"},
        {"{'top_p':1.01}", "top_p: 1.01 is out of range"},
        {"{'min_p':-1}", "min_p: -1 is out of range, must be at least 0 and at most 1"},
        {"{'min_p':[0]}", "min_p: must be a number"},
        {"{'repetition_penalty':0.0}",
         "repetition_penalty: 0 is out of range, must be above 0 and at most 2147483647"},
        {"{'top_k':-2}", "top_k: -2 is out of range, must be in [-1, 2147483647]"},
        {"{'top_k':1.5}", "top_k: must be an integer"},
        {"{'max_new_tokens':0}", "max_new_tokens: 0 is out of range, must be in [1, 2147483647]"},
        {"{'max_new_tokens':'9'}", "max_new_tokens: must be an integer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[128];
        snprintf(message, sizeof message, "generation_config.json:0: %s", cases[i].message);
        assert_refused(f, "{}", cases[i].json, message);
    }
}

/* What the configuration says wins, but it must fit to what the model says. */
static void test_a_configured_end_outside_the_models_vocabulary_is_refused(void **state)
{
    fixture_t *f = *state;
    int64_t ids[] = {2, 100};
    wg_error_t error;
    write_file(f, "config.json", "{'vocab_size':100,'eos_token_id':7}");
    f->config.path = "/etc/cluster.cfg";
    f->config.model.eos_token_ids = ids;
    f->config.model.eos_count = 2;
    assert_int_equal(model_files_apply(&f->config, &error), WG_E_CONFIG);
    f->config.model.eos_token_ids = NULL;
    assert_string_equal(error.message,
                        "/etc/cluster.cfg:0: model.eos_token_ids: 100 is out of range, must be "
                        "below the vocab_size (100) of the model's config.json");
}

/* Nor is the configured size forgotten where the ids are the model's. */
static void test_an_end_outside_the_configured_vocabulary_is_refused(void **state)
{
    fixture_t *f = *state;
    f->config.model.vocab_size = 5;
    assert_refused(f, "{'vocab_size':100,'eos_token_id':7}", "{}",
                   "config.json:0: eos_token_id: 7 is out of range, must be below the vocab_size (5)");
}

static void resize_file(const fixture_t *f, off_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/config.json", f->folder);
    assert_int_equal(truncate(path, size), 0);
}

static void test_a_file_that_is_too_large_is_not_read(void **state)
{
    fixture_t *f = *state;
    write_file(f, "config.json", "{}");
    resize_file(f, 16 << 20);
    assert_refused(f, NULL, "{}", "config.json:1: model.path: "); /* of NUL bytes, but not too many */
    resize_file(f, (16 << 20) + 1);
    assert_refused(f, NULL, "{}", "config.json:0: model.path: is larger than 16 MiB");
}

/* Endless, or never to be written: neither stops the start. */
static void test_what_is_no_file_is_refused(void **state)
{
    fixture_t *f = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/config.json", f->folder);
    assert_int_equal(symlink("/dev/zero", path), 0);
    assert_refused(f, NULL, "{}", "config.json:0: model.path: is not a regular file");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(f, NULL, "{}", "config.json:0: model.path: is not a regular file");
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused(f, NULL, "{}", "config.json:0: model.path: is not a regular file");
    assert_int_equal(rmdir(path), 0);
}

static void test_a_folder_that_is_none_is_refused(void **state)
{
    fixture_t *f = *state;
    wg_error_t error;
    char folder[600];
    f->config.model.path = "/dev/null";
    assert_int_equal(model_files_apply(&f->config, &error), WG_E_CONFIG);
    assert_string_equal(error.message, "/dev/null/config.json:0: model.path: Not a directory");
    memset(folder, 'p', sizeof folder - 1);
    folder[sizeof folder - 1] = '\0';
    f->config.model.path = folder;
    assert_int_equal(model_files_apply(&f->config, &error), WG_E_CONFIG);
    assert_non_null(strstr(error.message, "ppp:0: model.path: File name too long"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_both_files_are_read),
        TEST(test_what_the_configuration_says_wins),
        TEST(test_the_model_alone_says_nothing_of_defaults),
        TEST(test_without_a_path_the_rest_is_set),
        TEST(test_null_and_unknown_members_are_passed_over),
        TEST(test_generation_alone_may_name_the_ends),
        TEST(test_the_ends_of_every_range_are_taken),
        TEST(test_infinite_numbers_of_no_interest_are_passed_over),
        TEST(test_a_file_that_is_no_json_object_is_refused),
        TEST(test_a_size_that_cannot_be_is_refused),
        TEST(test_an_end_that_cannot_be_is_refused),
        TEST(test_too_many_ends_are_refused),
        TEST(test_a_default_that_no_request_could_give_is_refused),
        TEST(test_a_configured_end_outside_the_models_vocabulary_is_refused),
        TEST(test_an_end_outside_the_configured_vocabulary_is_refused),
        TEST(test_a_file_that_is_too_large_is_not_read),
        TEST(test_what_is_no_file_is_refused),
        TEST(test_a_folder_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
