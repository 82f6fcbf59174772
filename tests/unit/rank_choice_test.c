/* Which of the ready ranks gets the next request. */
#include "frontend/rank_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static rank_choice_candidate_t loaded(uint32_t clients, size_t in_flight, int64_t waiting, int64_t running,
                                      double usage)
{
    return (rank_choice_candidate_t){
        .ready = true,
        .client_count = clients,
        .in_flight = in_flight,
        .has_load = true,
        .load = {.waiting = waiting, .running = running, .kv_cache_usage = usage},
    };
}

static rank_choice_candidate_t unknown(uint32_t clients, size_t in_flight)
{
    return (rank_choice_candidate_t){.ready = true, .client_count = clients, .in_flight = in_flight};
}

static void assert_score(rank_choice_candidate_t candidate, double expected)
{
    assert_float_equal(rank_choice_score(&candidate), expected, 1e-9);
}

static void test_the_score_is_the_larger_of_own_and_reported(void **state)
{
    (void)state;
    assert_score(loaded(1, 3, 0, 0, 0.0), 3.0);
    assert_score(loaded(2, 3, 0, 0, 0.0), 6.0); /* the other frontend is taken to send as much */
    assert_score(loaded(2, 3, 1, 4, 0.0), 6.0);
    assert_score(loaded(2, 3, 1, 8, 0.0), 9.0);
    assert_score(loaded(2, 0, 1, 8, 0.0), 9.0);
    assert_score(loaded(1, 1, 0, INT64_MAX, 0.0), 9223372036854775807.0);
}

static void test_what_waits_at_a_full_cache_weighs_more(void **state)
{
    (void)state;
    assert_score(loaded(2, 0, 4, 1, 0.5), 5.0);
    assert_score(loaded(2, 0, 4, 1, 0.49), 5.0);
    assert_score(loaded(2, 0, 4, 1, 0.75), 5.0 + 4.0 * 6.0 * 0.25);
    assert_score(loaded(2, 0, 4, 1, 1.0), 5.0 + 4.0 * 6.0 * 0.5);
    assert_score(loaded(2, 0, 0, 5, 1.0), 5.0); /* nothing waits */
    assert_score(loaded(2, 10, 1, 1, 1.0), 20.0 + 3.0);
}

static void test_an_unknown_load_counts_as_none(void **state)
{
    (void)state;
    assert_score(unknown(1, 0), 0.0);
    assert_score(unknown(3, 2), 6.0);
    rank_choice_candidate_t stale = loaded(3, 2, 50, 50, 1.0);
    stale.has_load = false;
    assert_score(stale, 6.0);
}

/* The coordinator publishes zeros for a rank that has never reported. */
static void test_published_zeros_count_as_unknown(void **state)
{
    (void)state;
    for (uint32_t clients = 1; clients < 4; clients++) {
        for (size_t in_flight = 0; in_flight < 4; in_flight++) {
            rank_choice_candidate_t nothing = unknown(clients, in_flight);
            assert_score(loaded(clients, in_flight, 0, 0, 0.0), rank_choice_score(&nothing));
        }
    }
}

/* An idle rank's last report can show a request that has ended since (protocol.md 9). */
static void test_the_only_frontend_knows_that_its_rank_is_idle(void **state)
{
    (void)state;
    assert_score(loaded(1, 0, 2, 9, 1.0), 0.0);
    assert_score(loaded(1, 1, 2, 9, 0.0), 11.0);
    assert_score(loaded(2, 0, 2, 9, 0.0), 11.0);
}

static void test_the_smallest_score_wins_wherever_the_scan_starts(void **state)
{
    (void)state;
    const rank_choice_candidate_t candidates[] = {loaded(2, 0, 0, 5, 0.0), loaded(2, 1, 0, 1, 0.0),
                                                  loaded(2, 0, 0, 3, 0.0)};
    for (uint32_t start = 0; start < 10; start++) {
        uint32_t turn = start;
        assert_int_equal(rank_choice_pick(candidates, COUNT_OF(candidates), &turn), 1);
    }
}

static void test_ties_rotate(void **state)
{
    (void)state;
    const rank_choice_candidate_t candidates[] = {unknown(1, 0), unknown(1, 0), unknown(1, 0)};
    uint32_t turn = 4; /* it starts anywhere */
    static const int64_t expected[] = {1, 2, 0, 1, 2, 0, 1};
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        assert_int_equal(rank_choice_pick(candidates, COUNT_OF(candidates), &turn), expected[i]);
}

