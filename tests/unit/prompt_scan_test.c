/* The pass over a body's text before jansson sees it. Texts end where their block ends, so that the sanitizer
 * sees a read behind them. */
#include "common/wire_reader.h"
#include "frontend/prompt_scan.h"
#include "tests/unit/json_text.h"

#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const prompt_scan_rules_t flat = {"token_ids", false, 4, 32000, 32};
static const prompt_scan_rules_t nested = {"prompt", true, 4, 32000, 32};

typedef struct {
    prompt_scan_t scan;
    msgpack_sbuffer packed;
    wg_error_t error;
    wg_status_t status;
} scanned_t;

static scanned_t scan_bytes(const prompt_scan_rules_t *rules, const char *text, size_t size)
{
    scanned_t out = {0};
    msgpack_sbuffer_init(&out.packed);
    out.status = prompt_scan(&out.scan, rules, text, size, &out.packed, &out.error);
    return out;
}

static scanned_t scan(const prompt_scan_rules_t *rules, const char *json)
{
    char *text = json_text(json);
    scanned_t out = scan_bytes(rules, text, strlen(json));
    free(text); /* nothing points into it */
    return out;
}

static void done(scanned_t *scanned)
{
    prompt_scan_free(&scanned->scan);
    msgpack_sbuffer_destroy(&scanned->packed);
}

static void assert_span(const scanned_t *scanned, size_t at, const uint32_t *ids, size_t count)
{
    wire_reader_t reader;
    int64_t id = -1;
    assert_in_range(at + 1, 1, scanned->scan.span_count);
    const prompt_span_t *span = &scanned->scan.spans[at];
    assert_int_equal(span->count, count);
    wire_reader_init(&reader, scanned->packed.data + span->start, span->size);
    for (size_t i = 0; i < count; i++) {
        assert_true(wire_reader_int(&reader, &id));
        assert_int_equal(id, ids[i]);
    }
    assert_int_equal(wire_reader_finish(&reader, "span", NULL), WG_OK);
}

/* What jansson is to parse: the text with the string in the place of `cut`. */
static void assert_rest(const scanned_t *scanned, const char *before, const char *behind)
{
    const text_buffer_t *rest = &scanned->scan.rest;
    char *head = json_text(before);
    char *tail = json_text(behind);
    assert_true(scanned->scan.is_cut);
    assert_int_equal(rest->size, strlen(before) + PROMPT_SCAN_MARK_SIZE + strlen(behind));
    assert_int_equal(scanned->scan.cut_at, strlen(before));
    assert_memory_equal(rest->data, head, strlen(before));
    assert_memory_equal(rest->data + rest->size - strlen(behind), tail, strlen(behind));
    const char *mark = rest->data + strlen(before);
    assert_true(mark[0] == '"' && mark[PROMPT_SCAN_MARK_SIZE - 1] == '"');
    assert_true(prompt_scan_is_mark(mark + 1, PROMPT_SCAN_MARK_SIZE - 2));
    free(head);
    free(tail);
}

static void test_an_array_of_ids_is_cut_out(void **state)
{
    (void)state;
    scanned_t scanned = scan(&flat, "{'a':[1],'token_ids':[0,127,128,255,256,31999],'b':{}}");
    assert_int_equal(scanned.status, WG_OK);
    assert_rest(&scanned, "{'a':[1],'token_ids':", ",'b':{}}");
    assert_int_equal(scanned.scan.cut_size, strlen("[0,127,128,255,256,31999]"));
    assert_span(&scanned, 0, (const uint32_t[]){0, 127, 128, 255, 256, 31999}, 6);
    assert_int_equal(scanned.scan.span_count, 1);
    done(&scanned);
}

static void test_blanks_may_stand_anywhere(void **state)
{
    (void)state;
    scanned_t scanned = scan(&flat, " {\n'token_ids' \t:\r\n [ 1 ,\n2\t]\r}");
    assert_rest(&scanned, " {\n'token_ids' \t:\r\n ", "\r}");
    assert_span(&scanned, 0, (const uint32_t[]){1, 2}, 2);
    done(&scanned);
}

static void test_several_arrays_are_cut_out_where_they_may_be(void **state)
{
    (void)state;
    scanned_t scanned = scan(&nested, "{'prompt':[[1,2], [3] ,[4]]}");
    assert_rest(&scanned, "{'prompt':", "}");
    assert_int_equal(scanned.scan.span_count, 3);
    assert_span(&scanned, 0, (const uint32_t[]){1, 2}, 2);
    assert_span(&scanned, 1, (const uint32_t[]){3}, 1);
    assert_span(&scanned, 2, (const uint32_t[]){4}, 1);
    done(&scanned);
    scanned = scan(&nested, "{'prompt':[5]}");
    assert_int_equal(scanned.scan.span_count, 1);
    assert_span(&scanned, 0, (const uint32_t[]){5}, 1);
    done(&scanned);
    scanned = scan(&flat, "{'token_ids':[[1,2]]}");
    assert_int_equal(scanned.status, WG_OK);
    assert_false(scanned.scan.is_cut);
    done(&scanned);
    scanned = scan(&nested, "{'prompt':[[1],[2],[-3]]}"); /* two were sound */
    assert_false(scanned.scan.is_cut);
    assert_int_equal(scanned.scan.span_count, 0);
    assert_int_equal(scanned.packed.size, 0);
    done(&scanned);
}

