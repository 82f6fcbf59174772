/* The rows of protocol.md 7 with the five rules of design.md 4; tests/explorer has every order of them. */
#include "coordinator/wave.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { NOTHING = 0, TOLD = WAVE_SAVE | WAVE_PUBLISH, WOKEN = WAVE_SAVE | WAVE_START | WAVE_PUBLISH };

static void assert_wave(const wave_t *wave, int64_t current, bool running, bool observed)
{
    assert_int_equal(wave->current_wave, current);
    assert_int_equal(wave->running, running);
    assert_int_equal(wave->observed, observed);
}

static void test_a_notice_wakes_a_paused_group_at_the_current_wave(void **state)
{
    (void)state;
    for (int64_t known = 2; known <= 3; known++) { /* B012 */
        wave_t wave = {.current_wave = 3};
        assert_int_equal(wave_on_notice(&wave, known), WOKEN);
        assert_wave(&wave, 3, true, false);
        assert_int_equal(wave_on_notice(&wave, known), NOTHING);
        assert_wave(&wave, 3, true, false);
    }
}

static void test_a_frontend_that_knows_a_later_wave_is_believed(void **state)
{
    (void)state;
    wave_t wave = {.current_wave = 1, .running = true};
    assert_int_equal(wave_on_notice(&wave, 4), WOKEN);
    assert_wave(&wave, 4, true, false);
    assert_int_equal(wave_on_join(&wave, 4), NOTHING);
    assert_int_equal(wave_on_join(&wave, 6), WOKEN);
    assert_wave(&wave, 6, true, false);
    wave = (wave_t){.current_wave = 1};
    assert_int_equal(wave_on_join(&wave, 2), TOLD);
    assert_wave(&wave, 2, false, false);
}

static void test_a_complete_wave_pauses_at_the_next(void **state)
{
    (void)state;
    wave_t wave = {.current_wave = 2, .running = true, .observed = true};
    assert_int_equal(wave_on_complete(&wave, 1), NOTHING);
    assert_wave(&wave, 2, true, true);
    assert_int_equal(wave_on_complete(&wave, 2), TOLD);
    assert_wave(&wave, 3, false, false);
    assert_int_equal(wave_on_complete(&wave, 7), TOLD);
    assert_wave(&wave, 8, false, false);
    assert_int_equal(wave_on_complete(&wave, INT64_MAX), NOTHING); /* there is no next one */
}

static void test_start_wave_of_a_rank_wakes(void **state)
{
    (void)state;
    wave_t wave = {.current_wave = 5};
    assert_int_equal(wave_on_start(&wave, 0), NOTHING); /* B018 */
    assert_wave(&wave, 5, false, false);
    assert_int_equal(wave_on_start(&wave, 5), WOKEN);
    assert_wave(&wave, 5, true, true);
    assert_int_equal(wave_on_start(&wave, 5), NOTHING);
    assert_int_equal(wave_on_start(&wave, 6), WOKEN);
    assert_wave(&wave, 6, true, true);
}

static void test_work_in_a_paused_group_is_evidence(void **state)
{
    (void)state;
    wave_t wave = {.current_wave = 5};
    assert_int_equal(wave_on_report(&wave, 5, 0, 0), NOTHING);
    assert_int_equal(wave_on_report(&wave, 4, 1, 1), NOTHING); /* of the wave before */
    assert_wave(&wave, 5, false, false);
    assert_int_equal(wave_on_report(&wave, 5, 1, 0), WOKEN);
    assert_wave(&wave, 5, true, false); /* a held rank would say the same */
    assert_int_equal(wave_on_report(&wave, 5, 0, 1), NOTHING);
    assert_wave(&wave, 5, true, true);
    assert_int_equal(wave_on_report(&wave, 5, 1, 0), NOTHING);
    assert_wave(&wave, 5, true, true); /* what was seen stays seen */
    assert_int_equal(wave_on_report(&wave, 7, 0, 0), NOTHING);
    assert_wave(&wave, 5, true, true);
    assert_int_equal(wave_on_report(&wave, 7, 1, 0), WOKEN); /* of a wave whose end we have missed */
    assert_wave(&wave, 7, true, false);
    wave = (wave_t){.current_wave = 5};
    assert_int_equal(wave_on_report(&wave, 5, 0, 1), WOKEN);
    assert_wave(&wave, 5, true, true);
}

