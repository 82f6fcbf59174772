/* The body of POST /v1/completions: what it has besides the fields of the generate route, which are read by
 * the same tables (generate_body*_test.c). */
#include "tests/unit/generate_body_fixture.h"

#define PROMPT(members) "{'prompt':[1]," members "}"

static void test_a_prompt_is_enough(void **state)
{
    (void)state;
    request_body_t body = taken("{'prompt':[0,31999,5]}");
    static const uint32_t prompt[] = {0, 31999, 5};
    assert_int_equal(body.prompt_count, 1);
    assert_prompt(&body, 0, prompt, COUNT_OF(prompt));
    assert_int_equal(body.sampling.max_tokens, 16); /* OpenAI's */
    assert_false(body.has_max_tokens || body.stream);
    assert_int_equal(body.n, 1);
    request_body_free(&body);
}

static void test_openais_max_tokens_go_before_configured_ones(void **state)
{
    (void)state;
    wg_config_t config = *model();
    config.defaults.max_tokens = 500;
    config.defaults.temperature = 0.25;
    request_body_t body = taken_by(&config, PROMPT("'max_tokens':null"));
    assert_int_equal(body.sampling.max_tokens, 16);
    assert_float_equal(body.sampling.temperature, 0.25, 0.0);
    request_body_free(&body);
    body = taken_by(&config, PROMPT("'max_tokens':17"));
    assert_int_equal(body.sampling.max_tokens, 17);
    assert_true(body.has_max_tokens);
    request_body_free(&body);
}

static void test_every_field_is_taken(void **state)
{
    (void)state;
    request_body_t body = taken(
        "{'model':'sql','prompt':[7],'n':2,'best_of':2,'stream':true,"
        "'stream_options':{'include_usage':true,'continuous_usage_stats':true},'logprobs':5,'echo':false,"
        "'suffix':'','stop':[],'temperature':0.5,'top_p':0.25,'presence_penalty':-1,"
        "'frequency_penalty':1,'logit_bias':{'7':-1},'seed':11,'user':'me','max_tokens':9}");
    assert_int_equal(body.adapter->id, 3);
    assert_int_equal(body.n, 2);
    assert_true(body.stream && body.include_usage && body.continuous_usage && body.sampling.has_seed);
    assert_int_equal(body.sampling.logprobs, 5);
    assert_float_equal(body.sampling.temperature, 0.5, 0.0);
    assert_float_equal(body.sampling.top_p, 0.25, 0.0);
    assert_float_equal(body.sampling.presence_penalty, -1.0, 0.0);
    assert_float_equal(body.sampling.frequency_penalty, 1.0, 0.0);
    assert_int_equal(body.sampling.logit_bias[0].id, 7);
    assert_int_equal(body.sampling.seed, 11);
    assert_int_equal(body.sampling.max_tokens, 9);
    request_body_free(&body);
}

static void test_vllms_further_fields_stand_beside_openais(void **state)
{
    (void)state;
    request_body_t body =
        taken("{'prompt':[7],'top_k':5,'min_p':0.5,'repetition_penalty':1.5,'stop_token_ids':[9],"
              "'ignore_eos':true,'min_tokens':3,'allowed_token_ids':[4],'structured_outputs':{'regex':'a'},"
              "'skip_special_tokens':false,'spaces_between_special_tokens':false,'prompt_logprobs':2,"
              "'request_id':'r-1','priority':-1,'cache_salt':'s','data_parallel_rank':1,"
              "'kv_transfer_params':{'x':1},'deadline_ms':5,'return_token_ids':true,"
              "'return_tokens_as_token_ids':false,'add_special_tokens':true,'bad_words':[]}");
    assert_int_equal(body.sampling.top_k, 5);
    assert_float_equal(body.sampling.min_p, 0.5, 0.0);
    assert_float_equal(body.sampling.repetition_penalty, 1.5, 0.0);
    assert_int_equal(body.sampling.all_stop_token_ids[0], 9);
    assert_int_equal(body.sampling.stop_count, 1);
    assert_true(body.sampling.ignore_eos && body.has_rank);
    assert_int_equal(body.sampling.min_tokens, 3);
    assert_int_equal(body.sampling.allowed_token_ids.ids[0], 4);
    assert_packed(body.sampling.structured_outputs, "{'regex'=>'a', '_backend'=>'guidance'}");
    assert_int_equal(body.sampling.prompt_logprobs, 2);
    assert_true(wire_text_is(body.request_id, "r-1") && wire_text_is(body.cache_salt, "s"));
    assert_int_equal(body.priority, -1);
    assert_int_equal(body.deadline_ms, 5);
    assert_packed(body.sampling.extra_args, "{'kv_transfer_params'=>{'x'=>1}}");
    request_body_free(&body);
}

/* --- prompts --- */