static void test_ties_rotate_among_the_best_only(void **state)
{
    (void)state;
    rank_choice_candidate_t candidates[] = {unknown(1, 0), unknown(1, 1), unknown(1, 0)};
    uint32_t turn = 0;
    for (int i = 0; i < 6; i++)
        assert_int_equal(rank_choice_pick(candidates, COUNT_OF(candidates), &turn), i % 2 == 0 ? 0 : 2);
    candidates[2].ready = false;
    for (int i = 0; i < 6; i++)
        assert_int_equal(rank_choice_pick(candidates, COUNT_OF(candidates), &turn), 0);
}

static void test_the_turn_may_be_any_number(void **state)
{
    (void)state;
    const rank_choice_candidate_t candidates[] = {unknown(1, 0), unknown(1, 0), unknown(1, 0)};
    uint32_t turn = UINT32_MAX; /* a multiple of 3 */
    assert_int_equal(rank_choice_pick(candidates, COUNT_OF(candidates), &turn), 0);
    assert_int_equal(rank_choice_pick(candidates, COUNT_OF(candidates), &turn), 1);
}

static void test_without_a_ready_rank_there_is_no_choice(void **state)
{
    (void)state;
    rank_choice_candidate_t candidates[] = {unknown(1, 0), unknown(1, 0)};
    uint32_t turn = 1;
    candidates[0].ready = false;
    candidates[1].ready = false;
    assert_int_equal(rank_choice_pick(candidates, COUNT_OF(candidates), &turn), -1);
    assert_int_equal(rank_choice_pick(candidates, 0, &turn), -1);
    assert_int_equal(rank_choice_pick(NULL, 0, &turn), -1);
    assert_int_equal(turn, 1);
    candidates[1].ready = true;
    assert_int_equal(rank_choice_pick(candidates, COUNT_OF(candidates), &turn), 1);
}

/* Sends so many requests to four ranks of unknown load; afterwards each must have `each` of them. */
static void assert_levels(const size_t in_flight[4], uint32_t clients, uint32_t turn, int requests,
                          size_t each)
{
    rank_choice_candidate_t *candidates = calloc(4, sizeof *candidates);
    assert_non_null(candidates);
    for (size_t rank = 0; rank < 4; rank++)
        candidates[rank] = unknown(clients, in_flight[rank]);
    for (int i = 0; i < requests; i++)
        candidates[rank_choice_pick(candidates, 4, &turn)].in_flight++;
    for (size_t rank = 0; rank < 4; rank++)
        assert_int_equal(candidates[rank].in_flight, each);
    free(candidates);
}

/* Case B024: a burst before any stats. */
static void test_a_burst_over_unknown_ranks_spreads_evenly(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < 4; turn++)
        assert_levels((const size_t[]){0, 0, 0, 0}, 1, turn, 40, 10);
}

static void test_a_burst_levels_what_was_uneven(void **state)
{
    (void)state;
    assert_levels((const size_t[]){9, 0, 4, 0}, 2, 2, 27, 10);
}

/* A rank whose coordinator is silent must not look better or worse than an idle one. */
static void test_an_unknown_rank_is_as_good_as_an_idle_one(void **state)
{
    (void)state;
    rank_choice_candidate_t candidates[] = {unknown(2, 0), loaded(2, 0, 0, 0, 0.0)};
    uint32_t turn = 0;
    for (int i = 0; i < 20; i++)
        candidates[rank_choice_pick(candidates, COUNT_OF(candidates), &turn)].in_flight++;
    assert_int_equal(candidates[0].in_flight, 10);
    assert_int_equal(candidates[1].in_flight, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_score_is_the_larger_of_own_and_reported),
        cmocka_unit_test(test_what_waits_at_a_full_cache_weighs_more),
        cmocka_unit_test(test_an_unknown_load_counts_as_none),
        cmocka_unit_test(test_published_zeros_count_as_unknown),
        cmocka_unit_test(test_the_only_frontend_knows_that_its_rank_is_idle),
        cmocka_unit_test(test_the_smallest_score_wins_wherever_the_scan_starts),
        cmocka_unit_test(test_ties_rotate),
        cmocka_unit_test(test_ties_rotate_among_the_best_only),
        cmocka_unit_test(test_the_turn_may_be_any_number),
        cmocka_unit_test(test_without_a_ready_rank_there_is_no_choice),
        cmocka_unit_test(test_a_burst_over_unknown_ranks_spreads_evenly),
        cmocka_unit_test(test_a_burst_levels_what_was_uneven),
        cmocka_unit_test(test_an_unknown_rank_is_as_good_as_an_idle_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