/* Whatever else it is, jansson sees all of it. */
static void test_what_is_no_array_of_ids_is_left_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[",
        "{'token_ids'",
        "{'token_ids':",
        "{'token_ids':[",
        "{'token_ids':[1",
        "{'token_ids':[1,",
        "{'token_ids':[1,]}",
        "{'token_ids':[,1]}",
        "{'token_ids':[1 2]}",
        "{'token_ids':[]}",
        "{'token_ids':[-1]}",
        "{'token_ids':[-0]}",
        "{'token_ids':[+1]}",
        "{'token_ids':[01]}",
        "{'token_ids':[00]}",
        "{'token_ids':[1.0]}",
        "{'token_ids':[1e0]}",
        "{'token_ids':[0x1]}",
        "{'token_ids':['1']}",
        "{'token_ids':[true]}",
        "{'token_ids':[null]}",
        "{'token_ids':[32000]}",
        "{'token_ids':[4294967296]}",
        "{'token_ids':[99999999999]}",
        "{'token_ids':[18446744073709551617]}", /* 1 in 64 bits */
        "{'token_ids':[100000000000000000000000000000001]}",
        "{'token_ids':'x'}",
        "{'token_ids':{'a':[1]}}",
        "{'token\\u005fids':[1]}",
        "{'token_idsx':[1]}",
        "{'token_id':[1]}",
        "{'xtoken_ids':[1]}",
        "{'a':{'token_ids':[1]}}",
        "[{'token_ids':[1]}]",
        "'token_ids':[1]",
        "{'a':'token_ids','b':[1]}",
        "{'a':'\\'token_ids\\':[1]'}",
        "{'token_ids",
        "{'token_ids\\",
        "{'token_ids':[1]\\'",
    };
    for (size_t i = 0; i < COUNT_OF(texts) - 1; i++) {
        scanned_t scanned = scan(&flat, texts[i]);
        if (scanned.status != WG_OK || scanned.scan.is_cut || scanned.scan.span_count != 0 ||
            scanned.packed.size != 0)
            fail_msg("not left alone: %s", texts[i]);
        done(&scanned);
    }
    /* That it is no JSON behind the array is for jansson to see in the rest. */
    scanned_t scanned = scan(&flat, texts[COUNT_OF(texts) - 1]);
    assert_rest(&scanned, "{'token_ids':", "\\'");
    done(&scanned);
}

static void test_quotes_in_strings_do_not_end_them(void **state)
{
    (void)state;
    scanned_t scanned = scan(&flat, "{'a':'\\'','token_ids':[1]}");
    assert_rest(&scanned, "{'a':'\\'','token_ids':", "}");
    done(&scanned);
    scanned = scan(&flat, "{'\\\\\\'[':'\\\\','token_ids':[1]}");
    assert_rest(&scanned, "{'\\\\\\'[':'\\\\','token_ids':", "}");
    done(&scanned);
}

static void test_only_the_first_array_is_cut_out(void **state)
{
    (void)state;
    scanned_t scanned = scan(&flat, "{'token_ids':[1],'token_ids':[2]}");
    assert_rest(&scanned, "{'token_ids':", ",'token_ids':[2]}");
    assert_int_equal(scanned.scan.span_count, 1);
    done(&scanned);
}

static void test_the_string_in_its_place_is_the_same_in_a_process(void **state)
{
    (void)state;
    scanned_t first = scan(&flat, "{'token_ids':[1]}");
    scanned_t second = scan(&flat, "{'token_ids':[2]}");
    assert_int_equal(first.scan.rest.size, second.scan.rest.size);
    assert_memory_equal(first.scan.rest.data, second.scan.rest.data, first.scan.rest.size);
    assert_false(prompt_scan_is_mark("", 0));
    assert_false(prompt_scan_is_mark("0000000000000000000000000000000", 31));
    assert_false(prompt_scan_is_mark("00000000000000000000000000000000", 32));
    done(&first);
    done(&second);
}

/* --- bounds --- */

static scanned_t scan_nest(const char *open, size_t depth, const char *close)
{
    char text[512];
    size_t size = 0;
    for (size_t i = 0; i < depth; i++)
        size += (size_t)sprintf(text + size, "%s", open);
    for (size_t i = 0; i < depth; i++)
        size += (size_t)sprintf(text + size, "%s", close);
    return scan_bytes(&flat, text, size);
}

