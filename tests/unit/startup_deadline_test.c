/* Which ranks are late when the limit for the start is over, and what is said of each. */
#include "coordinator/startup_deadline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { BEGAN_MS = 5000, LIMIT_MS = 3000, OVER_MS = BEGAN_MS + LIMIT_MS };

typedef struct {
    wg_config_t config;
    rank_table_t *table;
    startup_deadline_t *deadline;
    int completions; /* how often a change was the last one that was missing */
} fixture_t;

static const wire_text_t no_hash = {NULL, 0};

static void on_changed(void *context, uint32_t rank, wg_rank_state_t before)
{
    fixture_t *f = context;
    f->completions += startup_deadline_rank_changed(f->deadline, rank, before);
}

static fixture_t *fixture_of(uint32_t ranks, bool lockstep)
{
    fixture_t *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->config.ranks.lockstep = lockstep;
    f->config.timeouts.startup_ms = LIMIT_MS;
    strcpy(f->config.coordinator.handshake.address, "tcp://here:29550");
    assert_int_equal(rank_table_new(&f->table, ranks, false, on_changed, f, NULL), WG_OK);
    f->deadline = startup_deadline_new(&f->config, f->table, BEGAN_MS);
    assert_non_null(f->deadline);
    return f;
}

static void end(fixture_t *f)
{
    startup_deadline_destroy(&f->deadline);
    assert_null(f->deadline);
    startup_deadline_destroy(&f->deadline);
    rank_table_destroy(&f->table);
    free(f);
}

static void hello(fixture_t *f, uint32_t rank, int64_t now_ms)
{
    assert_int_equal(rank_table_hello(f->table, rank, now_ms, NULL), WG_OK);
}

static void enroll(fixture_t *f, uint32_t rank, int64_t now_ms)
{
    hello(f, rank, now_ms);
    assert_int_equal(rank_table_register(f->table, rank, (wire_bytes_t){NULL, 0}, now_ms, NULL), WG_OK);
    rank_table_route(f->table, rank, true, now_ms);
}

static void bring_up(fixture_t *f, uint32_t rank, int64_t now_ms)
{
    enroll(f, rank, now_ms);
    assert_int_equal(rank_table_ready(f->table, rank, no_hash, now_ms, NULL), WG_OK);
}

/* What is said at OVER_MS. NULL: nothing. */
static void assert_fault(const fixture_t *f, startup_phase_t phase, uint64_t subscriptions,
                         wg_status_t status, const char *message)
{
    wg_error_t error = {0};
    assert_int_equal(startup_deadline_fault(f->deadline, phase, subscriptions, OVER_MS, &error),
                     message != NULL);
    assert_int_equal(error.status, status);
    assert_string_equal(error.message, message ? message : "");
}

static void assert_only(const fixture_t *f, startup_phase_t phase, uint64_t subscriptions, wg_status_t status,
                        const char *message)
{
    for (startup_phase_t other = 0; other < STARTUP_PHASE_COUNT; other++) {
        if (other == phase)
            assert_fault(f, phase, subscriptions, status, message);
        else
            assert_fault(f, other, subscriptions, WG_OK, NULL);
    }
}

