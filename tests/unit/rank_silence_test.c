/* A rank with work that gives no sign of life is silent; one without work, or while we were stopped, is not.
 */
#include "frontend/rank_silence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LIMIT_MS 8000
#define PERIOD_MS 1000

/* Checks once per period from *now_ms on, until the rank is silent or so many periods have passed. Returns
 * the periods that passed before it was silent, or -1. */
static int checks_until_silent(rank_silence_t *silence, int64_t *now_ms, bool awaited, int periods,
                               int *questions)
{
    *questions = 0;
    for (int i = 0; i <= periods; i++, *now_ms += PERIOD_MS) {
        rank_silence_verdict_t verdict = rank_silence_check(silence, LIMIT_MS, awaited, *now_ms);
        *questions += verdict.ask;
        if (verdict.silent)
            return i;
    }
    return -1;
}

static void test_the_period_is_short_against_the_limit(void **state)
{
    (void)state;
    assert_int_equal(rank_silence_period_ms(1000), 125);
    assert_int_equal(rank_silence_period_ms(LIMIT_MS), PERIOD_MS);
    assert_int_equal(rank_silence_period_ms(86400000), 1000);
}

static void test_work_without_a_sign_of_life_is_silence_after_the_limit(void **state)
{
    (void)state;
    rank_silence_t silence = {0};
    int64_t now_ms = 500000;
    int questions;
    assert_int_equal(checks_until_silent(&silence, &now_ms, true, 100, &questions), LIMIT_MS / PERIOD_MS);
    assert_int_equal(questions, 4); /* the last one with the verdict */
}

static void test_a_rank_without_work_is_never_silent_and_never_asked(void **state)
{
    (void)state;
    rank_silence_t silence = {0};
    int64_t now_ms = 500000;
    int questions;
    assert_int_equal(checks_until_silent(&silence, &now_ms, false, 3600, &questions), -1);
    assert_int_equal(questions, 0);
}

static void test_the_silence_begins_with_the_work(void **state)
{
    (void)state;
    rank_silence_t silence = {0};
    int64_t now_ms = 500000;
    int questions;
    rank_silence_heard(&silence, now_ms);
    assert_int_equal(checks_until_silent(&silence, &now_ms, false, 100, &questions), -1);
    assert_int_equal(checks_until_silent(&silence, &now_ms, true, 100, &questions), LIMIT_MS / PERIOD_MS);
}

static void test_each_sign_of_life_begins_anew(void **state)
{
    (void)state;
    rank_silence_t silence = {0};
    int64_t now_ms = 500000;
    int questions;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(checks_until_silent(&silence, &now_ms, true, LIMIT_MS / PERIOD_MS - 2, &questions),
                         -1);
        rank_silence_heard(&silence, now_ms - PERIOD_MS);
    }
    /* the last one was a period before the first of these checks */
    assert_int_equal(checks_until_silent(&silence, &now_ms, true, 100, &questions), LIMIT_MS / PERIOD_MS - 1);
}

static void test_an_answer_to_each_question_is_enough(void **state)
{
    (void)state;
    rank_silence_t silence = {0};
    for (int64_t now_ms = 500000; now_ms < 900000; now_ms += PERIOD_MS) {
        rank_silence_verdict_t verdict = rank_silence_check(&silence, LIMIT_MS, true, now_ms);
        assert_false(verdict.silent);
        if (verdict.ask)
            rank_silence_heard(&silence, now_ms + 1);
    }
}

static void test_a_silent_rank_is_asked_on_and_on(void **state)
{
    (void)state;
    rank_silence_t silence = {0};
    int questions = 0;
    for (int64_t now_ms = 0; now_ms < 100 * (int64_t)LIMIT_MS; now_ms += PERIOD_MS)
        questions += rank_silence_check(&silence, LIMIT_MS, true, now_ms).ask;
    assert_in_range((uintmax_t)questions, 390, 400);
}

static void test_our_own_stop_is_not_the_ranks_silence(void **state)
{
    (void)state;
    rank_silence_t silence = {0};
    int64_t now_ms = 500000;
    int questions;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(checks_until_silent(&silence, &now_ms, true, 4, &questions), -1);
        now_ms += INT64_C(100) * LIMIT_MS;
    }
    assert_int_equal(checks_until_silent(&silence, &now_ms, true, 100, &questions), LIMIT_MS / PERIOD_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_period_is_short_against_the_limit),
        cmocka_unit_test(test_work_without_a_sign_of_life_is_silence_after_the_limit),
        cmocka_unit_test(test_a_rank_without_work_is_never_silent_and_never_asked),
        cmocka_unit_test(test_the_silence_begins_with_the_work),
        cmocka_unit_test(test_each_sign_of_life_begins_anew),
        cmocka_unit_test(test_an_answer_to_each_question_is_enough),
        cmocka_unit_test(test_a_silent_rank_is_asked_on_and_on),
        cmocka_unit_test(test_our_own_stop_is_not_the_ranks_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
