/* The ranks of a lockstep group must agree on parallel_config_hash, or the group would hang later. And a long
 * random walk through the table, which may use no edge that the diagram in rank_table.h does not have. */
#include "tests/unit/rank_table_fixture.h"

static wg_status_t ready_with(fixture_t *f, uint32_t rank, const char *hash, wg_error_t *error)
{
    return rank_table_ready(f->table, rank, (wire_text_t){hash, strlen(hash)}, UP_MS, error);
}

static void test_ranks_with_one_hash_are_ready(void **state)
{
    fixture_t *f = *state;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        hello(f, rank, 100);
        assert_int_equal(ready_with(f, rank, "a5f3c0de", NULL), WG_OK);
        assert_state(f, rank, WG_RANK_READY, UP_MS);
    }
}

static void test_a_rank_with_another_hash_stays_in_hello(void **state)
{
    fixture_t *f = *state;
    wg_error_t error;
    hello(f, 0, 100);
    hello(f, 2, 100);
    assert_int_equal(ready_with(f, 2, "a5f3c0de", NULL), WG_OK);
    assert_int_equal(ready_with(f, 0, "a5f3c0dd", &error), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_string_equal(error.message,
                        "unexpected startup handshake message from rank 0: parallel_config_hash differs from "
                        "that of rank 2: the group would hang; give all the same parallel options");
    assert_state(f, 0, WG_RANK_HELLO, 100);
    hello(f, 0, 200); /* started again with the right options */
    assert_int_equal(ready_with(f, 0, "a5f3c0de", NULL), WG_OK);
    assert_state(f, 0, WG_RANK_READY, UP_MS);
}

static void test_a_part_of_the_hash_is_another_hash(void **state)
{
    fixture_t *f = *state;
    hello(f, 0, 100);
    hello(f, 1, 100);
    assert_int_equal(ready_with(f, 0, "a5f3", NULL), WG_OK);
    assert_int_equal(ready_with(f, 1, "a5f3c0de", NULL), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_int_equal(ready_with(f, 1, "a5", NULL), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_int_equal(ready_with(f, 1, "a5f3", NULL), WG_OK);
}

static void test_a_group_needs_hashes(void **state)
{
    fixture_t *f = *state;
    wg_error_t error;
    hello(f, 0, 100);
    assert_int_equal(rank_table_ready(f->table, 0, no_hash, 200, &error), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_string_equal(error.message, "unexpected startup handshake message from rank 0: READY without "
                                       "parallel_config_hash in a lockstep group");
    assert_int_equal(ready_with(f, 0, "", NULL), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_state(f, 0, WG_RANK_HELLO, 100);
}

static void test_a_hash_may_have_128_bytes(void **state)
{
    fixture_t *f = *state;
    wg_error_t error;
    char hash[130] = "";
    memset(hash, 'f', 129);
    hello(f, 0, 100);
    assert_int_equal(ready_with(f, 0, hash, &error), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_string_equal(error.message, "unexpected startup handshake message from rank 0: "
                                       "parallel_config_hash is too long");
    assert_state(f, 0, WG_RANK_HELLO, 100);
    hash[128] = '\0';
    assert_int_equal(ready_with(f, 0, hash, NULL), WG_OK);
}

static void test_a_lost_rank_has_no_say(void **state)
{
    fixture_t *f = *state;
    hello(f, 0, 100);
    assert_int_equal(ready_with(f, 0, "old", NULL), WG_OK);
    rank_table_route(f->table, 0, true, 300);
    rank_table_route(f->table, 0, false, 310);
    hello(f, 1, 400);
    assert_int_equal(ready_with(f, 1, "new", NULL), WG_OK);
    hello(f, 0, 500);
    assert_int_equal(ready_with(f, 0, "old", NULL), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_int_equal(ready_with(f, 0, "new", NULL), WG_OK);
}

/* Nobody knows the hash of a rank that was learned after a restart of the coordinator. */
static void test_a_learned_rank_has_no_hash_to_agree_with(void **state)
{
    fixture_t *f = *state;
    rank_table_route(f->table, 0, true, 50);
    assert_true(learn(f, 0, WG_RANK_READY, registration, 60));
    hello(f, 1, 100);
    assert_int_equal(ready_with(f, 1, "any", NULL), WG_OK);
}

static void test_independent_ranks_need_not_agree(void **state)
{
    fixture_t *f = *state;
    char long_hash[1000] = "";
    memset(long_hash, 'f', sizeof long_hash - 1);
    hello(f, 0, 100);
    hello(f, 1, 100);
    hello(f, 2, 100);
    assert_int_equal(ready_with(f, 0, "one", NULL), WG_OK);
    assert_int_equal(ready_with(f, 1, "another", NULL), WG_OK);
    assert_int_equal(ready_with(f, 2, long_hash, NULL), WG_OK);
}

/* --- the walk --- */

static void step(fixture_t *f, uint32_t bits, int64_t now_ms)
{
    static const wire_text_t sent[] = {{"", 0}, {"a", 1}, {"b", 1}};
    uint32_t rank = bits % RANKS;
    uint32_t choice = bits >> 8 & 0xff;
    switch (bits >> 16 & 7) {
    case 0:
        (void)!rank_table_hello(f->table, rank, now_ms, NULL);
        break;
    case 1:
        (void)!rank_table_ready(f->table, rank, sent[choice % 3], now_ms, NULL);
        break;
    case 2:
        (void)!rank_table_register(f->table, rank, choice % 4 ? registration : bytes_of("\xc1", 1), now_ms,
                                   NULL);
        break;
    case 3:
        (void)!learn(f, rank, choice % 4, registration, now_ms);
        break;
    case 4:
    case 5:
        rank_table_route(f->table, rank, choice % 2, now_ms);
        break;
    case 6:
        rank_table_left(f->table, rank, now_ms);
        break;
    default:
        (void)!rank_table_waiting_hello(f->table, rank);
        break;
    }
}

static void test_no_walk_leaves_the_diagram(void **state)
{
    fixture_t *f = *state;
    static const bool edges[4][4] = {
        [WG_RANK_ABSENT] = {[WG_RANK_HELLO] = true, [WG_RANK_READY] = true},
        [WG_RANK_HELLO] = {[WG_RANK_READY] = true, [WG_RANK_LOST] = true},
        [WG_RANK_READY] = {[WG_RANK_LOST] = true, [WG_RANK_HELLO] = true}, /* HELLO: it was never reached */
        [WG_RANK_LOST] = {[WG_RANK_HELLO] = true, [WG_RANK_READY] = true},
    };
    uint32_t used[4][4] = {{0}};
    uint64_t bits = 1;
    for (int64_t now_ms = 1; now_ms <= 100000; now_ms++) {
        if (now_ms % 20 == 0) { /* ABSENT is left once only, so start again now and then */
            rank_table_destroy(&f->table);
            memset(f->seen, 0, sizeof f->seen);
            assert_int_equal(rank_table_new(&f->table, RANKS, now_ms % 40 == 0, on_changed, f, NULL), WG_OK);
        }
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        int changes = f->changes;
        step(f, (uint32_t)(bits >> 32), now_ms);
        assert_true(f->changes - changes <= 1);
        if (f->changes == changes)
            continue;
        const rank_table_rank_t *row = rank_table_get(f->table, f->rank);
        assert_true(edges[f->before][row->state]);
        assert_int_equal(row->since_ms, now_ms);
        used[f->before][row->state]++;
    }
    for (int from = 0; from < 4; from++) {
        for (int to = 0; to < 4; to++)
            assert_int_equal(used[from][to] > 0, edges[from][to]); /* the walk has been everywhere */
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_lockstep, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_ranks_with_one_hash_are_ready),
        TEST(test_a_rank_with_another_hash_stays_in_hello),
        TEST(test_a_part_of_the_hash_is_another_hash),
        TEST(test_a_group_needs_hashes),
        TEST(test_a_hash_may_have_128_bytes),
        TEST(test_a_lost_rank_has_no_say),
        TEST(test_a_learned_rank_has_no_hash_to_agree_with),
        cmocka_unit_test_setup_teardown(test_independent_ranks_need_not_agree, setup, teardown),
        TEST(test_no_walk_leaves_the_diagram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
