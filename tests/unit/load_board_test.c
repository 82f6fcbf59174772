/* The queues of the ranks, and when they are to be published; the time is a parameter. */
#include "coordinator/load_board.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { RANKS = 3, START_MS = 1000000 }; /* a machine has been up for a while */

static int setup(void **state)
{
    *state = load_board_new(RANKS, false);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    load_board_t *board = *state;
    load_board_destroy(&board);
    assert_null(board);
    load_board_destroy(&board);
    return 0;
}

static void report(load_board_t *board, uint32_t rank, int64_t waiting, int64_t running, int64_t now_ms)
{
    const wire_stats_t stats = {.waiting = waiting, .running = running, .kv_cache_usage = 0.25};
    load_board_report(board, rank, &stats, now_ms);
}

static void assert_load(load_board_t *board, uint32_t rank, int64_t waiting, int64_t running, double usage)
{
    const wire_load_t *load = &load_board_loads(board)[rank];
    assert_int_equal(load->waiting, waiting);
    assert_int_equal(load->running, running);
    assert_float_equal(load->kv_cache_usage, usage, 0.0);
}

static void test_a_new_board_is_all_zero(void **state)
{
    load_board_t *board = *state;
    assert_int_equal(load_board_count(board), RANKS);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_load(board, rank, 0, 0, 0.0);
        assert_int_equal(load_board_age_ms(board, rank, START_MS), -1);
    }
}

static void test_a_report_is_of_one_rank(void **state)
{
    load_board_t *board = *state;
    report(board, 1, 4, 7, START_MS);
    assert_load(board, 0, 0, 0, 0.0);
    assert_load(board, 1, 4, 7, 0.25);
    assert_load(board, 2, 0, 0, 0.0);
    assert_int_equal(load_board_age_ms(board, 1, START_MS), 0);
    assert_int_equal(load_board_age_ms(board, 1, START_MS + 1234), 1234);
    assert_int_equal(load_board_age_ms(board, 0, START_MS), -1);
    report(board, 1, 0, 1, START_MS + 50);
    assert_load(board, 1, 0, 1, 0.25);
    assert_int_equal(load_board_age_ms(board, 1, START_MS + 60), 10);
}

static void test_a_lost_rank_has_nothing_waiting(void **state)
{
    load_board_t *board = *state;
    report(board, 1, 4, 7, START_MS);
    (void)load_board_publish(board, START_MS);
    load_board_clear(board, 1);
    assert_load(board, 1, 0, 0, 0.0);
    assert_int_equal(load_board_age_ms(board, 1, START_MS + 10), -1);
    assert_int_equal(load_board_due_ms(board, START_MS), LOAD_BOARD_CHANGED_MS); /* which is a change */
}

/* --- when to publish --- */

static void test_the_first_publish_is_due_at_once(void **state)
{
    load_board_t *board = *state;
    assert_int_equal(load_board_due_ms(board, START_MS), 0);
    report(board, 0, 1, 1, START_MS);
    assert_int_equal(load_board_due_ms(board, START_MS), 0);
}

static void test_changed_counts_wait_100_ms_from_the_last_publish(void **state)
{
    load_board_t *board = *state;
    (void)load_board_publish(board, START_MS);
    report(board, 0, 1, 1, START_MS + 30);
    assert_int_equal(load_board_due_ms(board, START_MS + 30), 70);
    assert_int_equal(load_board_due_ms(board, START_MS + 99), 1);
    assert_int_equal(load_board_due_ms(board, START_MS + 100), 0);
    assert_int_equal(load_board_due_ms(board, START_MS + 5000), 0);
    (void)load_board_publish(board, START_MS + 100);
    assert_int_equal(load_board_due_ms(board, START_MS + 100), LOAD_BOARD_REFRESH_MS);
}

