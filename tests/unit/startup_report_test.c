/* The line that names the ranks which a starting cluster still waits for. */
#include "coordinator/startup_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

static const wg_config_t config = {
    .coordinator.handshake = {.address = "tcp://told:29550", .bind = "tcp://0.0.0.0:29550"}};
static const wire_text_t no_hash = {NULL, 0};

static rank_table_t *table_of(uint32_t count)
{
    rank_table_t *table;
    assert_int_equal(rank_table_new(&table, count, false, NULL, NULL, NULL), WG_OK);
    return table;
}

static void bring_up(rank_table_t *table, uint32_t rank, int64_t now_ms)
{
    assert_int_equal(rank_table_hello(table, rank, now_ms, NULL), WG_OK);
    assert_int_equal(rank_table_ready(table, rank, no_hash, now_ms, NULL), WG_OK);
    rank_table_route(table, rank, true, now_ms);
}

static void assert_report(const rank_table_t *table, int64_t now_ms, const char *expected)
{
    text_buffer_t out = {0};
    text_buffer_text(&out, "waiting: "); /* it appends */
    assert_true(startup_report(&out, &config, table, now_ms));
    text_buffer_bytes(&out, "", 1);
    assert_false(out.failed);
    assert_memory_equal(out.data, "waiting: ", 9);
    assert_string_equal(out.data + 9, expected);
    text_buffer_free(&out);
}

static void test_each_state_has_its_words(void **state)
{
    (void)state;
    rank_table_t *table = table_of(6);
    bring_up(table, 0, 1000);
    assert_int_equal(rank_table_hello(table, 1, 1000, NULL), WG_OK);
    assert_int_equal(rank_table_hello(table, 2, 30000, NULL), WG_OK);
    assert_int_equal(rank_table_register(table, 2, (wire_bytes_t){NULL, 0}, 30000, NULL), WG_OK);
    bring_up(table, 3, 1000);
    rank_table_route(table, 3, false, 40500);
    rank_table_route(table, 5, true, 40500);
    assert_report(table, 41000,
                  "1 loading (HELLO 40 s ago), 2 registered, not ready (HELLO 11 s ago), 3 lost (0 s ago), "
                  "4 not seen, 5 connected, and not heard of since a restart; listening on "
                  "tcp://0.0.0.0:29550");
    rank_table_destroy(&table);
}

static void test_nothing_is_said_of_a_cluster_that_is_complete(void **state)
{
    (void)state;
    text_buffer_t out = {0};
    rank_table_t *table = table_of(2);
    bring_up(table, 0, 1000);
    assert_report(table, 2000, "1 not seen; listening on tcp://0.0.0.0:29550");
    bring_up(table, 1, 1000);
    assert_false(startup_report(&out, &config, table, 2000));
    assert_int_equal(out.size, 0);
    text_buffer_free(&out);
    rank_table_destroy(&table);
}

static void test_at_most_16_ranks_are_named(void **state)
{
    (void)state;
    rank_table_t *table = table_of(65536);
    for (uint32_t rank = 20; rank < 65536; rank++)
        bring_up(table, rank, 1000);
    for (uint32_t rank = 0; rank < 3; rank++)
        bring_up(table, rank, 1000);
    assert_report(table, 2000,
                  "3 not seen, 4 not seen, 5 not seen, 6 not seen, 7 not seen, 8 not seen, 9 not seen, "
                  "10 not seen, 11 not seen, 12 not seen, 13 not seen, 14 not seen, 15 not seen, "
                  "16 not seen, 17 not seen, 18 not seen, and 1 more; listening on tcp://0.0.0.0:29550");
    bring_up(table, 7, 1000);
    assert_report(table, 2000,
                  "3 not seen, 4 not seen, 5 not seen, 6 not seen, 8 not seen, 9 not seen, "
                  "10 not seen, 11 not seen, 12 not seen, 13 not seen, 14 not seen, 15 not seen, "
                  "16 not seen, 17 not seen, 18 not seen, 19 not seen; listening on tcp://0.0.0.0:29550");
    rank_table_destroy(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_state_has_its_words),
        cmocka_unit_test(test_nothing_is_said_of_a_cluster_that_is_complete),
        cmocka_unit_test(test_at_most_16_ranks_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