static void test_several_prompts_are_taken_in_order(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{'prompt':[[1,2],[31999],[3,4,5],[0]]}", "{'prompt' : [ [ 1 , 2 ] , [ 31999 ] , [3,4,5], [0] ] }",
        "{'pr\\u006fmpt':[[1,2],[31999],[3,4,5],[0]]}", /* as jansson reads it */
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        request_body_t body = taken(texts[i]);
        assert_int_equal(body.prompt_count, 4); /* the limit */
        assert_prompt(&body, 0, (const uint32_t[]){1, 2}, 2);
        assert_prompt(&body, 1, (const uint32_t[]){31999}, 1);
        assert_prompt(&body, 2, (const uint32_t[]){3, 4, 5}, 3);
        assert_prompt(&body, 3, (const uint32_t[]){0}, 1);
        request_body_free(&body);
    }
    request_body_t body = taken("{'prompt':[[1],[-0]]}"); /* scanned as far as the -0, which is 0 */
    assert_int_equal(body.prompt_count, 2);
    assert_prompt(&body, 0, (const uint32_t[]){1}, 1);
    assert_prompt(&body, 1, (const uint32_t[]){0}, 1);
    request_body_free(&body);
    body = taken("{'prompt':[[6]]}");
    assert_int_equal(body.prompt_count, 1);
    assert_prompt(&body, 0, (const uint32_t[]){6}, 1);
    request_body_free(&body);
}

static void test_more_prompts_than_the_limit_are_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED(INVALID("{'prompt':[[1],[2],[3],[4],[5]]}", "prompt", "has 5 prompts, the limit is 4"));
}

/* Too many values for jansson to be asked what is wrong. */
static void test_a_long_list_of_prompts_is_refused_for_what_is_wrong(void **state)
{
    (void)state;
    enum { PROMPTS = 6, LONG = 20001 };
    static const struct {
        size_t prompts;
        const char *message;
    } rows[] = {{PROMPTS, "has more than 4 prompts, the limit"}, {4, NULL}};
    char *json = malloc(PROMPTS * LONG * 2 + 64);
    assert_non_null(json);
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        size_t size = (size_t)sprintf(json, "{\"prompt\":[");
        for (size_t i = 0; i < rows[row].prompts; i++) {
            size += (size_t)sprintf(json + size, "%s[1", i > 0 ? "," : "");
            for (size_t k = 1; k < LONG; k++) {
                json[size++] = ',';
                json[size++] = '7';
            }
            json[size++] = ']';
        }
        size += (size_t)sprintf(json + size, "]}");
        if (rows[row].message) {
            const bad_body_t bad = INVALID("(long prompts)", "prompt", rows[row].message);
            assert_refused_bytes(model(), json, size, &bad);
            continue;
        }
        request_body_t body;
        assert_int_equal(completions_body_parse(&body, model(), json, size, NULL), WG_OK);
        assert_int_equal(body.prompts[3].count, LONG);
        request_body_free(&body);
    }
    free(json);
}

static void test_what_is_no_prompt_is_refused(void **state)
{
    (void)state;
    static const char *const none[] = {
        "{}",           "{'prompt':null}", "{'prompt':[]}",   "{'prompt':[[]]}",   "{'prompt':[[1],[]]}",
        "{'prompt':5}", "{'prompt':{}}",   "{'prompt':true}", "{'prompt':[[1],2]}"};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        const bad_body_t bad =
            INVALID(none[i], "prompt", "must be an array of at least one token id, or an array");
        assert_refused_by(model(), &bad, 1);
    }
    ASSERT_REFUSED(INVALID("{'prompt':[1,[2]]}", "prompt", "element 1 must be an integer"),
                   INVALID("{'prompt':[null]}", "prompt", "element 0 must be an integer"),
                   INVALID("{'prompt':[1,'a']}", "prompt", "element 1 must be an integer"),
                   INVALID("{'prompt':[[[1]]]}", "prompt", "element 0 must be an integer"),
                   INVALID("{'prompt':[[1],[2,1.5]]}", "prompt", "element 1 must be an integer"),
                   INVALID("{'prompt':[[1],[-1]]}", "prompt", "element 0 is -1, but must be from 0 to 31999"),
                   INVALID("{'prompt':[[1],[32000]]}", "prompt", "element 0 is 32000, but must be"),
                   INVALID("{'prompt':[99999999999999999999]}", "prompt", "integers have 64 bits"));
}

static void test_a_text_prompt_is_told_where_to_tokenize(void **state)
{
    (void)state;
    ASSERT_REFUSED(INVALID("{'prompt':'hello'}", "prompt", "text is not tokenized here"),
                   INVALID("{'prompt':''}", "prompt", "text is not tokenized here"),
                   INVALID("{'prompt':['a','b']}", "prompt", "use vLLM's /tokenize"));
}

/* --- the other fields --- */

