/* What travels as a packed map: structured_outputs, extra_args, and the transfer parameters inside it. */
#include "tests/unit/generate_body_fixture.h"

/* --- structured_outputs --- */

static void test_structured_outputs_are_packed_with_their_compiler(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{'json':{'type':'object','x':[1,2.5,null]}}",
         "{'json'=>{'type'=>'object', 'x'=>[1, 2.500000, nil]}, '_backend'=>'guidance'}"},
        {"{'json':'{}'}", "{'json'=>'{}', '_backend'=>'guidance'}"},
        {"{'json':{}}", "{'json'=>{}, '_backend'=>'guidance'}"},
        {"{'regex':' '}", "{'regex'=>' ', '_backend'=>'guidance'}"},
        {"{'choice':['yes',' ']}", "{'choice'=>['yes', ' '], '_backend'=>'guidance'}"},
        {"{'grammar':'root ::= x'}", "{'grammar'=>'root ::= x', '_backend'=>'guidance'}"},
        {"{'json_object':true}", "{'json_object'=>true, '_backend'=>'guidance'}"},
        {"{'structural_tag':'[]'}", "{'structural_tag'=>'[]', '_backend'=>'guidance'}"},
        {"{'json_object':true,'regex':null,'disable_fallback':true,'disable_any_whitespace':true,"
         "'disable_additional_properties':true,'whitespace_pattern':' ?'}",
         "{'json_object'=>true, 'disable_fallback'=>true, 'disable_any_whitespace'=>true, "
         "'disable_additional_properties'=>true, 'whitespace_pattern'=>' ?', '_backend'=>'guidance'}"},
        {"{'disable_fallback':false,'disable_any_whitespace':false,'disable_additional_properties':false,"
         "'whitespace_pattern':null,'regex':'a'}",
         "{'regex'=>'a', '_backend'=>'guidance'}"}, /* defaults are left out */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char json[512];
        snprintf(json, sizeof json, SAMPLING("'structured_outputs':%s"), rows[i][0]);
        request_body_t body = taken(json);
        assert_packed(body.sampling.structured_outputs, rows[i][1]);
        request_body_free(&body);
    }
    request_body_t body = taken(SAMPLING("'structured_outputs':null"));
    assert_int_equal(body.sampling.structured_outputs.size, 0);
    request_body_free(&body);
}

/* Engines take it as text only. */
static void test_a_structural_tag_that_is_an_object_becomes_its_text(void **state)
{
    (void)state;
    static const char wanted[] = "{\"type\":\"tag\",\"n\":[1]}";
    request_body_t body = taken(SAMPLING("'structured_outputs':{'structural_tag':{'type':'tag','n':[1]}}"));
    wire_reader_t reader;
    uint32_t count;
    wire_text_t text;
    wire_reader_init(&reader, body.sampling.structured_outputs.data, body.sampling.structured_outputs.size);
    assert_true(wire_reader_map(&reader, &count) && count == 2);
    assert_true(wire_reader_text(&reader, &text) && wire_text_is(text, "structural_tag"));
    assert_true(wire_reader_text(&reader, &text) && wire_text_is(text, wanted));
    request_body_free(&body);
}

static void assert_structure_refused(const wg_config_t *config, const char *value, const char *message)
{
    char json[512];
    snprintf(json, sizeof json, SAMPLING("'structured_outputs':%s"), value);
    const bad_body_t bad = INVALID(json, "sampling_params.structured_outputs", message);
    assert_refused_by(config, &bad, 1);
}

static void test_structured_outputs_have_exactly_one_kind(void **state)
{
    (void)state;
    static const char *const values[] = {
        "{}",
        "{'json':null}",
        "{'disable_fallback':true}",
        "{'json':'{}','regex':'a'}",
        "{'choice':['a'],'json_object':true}",
    };
    for (size_t i = 0; i < COUNT_OF(values); i++)
        assert_structure_refused(model(), values[i],
                                 "must have exactly one of json, regex, choice, grammar,");
}

