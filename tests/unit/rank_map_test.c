/* Who serves which rank, and the client index of each. */
#include "common/rank_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* fe0 serves 0-3, fe1 serves 0 and 2, fe2 serves 2 only, as wg_config_load would give it. */
static uint32_t ranks_of_fe0[] = {0, 1, 2, 3};
static uint32_t ranks_of_fe1[] = {0, 2};
static uint32_t ranks_of_fe2[] = {2};
static config_frontend_t frontends[] = {
    {.ranks = ranks_of_fe0, .rank_count = 4, .input.address = "in0", .output.address = "out0"},
    {.ranks = ranks_of_fe1, .rank_count = 2, .input.address = "in1", .output.address = "out1"},
    {.ranks = ranks_of_fe2, .rank_count = 1, .input.address = "in2", .output.address = "out2"},
};
static const wg_config_t config = {
    .ranks.count = 4,
    .coordinator = {.input.address = "slot in", .output.address = "slot out"},
    .frontends = frontends,
    .frontend_count = 3,
};

static void a_frontend_serves_the_ranks_of_its_list(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank < 6; rank++) {
        assert_int_equal(rank_map_serves(&frontends[0], rank), rank < 4);
        assert_int_equal(rank_map_serves(&frontends[1], rank), rank == 0 || rank == 2);
        assert_int_equal(rank_map_serves(&frontends[2], rank), rank == 2);
    }
    assert_false(rank_map_serves(&frontends[0], UINT32_MAX));
}

static void the_slot_counts_as_a_client_of_every_rank(void **state)
{
    (void)state;
    assert_int_equal(rank_map_client_count(&config, 0), 3);
    assert_int_equal(rank_map_client_count(&config, 1), 2);
    assert_int_equal(rank_map_client_count(&config, 2), 4);
    assert_int_equal(rank_map_client_count(&config, 3), 2);
    assert_int_equal(rank_map_client_count(&config, 4), 0);
}

static void assert_clients(uint32_t rank, const char *const *inputs, const char *const *outputs,
                           uint32_t count)
{
    rank_map_client_t client;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(rank_map_client(&config, rank, i, &client));
        assert_string_equal(client.input->address, inputs[i]);
        assert_string_equal(client.output->address, outputs[i]);
    }
    assert_false(rank_map_client(&config, rank, count, &client));
    assert_false(rank_map_client(&config, rank, UINT32_MAX, &client));
}

static void the_slot_comes_first_and_then_the_frontends_of_the_rank(void **state)
{
    (void)state;
    assert_clients(0, (const char *const[]){"slot in", "in0", "in1"},
                   (const char *const[]){"slot out", "out0", "out1"}, 3);
    assert_clients(1, (const char *const[]){"slot in", "in0"}, (const char *const[]){"slot out", "out0"}, 2);
    assert_clients(2, (const char *const[]){"slot in", "in0", "in1", "in2"},
                   (const char *const[]){"slot out", "out0", "out1", "out2"}, 4);
    assert_clients(3, (const char *const[]){"slot in", "in0"}, (const char *const[]){"slot out", "out0"}, 2);
}

static void a_rank_outside_has_no_client(void **state)
{
    (void)state;
    rank_map_client_t client;
    uint32_t index;
    assert_false(rank_map_client(&config, 4, RANK_MAP_SLOT_INDEX, &client));
    assert_false(rank_map_client_index(&config, &frontends[0], 4, &index));
    assert_false(rank_map_client_index(&config, &frontends[1], 1, &index));
}

/* What the coordinator puts into INIT and what a frontend puts into its requests must be one thing. */
static void both_sides_agree_on_the_index(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank < 4; rank++) {
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t index = 0;
            rank_map_client_t client;
            if (!rank_map_client_index(&config, &frontends[i], rank, &index))
                continue;
            assert_true(index > RANK_MAP_SLOT_INDEX);
            assert_true(rank_map_client(&config, rank, index, &client));
            assert_ptr_equal(client.input, &frontends[i].input);
            assert_ptr_equal(client.output, &frontends[i].output);
        }
    }
    uint32_t index = 0;
    assert_true(rank_map_client_index(&config, &frontends[2], 2, &index));
    assert_int_equal(index, 3);
}

static void assert_text(size_t size, const uint32_t *ranks, size_t count, const char *expected)
{
    char *text = malloc(size); /* of that size exactly, so that the sanitizer sees one byte too many */
    assert_non_null(text);
    assert_ptr_equal(rank_map_text(text, size, ranks, count), text);
    assert_string_equal(text, expected);
    free(text);
}

static void ranks_are_listed_as_text(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {0, 1, 5};
    assert_text(64, ranks, 3, "0, 1, 5");
    assert_text(64, ranks, 1, "0");
    assert_text(64, ranks, 0, "");
    assert_text(8, ranks, 3, "0, 1, 5");
    assert_text(1, ranks, 0, "");
    assert_text(2, ranks, 1, "0");
}

static void assert_ranges(size_t size, const uint32_t *ranks, size_t count, const char *expected)
{
    char *text = malloc(size);
    assert_non_null(text);
    assert_ptr_equal(rank_map_ranges(text, size, ranks, count), text);
    assert_string_equal(text, expected);
    free(text);
}

static void neighbours_are_listed_as_ranges(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {0, 1, 2, 3, 7, 9, 10};
    assert_ranges(64, ranks, 7, "0-3, 7, 9-10");
    assert_ranges(64, ranks, 4, "0-3");
    assert_ranges(64, ranks + 4, 1, "7");
    assert_ranges(64, ranks, 0, "");
    assert_ranges(12, ranks, 7, "0-3, 7, ...");
    assert_ranges(9, ranks, 7, "0-3, ...");
}

static void a_list_that_does_not_fit_ends_in_dots(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {10, 20, 30, 65535};
    assert_text(18, ranks, 4, "10, 20, 30, 65535");
    assert_text(17, ranks, 4, "10, 20, 30, ...");
    assert_text(16, ranks, 4, "10, 20, 30, ...");
    assert_text(15, ranks, 4, "10, 20, ...");
    assert_text(11, ranks, 4, "10, ...");
    assert_text(7, ranks, 4, "...");
    assert_text(4, ranks, 4, "...");
    assert_text(3, ranks, 4, "..");
    assert_text(1, ranks, 4, "");
    char untouched[] = "x";
    rank_map_text(untouched, 0, ranks, 4);
    assert_string_equal(untouched, "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frontend_serves_the_ranks_of_its_list),
        cmocka_unit_test(the_slot_counts_as_a_client_of_every_rank),
        cmocka_unit_test(the_slot_comes_first_and_then_the_frontends_of_the_rank),
        cmocka_unit_test(a_rank_outside_has_no_client),
        cmocka_unit_test(both_sides_agree_on_the_index),
        cmocka_unit_test(ranks_are_listed_as_text),
        cmocka_unit_test(neighbours_are_listed_as_ranges),
        cmocka_unit_test(a_list_that_does_not_fit_ends_in_dots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
