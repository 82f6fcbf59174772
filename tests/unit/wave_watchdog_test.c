/* When a group is known to be stuck; the time is a parameter. */
#include "coordinator/wave_watchdog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { RANKS = 3 };
static const int64_t QUIET_MS = 1000;
static const int64_t START_MS = 50000;

static int setup(void **state)
{
    *state = wave_watchdog_new(RANKS, QUIET_MS, START_MS);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    wave_watchdog_t *watchdog = *state;
    wave_watchdog_destroy(&watchdog);
    assert_null(watchdog);
    wave_watchdog_destroy(&watchdog);
    return 0;
}

/* One ping, answered by the ranks whose bit is set; returns what is concluded when its time is over. */
static wave_watchdog_step_t answered_by(wave_watchdog_t *watchdog, unsigned ranks, int64_t over_ms)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        if (ranks >> rank & 1)
            wave_watchdog_pong(watchdog, rank, wave_watchdog_call_id(watchdog));
    }
    return wave_watchdog_check(watchdog, true, over_ms);
}

static void test_a_group_that_shows_signs_or_is_paused_is_left_alone(void **state)
{
    wave_watchdog_t *watchdog = *state;
    for (int64_t now_ms = START_MS; now_ms < START_MS + 10 * QUIET_MS; now_ms += QUIET_MS / 2) {
        wave_watchdog_sign(watchdog, now_ms);
        assert_int_equal(wave_watchdog_check(watchdog, true, now_ms), WAVE_WATCHDOG_REST);
    }
    assert_int_equal(wave_watchdog_check(watchdog, false, START_MS + 100 * QUIET_MS), WAVE_WATCHDOG_REST);
    assert_int_equal(wave_watchdog_check(watchdog, true, START_MS + 100 * QUIET_MS + 1), WAVE_WATCHDOG_REST);
    assert_int_equal(wave_watchdog_call_id(watchdog), 0);
}

static void test_a_quiet_group_is_pinged_with_a_new_call_each_time(void **state)
{
    wave_watchdog_t *watchdog = *state;
    assert_int_equal(wave_watchdog_check(watchdog, true, START_MS + QUIET_MS - 1), WAVE_WATCHDOG_REST);
    for (int64_t ping = 1; ping <= 5; ping++) {
        assert_int_equal(wave_watchdog_check(watchdog, true, START_MS + ping * QUIET_MS), WAVE_WATCHDOG_PING);
        assert_int_equal(wave_watchdog_call_id(watchdog), ping);
        assert_int_equal(wave_watchdog_check(watchdog, true, START_MS + ping * QUIET_MS + 1),
                         WAVE_WATCHDOG_REST);
    }
}

static void test_all_or_none_is_never_stuck(void **state)
{
    wave_watchdog_t *watchdog = *state;
    int64_t now_ms = START_MS + QUIET_MS;
    assert_int_equal(wave_watchdog_check(watchdog, true, now_ms), WAVE_WATCHDOG_PING);
    for (int i = 0; i < 10; i++) {
        now_ms += QUIET_MS;
        assert_int_equal(answered_by(watchdog, i % 2 ? 7 : 0, now_ms), WAVE_WATCHDOG_PING);
    }
}

static void test_the_same_part_twice_is_stuck(void **state)
{
    wave_watchdog_t *watchdog = *state;
    for (uint32_t part = 1; part < 7; part++) {
        int64_t now_ms = START_MS + (int64_t)part * 10 * QUIET_MS;
        assert_int_equal(wave_watchdog_check(watchdog, true, now_ms), WAVE_WATCHDOG_PING);
        assert_int_equal(answered_by(watchdog, part, now_ms + QUIET_MS), WAVE_WATCHDOG_PING);
        assert_int_equal(answered_by(watchdog, part, now_ms + 2 * QUIET_MS), WAVE_WATCHDOG_STUCK);
        /* and then it is given time again */
        assert_int_equal(wave_watchdog_check(watchdog, true, now_ms + 2 * QUIET_MS + 1), WAVE_WATCHDOG_REST);
    }
}

static void test_another_part_the_second_time_is_not(void **state)
{
    wave_watchdog_t *watchdog = *state;
    int64_t now_ms = START_MS + QUIET_MS;
    assert_int_equal(wave_watchdog_check(watchdog, true, now_ms), WAVE_WATCHDOG_PING);
    for (unsigned i = 0; i < 20; i++) {
        now_ms += QUIET_MS;
        assert_int_equal(answered_by(watchdog, 1 + i % 6, now_ms), WAVE_WATCHDOG_PING);
    }
}

static void test_a_sign_between_two_pings_forgets_the_first(void **state)
{
    wave_watchdog_t *watchdog = *state;
    assert_int_equal(wave_watchdog_check(watchdog, true, START_MS + QUIET_MS), WAVE_WATCHDOG_PING);
    assert_int_equal(answered_by(watchdog, 1, START_MS + 2 * QUIET_MS), WAVE_WATCHDOG_PING);
    wave_watchdog_sign(watchdog, START_MS + 2 * QUIET_MS + 1);
    assert_int_equal(wave_watchdog_check(watchdog, true, START_MS + 4 * QUIET_MS), WAVE_WATCHDOG_PING);
    assert_int_equal(answered_by(watchdog, 1, START_MS + 5 * QUIET_MS), WAVE_WATCHDOG_PING);
}

static void test_answers_to_other_calls_and_of_other_ranks_do_not_count(void **state)
{
    wave_watchdog_t *watchdog = *state;
    assert_int_equal(wave_watchdog_check(watchdog, true, START_MS + QUIET_MS), WAVE_WATCHDOG_PING);
    for (int64_t over = 2; over < 6; over++) {
        wave_watchdog_pong(watchdog, 0, wave_watchdog_call_id(watchdog) - 1);
        wave_watchdog_pong(watchdog, RANKS, wave_watchdog_call_id(watchdog));
        assert_int_equal(wave_watchdog_check(watchdog, true, START_MS + over * QUIET_MS), WAVE_WATCHDOG_PING);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_group_that_shows_signs_or_is_paused_is_left_alone),
        TEST(test_a_quiet_group_is_pinged_with_a_new_call_each_time),
        TEST(test_all_or_none_is_never_stuck),
        TEST(test_the_same_part_twice_is_stuck),
        TEST(test_another_part_the_second_time_is_not),
        TEST(test_a_sign_between_two_pings_forgets_the_first),
        TEST(test_answers_to_other_calls_and_of_other_ranks_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