static void test_structured_outputs_of_another_type_are_refused(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"[]", "must be an object"},
        {"'json'", "must be an object"},
        {"true", "must be an object"},
        {"{'json':''}", "json must be a JSON schema"},
        {"{'json':' \\n'}", "json must be a JSON schema"},
        {"{'json':[]}", "json must be a JSON schema"},
        {"{'json':true}", "json must be a JSON schema"},
        {"{'regex':''}", "regex must be a string that is not empty"},
        {"{'regex':1}", "regex must be a string that is not empty"},
        {"{'choice':[]}", "choice must be an array of strings"},
        {"{'choice':'a'}", "choice must be an array of strings"},
        {"{'choice':['a',1]}", "choice must be an array of strings"},
        {"{'choice':['']}", "choice must be an array of strings"},
        {"{'grammar':'\\t'}", "grammar must be a string that is not blank"},
        {"{'grammar':{}}", "grammar must be a string that is not blank"},
        {"{'json_object':false}", "json_object must be true"},
        {"{'json_object':1}", "json_object must be true"},
        {"{'structural_tag':['a']}", "structural_tag must be an object, or a string"},
        {"{'structural_tag':''}", "structural_tag must be an object, or a string"},
        {"{'regex':'a','disable_fallback':0}", "disable_fallback must be true or false"},
        {"{'regex':'a','disable_any_whitespace':'x'}", "disable_any_whitespace must be true or false"},
        {"{'regex':'a','disable_additional_properties':[]}", "disable_additional_properties must be true"},
        {"{'regex':'a','whitespace_pattern':''}", "whitespace_pattern must be a string that is not empty"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_structure_refused(model(), rows[i][0], rows[i][1]);
    ASSERT_REFUSED(UNSUPPORTED(SAMPLING("'structured_outputs':{'regex':'a','_backend':'x'}"), "_backend",
                               "unsupported field `_backend` in structured_outputs"));
}

static void test_a_kind_that_the_compiler_lacks_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *backend;
        const char *kinds; /* that it has: c choice, g grammar, o json_object, t structural_tag */
    } rows[] = {
        {"guidance", "cgot"},
        {"xgrammar", "got"},
        {"outlines", "c"},
        {"lm-format-enforcer", "co"},
    };
    static const char *const kinds[][2] = {
        {"c", "{'choice':['a']}"},
        {"g", "{'grammar':'x'}"},
        {"o", "{'json_object':true}"},
        {"t", "{'structural_tag':'{}'}"},
    };
    for (size_t i = 0; i < COUNT_OF(rows) * COUNT_OF(kinds); i++) {
        const char *const *kind = kinds[i % COUNT_OF(kinds)];
        char backend[32];
        char json[256];
        wg_config_t config = *model();
        snprintf(backend, sizeof backend, "%s", rows[i / COUNT_OF(kinds)].backend);
        config.model.structured_outputs_backend = backend;
        if (strstr(rows[i / COUNT_OF(kinds)].kinds, kind[0])) {
            snprintf(json, sizeof json, SAMPLING("'structured_outputs':%s"), kind[1]);
            request_body_t body = taken_by(&config, json);
            request_body_free(&body);
        } else {
            assert_structure_refused(&config, kind[1], "is nothing that the engines'");
        }
    }
}

/* --- extra_args --- */

static void test_extra_args_are_free_form(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{'a':[1,-1,0.5,'x',true,false,null,{},[]],'':{'b':{'c':9223372036854775807}}}",
         "{'a'=>[1, -1, 0.500000, 'x', true, false, nil, {}, []], ''=>{'b'=>{'c'=>9223372036854775807}}}"},
        {"{'kv_transfer_params':{'x':1}}", "{'kv_transfer_params'=>{'x'=>1}}"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char json[512];
        snprintf(json, sizeof json, SAMPLING("'extra_args':%s"), rows[i][0]);
        request_body_t body = taken(json);
        assert_packed(body.sampling.extra_args, rows[i][1]);
        request_body_free(&body);
    }
    request_body_t body = taken(SAMPLING("'extra_args':{}"));
    assert_int_equal(body.sampling.extra_args.size, 0);
    request_body_free(&body);
    ASSERT_REFUSED(INVALID(SAMPLING("'extra_args':[]"), "sampling_params.extra_args", "must be an object"),
                   INVALID(SAMPLING("'extra_args':'a'"), "sampling_params.extra_args", "must be an object"));
}