static void test_nesting_is_bounded(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"[", "]"}, {"{\"a\":", "}"}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        scanned_t scanned = scan_nest(pairs[i][0], 32, pairs[i][1]);
        assert_int_equal(scanned.status, WG_OK);
        done(&scanned);
        scanned = scan_nest(pairs[i][0], 33, pairs[i][1]);
        assert_int_equal(scanned.status, WG_E_INVALID_REQUEST);
        assert_string_equal(scanned.error.message, "body: is nested deeper than 32, the limit");
        done(&scanned);
    }
}

static void test_brackets_in_strings_do_not_nest(void **state)
{
    (void)state;
    scanned_t scanned = scan(&flat, "{'a':'[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\\','b\\'[[[[':1}");
    assert_int_equal(scanned.status, WG_OK);
    done(&scanned);
    scanned = scan(&flat, "{'a':1}]]]]{{'token_ids':[1]"); /* more ends than beginnings */
    assert_int_equal(scanned.status, WG_OK);
    assert_false(scanned.scan.is_cut);
    done(&scanned);
}

/* `count` values in one member. */
static scanned_t scan_many(const prompt_scan_rules_t *rules, const char *head, const char *value,
                           size_t count)
{
    char *text = malloc(strlen(head) + count * (strlen(value) + 1) + 8);
    assert_non_null(text);
    size_t size = (size_t)sprintf(text, "%s", head);
    for (size_t i = 0; i < count; i++)
        size += (size_t)sprintf(text + size, "%s%s", i > 0 ? "," : "[", value);
    size += (size_t)sprintf(text + size, "]}");
    scanned_t out = scan_bytes(rules, text, size);
    free(text);
    return out;
}

static void test_values_besides_the_prompt_are_bounded(void **state)
{
    (void)state;
    enum { LONG = 200000 }; /* more than that bound */
    /* the object, the array, and one for each comma */
    scanned_t scanned = scan_many(&flat, "{\"a\":", "0", PROMPT_SCAN_VALUES_MAX - 1);
    assert_int_equal(scanned.status, WG_OK);
    done(&scanned);
    scanned = scan_many(&flat, "{\"a\":", "0", PROMPT_SCAN_VALUES_MAX);
    assert_int_equal(scanned.status, WG_E_INVALID_REQUEST);
    assert_string_equal(scanned.error.param, "body");
    assert_string_equal(scanned.error.message,
                        "body: has more than 100000 values besides the prompt, the limit");
    done(&scanned);
    scanned = scan_many(&flat, "{\"a\":", "[]", PROMPT_SCAN_VALUES_MAX / 2);
    assert_int_equal(scanned.status, WG_E_INVALID_REQUEST);
    done(&scanned);
    scanned = scan_many(&flat, "{\"token_ids\":", "31999", LONG);
    assert_int_equal(scanned.status, WG_OK);
    assert_true(scanned.scan.is_cut);
    assert_int_equal(scanned.scan.spans[0].count, LONG);
    done(&scanned);
}

/* jansson is never asked, so the scanner says itself what is wrong. */
static void test_an_array_too_long_for_jansson_is_the_one_to_name(void **state)
{
    (void)state;
    scanned_t scanned = scan_many(&flat, "{\"token_ids\":", "32000", PROMPT_SCAN_VALUES_MAX);
    assert_int_equal(scanned.status, WG_E_INVALID_REQUEST);
    assert_string_equal(scanned.error.param, "token_ids");
    assert_string_equal(scanned.error.message, "token_ids: element 0 must be an integer from 0 to 31999");
    done(&scanned);
    scanned = scan_many(&nested, "{\"prompt\":", "[7]", PROMPT_SCAN_VALUES_MAX);
    assert_int_equal(scanned.status, WG_E_INVALID_REQUEST);
    assert_string_equal(scanned.error.message, "prompt: has more than 4 prompts, the limit");
    done(&scanned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_array_of_ids_is_cut_out),
        cmocka_unit_test(test_blanks_may_stand_anywhere),
        cmocka_unit_test(test_several_arrays_are_cut_out_where_they_may_be),
        cmocka_unit_test(test_what_is_no_array_of_ids_is_left_alone),
        cmocka_unit_test(test_quotes_in_strings_do_not_end_them),
        cmocka_unit_test(test_only_the_first_array_is_cut_out),
        cmocka_unit_test(test_the_string_in_its_place_is_the_same_in_a_process),
        cmocka_unit_test(test_nesting_is_bounded),
        cmocka_unit_test(test_brackets_in_strings_do_not_nest),
        cmocka_unit_test(test_values_besides_the_prompt_are_bounded),
        cmocka_unit_test(test_an_array_too_long_for_jansson_is_the_one_to_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
