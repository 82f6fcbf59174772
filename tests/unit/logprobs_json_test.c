/* Rows of logprobs as JSON: which entries of a row are shown, and numbers that JSON does not have. */
#include "frontend/logprobs_json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 2, WIDTH = 4 };

/* The token of the first row is among the likeliest, that of the second is not. */
static const int32_t ids[ROWS][WIDTH] = {{5, 9, 5, 7}, {3, 1, 2, 4}};
static const float values[ROWS][WIDTH] = {{-0.5f, -0.25f, -0.5f, -3.0f}, {-INFINITY, NAN, 2.5f, INFINITY}};
static const int32_t ranks[ROWS] = {2, 41};

static wire_logprobs_t rows(void)
{
    return (wire_logprobs_t){
        .positions = ROWS,
        .width = WIDTH,
        .ids = {{(const uint8_t *)ids, sizeof ids}, false},
        .values = {{(const uint8_t *)values, sizeof values}, false},
        .ranks = {{(const uint8_t *)ranks, sizeof ranks}, false},
    };
}

static void assert_text(text_buffer_t *text, const char *expected)
{
    text_buffer_bytes(text, "", 1);
    assert_string_equal(text->data, expected);
    text_buffer_free(text);
}

#define TOP(id, value) "{\"token\":\"token_id:" id "\",\"logprob\":" value "}"
#define ENTRY(id, value, top)                                                                                \
    "{\"token\":\"token_id:" id "\",\"logprob\":" value ",\"top_logprobs\":[" top "]}"

static void assert_content(int64_t top, const char *expected)
{
    text_buffer_t text = {0};
    wire_logprobs_t logprobs = rows();
    logprobs_json_content(&text, &logprobs, top);
    assert_text(&text, expected);
}

static void test_none_of_the_likeliest_leaves_the_tokens(void **state)
{
    (void)state;
    assert_content(0, ENTRY("5", "-0.5", "") "," ENTRY("3", "-9999", ""));
}

static void test_the_token_comes_first_and_once(void **state)
{
    (void)state;
    assert_content(2, ENTRY("5", "-0.5", TOP("5", "-0.5") "," TOP("9", "-0.25")) "," //
                   ENTRY("3", "-9999", TOP("3", "-9999") "," TOP("1", "-9999")));
}

static void test_all_are_all_but_the_repeated_one(void **state)
{
    (void)state;
    static const char expected[] =
        ENTRY("5", "-0.5", TOP("5", "-0.5") "," TOP("9", "-0.25") "," TOP("7", "-3")) "," //
        ENTRY("3", "-9999",
              TOP("3", "-9999") "," TOP("1", "-9999") "," TOP("2", "2.5") "," TOP("4", "3.40282347e+38"));
    assert_content(-1, expected);
    assert_content(100, expected); /* more than there are */
}

static void test_lists_grow_in_step(void **state)
{
    (void)state;
    text_buffer_t text = {0};
    logprobs_json_lists_t lists = {0};
    wire_logprobs_t logprobs = rows();
    logprobs.positions = 1;
    logprobs_json_lists_add(&lists, &logprobs, 2);
    logprobs_json_lists_add(&lists, &logprobs, 0);
    logprobs_json_lists_write(&text, &lists);
    assert_text(&text,
                "{\"tokens\":[\"token_id:5\",\"token_id:5\"],\"token_logprobs\":[-0.5,-0.5],"
                "\"top_logprobs\":[{\"token_id:5\":-0.5,\"token_id:9\":-0.25},{}],\"text_offset\":[0,0]}");
    logprobs_json_lists_clear(&lists);
    logprobs_json_lists_write(&text, &lists);
    assert_text(&text, "{\"tokens\":[],\"token_logprobs\":[],\"top_logprobs\":[],\"text_offset\":[]}");
    logprobs_json_lists_free(&lists);
}

static void test_a_prompts_rows_have_ranks(void **state)
{
    (void)state;
    text_buffer_t text = {0};
    wire_logprobs_t logprobs = rows();
    logprobs.positions = 1;
    logprobs_json_prompt(&text, &logprobs, 3);
    assert_text(&text, ",{\"5\":{\"logprob\":-0.5,\"rank\":2,\"decoded_token\":null},"
                       "\"9\":{\"logprob\":-0.25,\"rank\":1,\"decoded_token\":null},"
                       "\"7\":{\"logprob\":-3,\"rank\":3,\"decoded_token\":null}}");
    logprobs_json_prompt(&text, &logprobs, 0);
    assert_text(&text, ",{\"5\":{\"logprob\":-0.5,\"rank\":2,\"decoded_token\":null}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none_of_the_likeliest_leaves_the_tokens),
        cmocka_unit_test(test_the_token_comes_first_and_once),
        cmocka_unit_test(test_all_are_all_but_the_repeated_one),
        cmocka_unit_test(test_lists_grow_in_step),
        cmocka_unit_test(test_a_prompts_rows_have_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