static void test_transfer_params_travel_in_extra_args(void **state)
{
    (void)state;
    request_body_t body = taken(BODY("'kv_transfer_params':{'do_remote_decode':true},"
                                     "'ec_transfer_params':{},'sampling_params':{'extra_args':{'a':1}}"));
    assert_packed(body.sampling.extra_args,
                  "{'a'=>1, 'kv_transfer_params'=>{'do_remote_decode'=>true}, 'ec_transfer_params'=>{}}");
    request_body_free(&body);
    body = taken(BODY("'ec_transfer_params':{'x':null}"));
    assert_packed(body.sampling.extra_args, "{'ec_transfer_params'=>{'x'=>nil}}");
    request_body_free(&body);
}

static void test_transfer_params_are_given_once(void **state)
{
    (void)state;
    ASSERT_REFUSED(
        INVALID(BODY("'kv_transfer_params':{},'sampling_params':{'extra_args':{'kv_transfer_params':{}}}"),
                "kv_transfer_params", "is in extra_args, too"),
        INVALID(BODY("'sampling_params':{'extra_args':{'ec_transfer_params':null}},'ec_transfer_params':{}"),
                "ec_transfer_params", "is in extra_args, too"),
        INVALID(BODY("'kv_transfer_params':[]"), "kv_transfer_params", "must be an object"),
        INVALID(BODY("'ec_transfer_params':'x'"), "ec_transfer_params", "must be an object"));
}

/* The buffer grows while they are packed; the pointers are taken afterwards. */
static void test_all_packed_values_are_there_at_once(void **state)
{
    (void)state;
    enum { LONG = 5000 };
    char *json = malloc(LONG * 6 + 512);
    assert_non_null(json);
    size_t size = (size_t)sprintf(json, "{'token_ids':[5");
    for (unsigned i = 1; i < LONG; i++)
        size += (size_t)sprintf(json + size, ",%u", 10000 + i);
    sprintf(json + size,
            "],'kv_transfer_params':{'k':1},'sampling_params':{'structured_outputs':{'regex':'a'},"
            "'repetition_detection':{},'extra_args':{'e':2}}}");
    request_body_t body = taken(json);
    assert_int_equal(body.prompts[0].count, LONG);
    assert_int_equal(body.prompts[0].packed.data[0], 5);
    assert_packed(body.sampling.structured_outputs, "{'regex'=>'a', '_backend'=>'guidance'}");
    assert_packed(body.sampling.repetition_detection,
                  "{'max_pattern_size'=>0, 'min_pattern_size'=>0, 'min_count'=>0}");
    assert_packed(body.sampling.extra_args, "{'e'=>2, 'kv_transfer_params'=>{'k'=>1}}");
    request_body_free(&body);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structured_outputs_are_packed_with_their_compiler),
        cmocka_unit_test(test_a_structural_tag_that_is_an_object_becomes_its_text),
        cmocka_unit_test(test_structured_outputs_have_exactly_one_kind),
        cmocka_unit_test(test_structured_outputs_of_another_type_are_refused),
        cmocka_unit_test(test_a_kind_that_the_compiler_lacks_is_refused),
        cmocka_unit_test(test_extra_args_are_free_form),
        cmocka_unit_test(test_transfer_params_travel_in_extra_args),
        cmocka_unit_test(test_transfer_params_are_given_once),
        cmocka_unit_test(test_all_packed_values_are_there_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