static void ranks_of_one_phase_are_named_in_one_error(void **state)
{
    (void)state;
    fixture_t *f = fixture_of(10, false);
    hello(f, 2, OVER_MS - 2500);
    hello(f, 3, OVER_MS - 1000);
    hello(f, 9, OVER_MS - 1500);
    enroll(f, 4, OVER_MS - 1000);
    enroll(f, 5, OVER_MS - 2999);
    rank_table_route(f->table, 5, false, OVER_MS - 20);
    bring_up(f, 6, OVER_MS - 10);
    rank_table_route(f->table, 7, true, OVER_MS - 10);
    assert_fault(
        f, STARTUP_NOT_SEEN, 0, WG_E_HANDSHAKE_TIMEOUT,
        "startup handshake timed out while waiting for HELLO of ranks [0-1, 8] after 3 s; nobody has "
        "dialled tcp://here:29550 for them");
    assert_fault(
        f, STARTUP_FROM_BEFORE, 0, WG_E_HANDSHAKE_TIMEOUT,
        "startup handshake timed out while waiting for HELLO of ranks [7] after 3 s; their engines were "
        "connected before this coordinator started, and do not answer: they are at the startup gate, "
        "or stuck");
    assert_fault(
        f, STARTUP_LEFT, 0, WG_E_HANDSHAKE_TIMEOUT,
        "startup handshake timed out while waiting for HELLO of ranks [5] after 3 s; their engines were "
        "lost 0 s ago, before they were ready");
    assert_fault(
        f, STARTUP_LOADING, 0, WG_E_INPUT_REGISTRATION_TIMEOUT,
        "no input registration from ranks [2-3, 9] after 3 s; their HELLO came 1 to 2 s ago: they load, "
        "or are stuck");
    assert_fault(f, STARTUP_REGISTERED, 0, WG_E_HANDSHAKE_TIMEOUT,
                 "startup handshake timed out while waiting for READY of ranks [4] after 3 s; they have "
                 "registered; their HELLO came 1 s ago");
    assert_fault(f, STARTUP_AT_GATE, 0, WG_OK, NULL);
    assert_fault(f, STARTUP_SUBSCRIBING, 0, WG_OK, NULL);
    end(f);
}

static void in_a_lockstep_group_the_ranks_at_the_gate_are_not_to_blame(void **state)
{
    (void)state;
    fixture_t *f = fixture_of(3, true);
    enroll(f, 0, BEGAN_MS);
    enroll(f, 2, BEGAN_MS);
    assert_fault(
        f, STARTUP_NOT_SEEN, 2, WG_E_HANDSHAKE_TIMEOUT,
        "startup handshake timed out while waiting for HELLO of ranks [1] after 3 s; nobody has dialled "
        "tcp://here:29550 for them");
    assert_fault(f, STARTUP_AT_GATE, 2, WG_E_HANDSHAKE_TIMEOUT,
                 "startup handshake timed out while waiting for READY of ranks [0, 2] after 3 s; they have "
                 "registered and wait at the startup gate for the other ranks");
    enroll(f, 1, BEGAN_MS);
    assert_only(
        f, STARTUP_SUBSCRIBING, 2, WG_E_HANDSHAKE_TIMEOUT,
        "startup handshake timed out while waiting for subscriptions of ranks [0-2] after 3 s; all have "
        "registered, but only 2 of 3 have subscribed");
    assert_only(f, STARTUP_REGISTERED, 3, WG_E_HANDSHAKE_TIMEOUT,
                "startup handshake timed out while waiting for READY of ranks [0-2] after 3 s; they have "
                "registered; their HELLO came 3 s ago");
    end(f);
}

static void it_passes_at_the_limit_and_only_while_ranks_are_missing(void **state)
{
    (void)state;
    fixture_t *f = fixture_of(2, false);
    assert_false(startup_deadline_passed(f->deadline, OVER_MS - 1));
    assert_true(startup_deadline_passed(f->deadline, OVER_MS));
    bring_up(f, 1, BEGAN_MS);
    assert_int_equal(startup_deadline_missing(f->deadline), 1);
    assert_true(startup_deadline_passed(f->deadline, OVER_MS));
    assert_int_equal(f->completions, 0);
    bring_up(f, 0, OVER_MS + 1);
    assert_int_equal(f->completions, 1);
    assert_false(startup_deadline_passed(f->deadline, OVER_MS + 2));
    end(f);
}

static void without_a_limit_it_never_passes(void **state)
{
    (void)state;
    fixture_t *f = fixture_of(2, false);
    f->config.timeouts.startup_ms = 0;
    f->config.timeouts.on_startup_timeout = CONFIG_STARTUP_EXIT;
    assert_false(startup_deadline_passed(f->deadline, INT64_MAX));
    assert_false(startup_deadline_ends(f->deadline, INT64_MAX));
    end(f);
}

static void a_rank_that_is_lost_later_has_started(void **state)
{
    (void)state;
    fixture_t *f = fixture_of(1, false);
    bring_up(f, 0, BEGAN_MS);
    rank_table_route(f->table, 0, false, BEGAN_MS + 1);
    hello(f, 0, BEGAN_MS + 2);
    assert_false(startup_deadline_passed(f->deadline, OVER_MS));
    assert_only(f, STARTUP_PHASE_COUNT, 0, WG_OK, NULL);
    assert_int_equal(rank_table_ready(f->table, 0, no_hash, BEGAN_MS + 3, NULL), WG_OK);
    assert_int_equal(f->completions, 1); /* it is said once */
    end(f);
}