static void test_a_prediction_is_no_observation(void **state)
{
    (void)state; /* B013 */
    wave_t wave = {0};
    assert_int_equal(wave_on_notice(&wave, 0), WOKEN);
    assert_wave(&wave, 0, true, false);
    assert_int_equal(wave_on_repeat(&wave), WAVE_START);
    assert_wave(&wave, 0, true, false);
    assert_int_equal(wave_on_report(&wave, 0, 0, 1), NOTHING);
    assert_wave(&wave, 0, true, true);
}

static void test_only_a_running_group_is_told_again(void **state)
{
    (void)state;
    wave_t wave = {.current_wave = 3};
    assert_int_equal(wave_on_repeat(&wave), NOTHING);
    for (int64_t current = 3; current < 6; current++) {
        assert_int_equal(wave_on_start(&wave, current), WOKEN);
        assert_int_equal(wave_on_repeat(&wave), WAVE_START); /* as often as it is asked */
        assert_int_equal(wave_on_repeat(&wave), WAVE_START);
        assert_wave(&wave, current, true, true);
        assert_int_equal(wave_on_complete(&wave, current), TOLD);
        assert_int_equal(wave_on_repeat(&wave), NOTHING);
    }
}

static void test_after_a_restart_the_first_complete_wave_may_be_old(void **state)
{
    (void)state;
    wave_t wave;
    assert_int_equal(wave_restore(&wave, 3), WOKEN);
    assert_wave(&wave, 3, true, false);
    assert_int_equal(wave_on_complete(&wave, 3), WOKEN);
    assert_wave(&wave, 4, true, false);
    assert_int_equal(wave_on_complete(&wave, 4), TOLD);
    assert_wave(&wave, 5, false, false);
    assert_int_equal(wave_restore(&wave, 3), WOKEN);
    assert_int_equal(wave_on_complete(&wave, 2), NOTHING); /* older than the file: says nothing */
    assert_wave(&wave, 3, true, false);
    assert_int_equal(wave_on_complete(&wave, 6), WOKEN);
    assert_wave(&wave, 7, true, false);
}

static void test_a_group_that_was_just_started_is_paused(void **state)
{
    (void)state;
    wave_t wave;
    wave_restore(&wave, 3);
    assert_int_equal(wave_group_started(&wave), TOLD);
    assert_wave(&wave, 3, false, false);
    assert_int_equal(wave_on_notice(&wave, 3), WOKEN);
    assert_int_equal(wave_on_complete(&wave, 3), TOLD); /* nothing is assumed any more */
    assert_wave(&wave, 4, false, false);
}

static void test_a_stuck_group_is_raised_by_one(void **state)
{
    (void)state;
    wave_t wave = {.current_wave = 3, .running = true, .observed = true};
    assert_int_equal(wave_raise(&wave), WOKEN);
    assert_wave(&wave, 4, true, false);
    wave.current_wave = INT64_MAX;
    assert_int_equal(wave_raise(&wave), NOTHING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_notice_wakes_a_paused_group_at_the_current_wave),
        cmocka_unit_test(test_a_frontend_that_knows_a_later_wave_is_believed),
        cmocka_unit_test(test_a_complete_wave_pauses_at_the_next),
        cmocka_unit_test(test_start_wave_of_a_rank_wakes),
        cmocka_unit_test(test_work_in_a_paused_group_is_evidence),
        cmocka_unit_test(test_a_prediction_is_no_observation),
        cmocka_unit_test(test_only_a_running_group_is_told_again),
        cmocka_unit_test(test_after_a_restart_the_first_complete_wave_may_be_old),
        cmocka_unit_test(test_a_group_that_was_just_started_is_paused),
        cmocka_unit_test(test_a_stuck_group_is_raised_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