static void test_errors_name_fields_as_they_were_written(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        INVALID(PROMPT("'temperature':3"), "temperature", "temperature: must be a number from 0 to 2"),
        INVALID(PROMPT("'max_tokens':0"), "max_tokens", "max_tokens: must be an integer, at least 1"),
        INVALID(PROMPT("'min_tokens':17"), "min_tokens", "min_tokens: must be at most max_tokens = 16"),
        INVALID(PROMPT("'n':2,'temperature':0"), "n", "n: must be 1"),
        INVALID(PROMPT("'n':9"), "n", "n: must be an integer from 1 to 8"),
        INVALID(PROMPT("'logprobs':21"), "logprobs", "logprobs: must be an integer from 0 to 20"),
        INVALID(PROMPT("'logprobs':true"), "logprobs", "must be an integer from 0 to 20"),
        INVALID(PROMPT("'stream':true,'prompt_logprobs':1"), "prompt_logprobs", "cannot go with"),
        INVALID(PROMPT("'structured_outputs':{}"), "structured_outputs", "exactly one of"),
        INVALID(PROMPT("'seed':9223372036854775807,'n':2"), "seed", "is too large"),
        INVALID(PROMPT("'user':5"), "user", "must be a string"),
        INVALID(PROMPT("'return_token_ids':1"), "return_token_ids", "must be true or false"),
        INVALID(PROMPT("'return_tokens_as_token_ids':'x'"), "return_tokens_as_token_ids", "true or"),
        INVALID(PROMPT("'stream_options':{}"), "stream_options", "needs \"stream\": true"),
        {PROMPT("'model':'gpt'"), WG_E_MODEL_NOT_FOUND, "model", "the model `gpt` does not exist"});
}

static void test_the_best_of_n_are_all_n(void **state)
{
    (void)state;
    static const char *const good[] = {PROMPT("'best_of':1"), PROMPT("'best_of':null,'n':3"),
                                       PROMPT("'best_of':3,'n':3"), PROMPT("'best_of':1,'n':null")};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        request_body_t body = taken(good[i]);
        request_body_free(&body);
    }
    ASSERT_REFUSED(INVALID(PROMPT("'best_of':2"), "best_of", "must be the same as n"),
                   INVALID(PROMPT("'n':2,'best_of':1"), "best_of", "must be the same as n"),
                   INVALID(PROMPT("'n':2,'best_of':2.0"), "best_of", "must be the same as n"),
                   INVALID(PROMPT("'best_of':'1'"), "best_of", "must be the same as n"));
}

static void test_what_is_about_text_is_unsupported(void **state)
{
    (void)state;
    request_body_t body = taken(PROMPT("'echo':null,'suffix':null,'stop':null,'user':null"));
    request_body_free(&body);
    ASSERT_REFUSED(UNSUPPORTED(PROMPT("'echo':true"), "echo", "unsupported field `echo`"),
                   UNSUPPORTED(PROMPT("'echo':''"), "echo", "unsupported field `echo`"),
                   UNSUPPORTED(PROMPT("'suffix':'end'"), "suffix", "unsupported field `suffix`"),
                   UNSUPPORTED(PROMPT("'suffix':false"), "suffix", "unsupported field `suffix`"),
                   UNSUPPORTED(PROMPT("'stop':['a']"), "stop", "unsupported field `stop`"),
                   UNSUPPORTED(PROMPT("'stop':'a'"), "stop", "unsupported field `stop`"));
}

static void test_unknown_fields_are_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        UNSUPPORTED(PROMPT("'sampling_params':{}"), "sampling_params",
                    "unsupported field `sampling_params` in"),
        UNSUPPORTED(PROMPT("'token_ids':[1]"), "token_ids", "unsupported field `token_ids` in"),
        UNSUPPORTED(PROMPT("'features':null"), "features", "unsupported field `features` in"),
        UNSUPPORTED(PROMPT("'messages':[]"), "messages", "unsupported field `messages` in the request body"),
        INVALID("{'prompt':[1],'prompt':[2]}", "body", "a key is there twice"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_prompt_is_enough),
        cmocka_unit_test(test_openais_max_tokens_go_before_configured_ones),
        cmocka_unit_test(test_every_field_is_taken),
        cmocka_unit_test(test_vllms_further_fields_stand_beside_openais),
        cmocka_unit_test(test_several_prompts_are_taken_in_order),
        cmocka_unit_test(test_more_prompts_than_the_limit_are_refused),
        cmocka_unit_test(test_a_long_list_of_prompts_is_refused_for_what_is_wrong),
        cmocka_unit_test(test_what_is_no_prompt_is_refused),
        cmocka_unit_test(test_a_text_prompt_is_told_where_to_tokenize),
        cmocka_unit_test(test_errors_name_fields_as_they_were_written),
        cmocka_unit_test(test_the_best_of_n_are_all_n),
        cmocka_unit_test(test_what_is_about_text_is_unsupported),
        cmocka_unit_test(test_unknown_fields_are_refused),
    };
    parse_body = completions_body_parse;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