static void it_ends_the_process_only_where_that_is_configured(void **state)
{
    (void)state;
    fixture_t *f = fixture_of(1, false);
    assert_false(startup_deadline_ends(f->deadline, OVER_MS));
    f->config.timeouts.on_startup_timeout = CONFIG_STARTUP_EXIT;
    assert_false(startup_deadline_ends(f->deadline, OVER_MS - 1));
    assert_true(startup_deadline_ends(f->deadline, OVER_MS));
    end(f);
}

static void beside_a_rank_that_ran_before_it_never_ends_the_process(void **state)
{
    (void)state;
    fixture_t *f = fixture_of(2, false);
    f->config.timeouts.on_startup_timeout = CONFIG_STARTUP_EXIT;
    rank_table_route(f->table, 1, true, BEGAN_MS);
    rank_table_answered(f->table, 1, BEGAN_MS + 1);
    assert_int_equal(rank_table_get(f->table, 1)->state, WG_RANK_READY);
    assert_true(startup_deadline_passed(f->deadline, OVER_MS));
    assert_false(startup_deadline_ends(f->deadline, OVER_MS));
    end(f);
}

static void what_a_frontend_knew_of_a_rank_before_us_is_that_it_has_started(void **state)
{
    (void)state;
    fixture_t *f = fixture_of(4, false);
    f->config.timeouts.on_startup_timeout = CONFIG_STARTUP_EXIT;
    hello(f, 3, BEGAN_MS);
    startup_deadline_learned(f->deadline, 0, WG_RANK_ABSENT);
    startup_deadline_learned(f->deadline, 1, WG_RANK_HELLO);
    startup_deadline_learned(f->deadline, 3, WG_RANK_LOST); /* its predecessor, of whom we knew */
    assert_int_equal(startup_deadline_missing(f->deadline), 4);
    assert_true(startup_deadline_ends(f->deadline, OVER_MS));
    startup_deadline_learned(f->deadline, 1, WG_RANK_LOST);
    startup_deadline_learned(f->deadline, 2, WG_RANK_READY);
    startup_deadline_learned(f->deadline, 2, WG_RANK_READY);
    assert_int_equal(startup_deadline_missing(f->deadline), 2);
    assert_false(startup_deadline_ends(f->deadline, OVER_MS));
    end(f);
}

static void a_list_of_ranks_that_is_too_long_is_cut(void **state)
{
    (void)state;
    fixture_t *f = fixture_of(65536, false);
    wg_error_t error;
    memset(f->config.coordinator.handshake.address, 'a', WG_ADDRESS_SIZE - 1);
    for (uint32_t rank = 30001; rank < 65536; rank += 2)
        hello(f, rank, BEGAN_MS);
    assert_true(startup_deadline_fault(f->deadline, STARTUP_NOT_SEEN, 0, OVER_MS, &error));
    assert_non_null(strstr(error.message, "of ranks [0-30000, 30002, 30004, "));
    assert_non_null(strstr(error.message, ", ...] after 3 s; nobody has dialled aaa"));
    assert_string_equal(error.message + strlen(error.message) - 9, " for them");
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_one_phase_are_named_in_one_error),
        cmocka_unit_test(in_a_lockstep_group_the_ranks_at_the_gate_are_not_to_blame),
        cmocka_unit_test(it_passes_at_the_limit_and_only_while_ranks_are_missing),
        cmocka_unit_test(without_a_limit_it_never_passes),
        cmocka_unit_test(a_rank_that_is_lost_later_has_started),
        cmocka_unit_test(it_ends_the_process_only_where_that_is_configured),
        cmocka_unit_test(beside_a_rank_that_ran_before_it_never_ends_the_process),
        cmocka_unit_test(what_a_frontend_knew_of_a_rank_before_us_is_that_it_has_started),
        cmocka_unit_test(a_list_of_ranks_that_is_too_long_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