static void test_a_change_after_a_quiet_time_is_due_at_once(void **state)
{
    load_board_t *board = *state;
    (void)load_board_publish(board, START_MS);
    assert_int_equal(load_board_due_ms(board, START_MS + 700), 4300);
    report(board, 0, 1, 1, START_MS + 700);
    assert_int_equal(load_board_due_ms(board, START_MS + 700), 0);
}

static void test_unchanged_counts_are_refreshed_every_5_s(void **state)
{
    load_board_t *board = *state;
    report(board, 0, 1, 1, START_MS);
    (void)load_board_publish(board, START_MS);
    for (int64_t now_ms = START_MS; now_ms < START_MS + 5000; now_ms += 500) {
        report(board, 0, 1, 1, now_ms); /* the same again is no change */
        assert_int_equal(load_board_due_ms(board, now_ms), START_MS + 5000 - now_ms);
    }
    assert_int_equal(load_board_due_ms(board, START_MS + 5000), 0);
    (void)load_board_publish(board, START_MS + 5000);
    assert_int_equal(load_board_due_ms(board, START_MS + 5000), 5000);
}

static void test_each_number_is_a_change(void **state)
{
    load_board_t *board = *state;
    static const wire_stats_t steps[] = {
        {.waiting = 1},
        {.waiting = 1, .running = 1},
        {.waiting = 1, .running = 1, .kv_cache_usage = 0.001},
        {.waiting = 1, .running = 1, .kv_cache_usage = 0.0},
        {.waiting = 0, .running = 1},
        {.waiting = 0, .running = 0},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        (void)load_board_publish(board, START_MS);
        load_board_report(board, 2, &steps[i], START_MS);
        assert_int_equal(load_board_due_ms(board, START_MS), LOAD_BOARD_CHANGED_MS);
    }
    (void)load_board_publish(board, START_MS); /* these are not published, so they do not count */
    const wire_stats_t wave = {.step_counter = 9, .current_wave = 4};
    load_board_report(board, 2, &wave, START_MS);
    assert_int_equal(load_board_due_ms(board, START_MS), LOAD_BOARD_REFRESH_MS);
}

/* A timer that each report would start anew would never fire (protocol.md 8). */
static void test_a_steady_stream_of_reports_does_not_starve_the_publishes(void **state)
{
    load_board_t *board = *state;
    int publishes = 0;
    (void)load_board_publish(board, START_MS);
    for (int64_t now_ms = START_MS + 1; now_ms <= START_MS + 10000; now_ms++) {
        report(board, (uint32_t)(now_ms % RANKS), now_ms % 17, 1, now_ms);
        if (load_board_due_ms(board, now_ms) > 0)
            continue;
        (void)load_board_publish(board, now_ms);
        publishes++;
    }
    assert_int_equal(publishes, 100); /* every 100 ms, neither more nor less */
}

static void test_a_change_and_its_reverse_are_published(void **state)
{
    load_board_t *board = *state;
    (void)load_board_publish(board, START_MS);
    report(board, 0, 1, 0, START_MS + 10);
    report(board, 0, 0, 0, START_MS + 20);
    assert_in_range((uintmax_t)load_board_due_ms(board, START_MS + 20), 1, LOAD_BOARD_CHANGED_MS);
}

static int setup_lockstep(void **state)
{
    *state = load_board_new(RANKS, true);
    return *state ? 0 : -1;
}

static bool stamped(load_board_t *board, uint32_t rank, int64_t running, int64_t wave, int64_t step,
                    int64_t now_ms)
{
    const wire_stats_t stats = {.running = running, .current_wave = wave, .step_counter = step};
    return load_board_report(board, rank, &stats, now_ms);
}

/* One rank's new numbers are not mixed with another's old ones (protocol.md 8). */
static void test_a_lockstep_group_is_published_as_of_a_step(void **state)
{
    load_board_t *board = *state;
    (void)load_board_publish(board, START_MS);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        assert_true(stamped(board, rank, 10 + rank, 0, 1, START_MS + 1));
    assert_true(stamped(board, 0, 20, 0, 2, START_MS + 90)); /* step 2 has begun; rank 1 and 2 are slower */
    assert_int_equal(load_board_due_ms(board, START_MS + 100), 0);
    const wire_load_t *published = load_board_publish(board, START_MS + 100);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        assert_int_equal(published[rank].running, 10 + rank);
    /* what has come of step 2 is told, too, once the step is over */
    assert_true(stamped(board, 1, 21, 0, 2, START_MS + 110));
    assert_true(stamped(board, 2, 22, 0, 2, START_MS + 110));
    assert_int_equal(load_board_due_ms(board, START_MS + 200), 0);
    published = load_board_publish(board, START_MS + 200);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        assert_int_equal(published[rank].running, 20 + rank);
    assert_int_equal(load_board_due_ms(board, START_MS + 200), LOAD_BOARD_REFRESH_MS);
}

static void test_a_step_that_has_just_begun_is_given_time(void **state)
{
    load_board_t *board = *state;
    (void)load_board_publish(board, START_MS);
    assert_true(stamped(board, 0, 1, 0, 1, START_MS + 90));
    assert_int_equal(load_board_due_ms(board, START_MS + 100), LOAD_BOARD_SETTLE_MS - 10);
    assert_int_equal(load_board_due_ms(board, START_MS + 90 + LOAD_BOARD_SETTLE_MS), 0);
}

static void test_a_report_is_stale_only_against_its_own_rank(void **state)
{
    load_board_t *board = *state;
    assert_true(stamped(board, 0, 5, 1, 7, START_MS));
    assert_true(stamped(board, 1, 6, 1, 3, START_MS)); /* a slower link: older than rank 0's, and news */
    assert_load(board, 1, 0, 6, 0.0);
    assert_false(stamped(board, 0, 9, 1, 6, START_MS));
    assert_false(stamped(board, 0, 9, 0, 99, START_MS));
    assert_load(board, 0, 0, 5, 0.0);
    assert_true(stamped(board, 0, 8, 2, 0, START_MS)); /* the next wave counts its steps from 0 */
    assert_load(board, 0, 0, 8, 0.0);
    load_board_clear(board, 0);
    assert_true(stamped(board, 0, 1, 0, 0, START_MS)); /* so does a restarted engine */
    assert_load(board, 0, 0, 1, 0.0);
}

static void test_steps_without_news_do_not_starve_the_refresh(void **state)
{
    load_board_t *board = *state;
    int publishes = 0;
    (void)load_board_publish(board, START_MS);
    for (int64_t now_ms = START_MS + 1; now_ms <= START_MS + 10000; now_ms++) {
        assert_true(stamped(board, (uint32_t)(now_ms % RANKS), 0, 0, now_ms - START_MS, now_ms));
        if (load_board_due_ms(board, now_ms) > 0)
            continue;
        (void)load_board_publish(board, now_ms);
        publishes++;
    }
    assert_int_equal(publishes, 2);
}

int main(void)
{
#define LOCKSTEP(name) cmocka_unit_test_setup_teardown(name, setup_lockstep, teardown)
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_new_board_is_all_zero),
        TEST(test_a_report_is_of_one_rank),
        TEST(test_a_lost_rank_has_nothing_waiting),
        TEST(test_the_first_publish_is_due_at_once),
        TEST(test_changed_counts_wait_100_ms_from_the_last_publish),
        TEST(test_a_change_after_a_quiet_time_is_due_at_once),
        TEST(test_unchanged_counts_are_refreshed_every_5_s),
        TEST(test_each_number_is_a_change),
        TEST(test_a_steady_stream_of_reports_does_not_starve_the_publishes),
        TEST(test_a_change_and_its_reverse_are_published),
        LOCKSTEP(test_a_lockstep_group_is_published_as_of_a_step),
        LOCKSTEP(test_a_step_that_has_just_begun_is_given_time),
        LOCKSTEP(test_a_report_is_stale_only_against_its_own_rank),
        LOCKSTEP(test_steps_without_news_do_not_starve_the_refresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
