/* Every edge of the diagram in rank_table.h, and everything that is none. The hashes of a lockstep group are
 * rank_table_lockstep_test.c's. */
#include "tests/unit/rank_table_fixture.h"

static void test_every_rank_starts_absent(void **state)
{
    fixture_t *f = *state;
    assert_int_equal(rank_table_count(f->table), RANKS);
    assert_int_equal(rank_table_count_in(f->table, WG_RANK_ABSENT), RANKS);
    assert_int_equal(rank_table_connected(f->table), 0);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        const rank_table_rank_t *row = rank_table_get(f->table, rank);
        assert_int_equal(row->state, WG_RANK_ABSENT);
        assert_false(row->registered || row->route_up);
        assert_int_equal(row->registration.max_model_len, WIRE_UNKNOWN);
        assert_int_equal(row->response.size, 0);
    }
    assert_null(rank_table_get(f->table, RANKS));
    assert_null(rank_table_get(f->table, UINT32_MAX));
    assert_int_equal(f->changes, 0);
}

static void test_a_rank_is_known_by_its_two_bytes(void **state)
{
    fixture_t *f = *state;
    static const struct {
        const char *bytes;
        size_t size;
        wg_status_t status;
        const char *message;
    } rows[] = {
        {"\x00\x00", 2, WG_OK, ""},
        {"\x02\x00", 2, WG_OK, ""},
        {"\x03\x00", 2, WG_E_UNEXPECTED_HANDSHAKE_IDENTITY,
         "unexpected engine id in startup handshake: 0300: rank 3 is not below ranks.count = 3"},
        {"\x00\x01", 2, WG_E_UNEXPECTED_HANDSHAKE_IDENTITY,
         "unexpected engine id in startup handshake: 0001: rank 256 is not below ranks.count = 3"},
        {"\x01", 1, WG_E_UNSUPPORTED_COORDINATOR_ENGINE_ID,
         "coordinator requires a two-byte engine id, got 01"},
        {"\x01\x00\x00", 3, WG_E_UNSUPPORTED_COORDINATOR_ENGINE_ID,
         "coordinator requires a two-byte engine id, got 010000"},
        {"", 0, WG_E_UNSUPPORTED_COORDINATOR_ENGINE_ID,
         "coordinator requires a two-byte engine id, got (empty)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t rank = 77;
        wg_error_t error = {0};
        assert_int_equal(rank_table_identify(f->table, bytes_of(rows[i].bytes, rows[i].size), &rank, &error),
                         rows[i].status);
        assert_string_equal(error.message, rows[i].message);
        if (rows[i].status == WG_OK)
            assert_int_equal(rank, (uint8_t)rows[i].bytes[0]);
    }
}

static void test_hello_ready_and_loss_in_order(void **state)
{
    fixture_t *f = *state;
    hello(f, 1, 100);
    assert_state(f, 1, WG_RANK_HELLO, 100);
    assert_last_change(f, 1, WG_RANK_ABSENT);
    assert_int_equal(rank_table_register(f->table, 1, registration, UP_MS, NULL), WG_OK);
    rank_table_route(f->table, 1, true, 150);
    assert_state(f, 1, WG_RANK_HELLO, 100); /* registered is not ready */
    ready(f, 1, 200);
    assert_state(f, 1, WG_RANK_READY, 200);
    assert_last_change(f, 1, WG_RANK_HELLO);
    rank_table_route(f->table, 1, false, 300);
    assert_state(f, 1, WG_RANK_LOST, 300);
    assert_last_change(f, 1, WG_RANK_READY);
    hello(f, 1, 400);
    assert_state(f, 1, WG_RANK_HELLO, 400);
    assert_last_change(f, 1, WG_RANK_LOST);
    assert_int_equal(f->changes, 4);
    assert_int_equal(rank_table_count_in(f->table, WG_RANK_ABSENT), RANKS - 1);
}

static void test_ready_before_hello_is_refused(void **state)
{
    fixture_t *f = *state;
    wg_error_t error;
    assert_int_equal(rank_table_ready(f->table, 2, no_hash, 100, &error), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_string_equal(error.message, "unexpected startup handshake message from rank 2: READY without a "
                                       "HELLO before it");
    assert_state(f, 2, WG_RANK_ABSENT, 0);
    bring_up(f, 2);
    assert_int_equal(rank_table_ready(f->table, 2, no_hash, 900, NULL), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_state(f, 2, WG_RANK_READY, UP_MS);
    rank_table_route(f->table, 2, false, 950);
    assert_int_equal(rank_table_ready(f->table, 2, no_hash, 960, NULL), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_state(f, 2, WG_RANK_LOST, 950);
}

/* --- a second engine --- */

static void test_a_second_hello_of_a_live_rank_is_refused_and_remembered(void **state)
{
    fixture_t *f = *state;
    wg_error_t error;
    bring_up(f, 0);
    int changes = f->changes;
    assert_false(rank_table_waiting_hello(f->table, 0));
    assert_int_equal(rank_table_hello(f->table, 0, 900, &error), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_string_equal(error.message, "unexpected startup handshake message from rank 0: a second HELLO "
                                       "while the first engine lives; the first stays");
    assert_state(f, 0, WG_RANK_READY, UP_MS);
    assert_true(rank_table_get(f->table, 0)->registered);
    assert_int_equal(f->changes, changes);
    assert_int_equal(rank_table_hello(f->table, 0, 910, NULL), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_false(rank_table_waiting_hello(f->table, 1));
    assert_true(rank_table_waiting_hello(f->table, 0));
    assert_false(rank_table_waiting_hello(f->table, 0)); /* asked once, and forgotten */
}

static void test_the_waiting_engine_gets_its_turn_once_the_first_is_lost(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    assert_int_equal(rank_table_hello(f->table, 0, 900, NULL), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    rank_table_route(f->table, 0, false, 950);
    assert_true(rank_table_waiting_hello(f->table, 0));
    hello(f, 0, 950);
    assert_state(f, 0, WG_RANK_HELLO, 950);
    assert_false(rank_table_get(f->table, 0)->registered);
}

static void test_a_hello_that_is_taken_forgets_the_one_that_waited(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    assert_int_equal(rank_table_hello(f->table, 0, 900, NULL), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    rank_table_route(f->table, 0, false, 950);
    hello(f, 0, 960);
    assert_false(rank_table_waiting_hello(f->table, 0));
}

static void test_a_hello_in_hello_is_a_restart(void **state)
{
    fixture_t *f = *state;
    hello(f, 1, 100);
    assert_int_equal(rank_table_register(f->table, 1, registration, UP_MS, NULL), WG_OK);
    hello(f, 1, 200);
    assert_state(f, 1, WG_RANK_HELLO, 200);
    assert_int_equal(f->changes, 1); /* the state is the same */
    assert_false(rank_table_get(f->table, 1)->registered);
    assert_false(rank_table_waiting_hello(f->table, 1));
    ready(f, 1, 300);
    assert_state(f, 1, WG_RANK_READY, 300);
}

/* A rank whose client slot was never reached: nobody would tell of its end. */
static void test_a_second_hello_is_taken_where_the_route_is_not_up(void **state)
{
    fixture_t *f = *state;
    hello(f, 1, 100);
    ready(f, 1, 200);
    hello(f, 1, 300);
    assert_state(f, 1, WG_RANK_HELLO, 300);
    assert_last_change(f, 1, WG_RANK_READY);
    assert_false(rank_table_waiting_hello(f->table, 1));
    ready(f, 1, 400);
    rank_table_route(f->table, 1, true, 410);
    assert_int_equal(rank_table_hello(f->table, 1, 420, NULL), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_state(f, 1, WG_RANK_READY, 400);
}

/* --- registration --- */

static void test_a_registration_is_kept_as_it_came(void **state)
{
    fixture_t *f = *state;
    char response[] = "\x81\xadmax_model_len\xcd\x10";
    hello(f, 1, 100);
    assert_int_equal(rank_table_register(f->table, 1, bytes_of(response, sizeof response), UP_MS, NULL),
                     WG_OK);
    const rank_table_rank_t *row = rank_table_get(f->table, 1);
    assert_true(row->registered);
    assert_int_equal(row->registration.max_model_len, 4096);
    assert_int_equal(row->response.size, sizeof response);
    assert_memory_equal(row->response.data, response, sizeof response);
    response[0] = 0; /* it is a copy */
    assert_int_equal(row->response.data[0], 0x81);
    assert_int_equal(f->changes, 1);
}

static void test_an_empty_registration_is_one(void **state)
{
    fixture_t *f = *state;
    hello(f, 1, 100);
    assert_int_equal(rank_table_register(f->table, 1, (wire_bytes_t){NULL, 0}, UP_MS, NULL), WG_OK);
    const rank_table_rank_t *row = rank_table_get(f->table, 1);
    assert_true(row->registered);
    assert_non_null(row->response.data);
    assert_int_equal(row->response.size, 0);
    assert_int_equal(row->registration.max_model_len, WIRE_UNKNOWN);
}

/* After a restart of the coordinator an engine's READY and its registration come over different sockets. */
static void test_a_ready_that_overtakes_its_registration_counts(void **state)
{
    fixture_t *f = *state;
    assert_int_equal(rank_table_ready(f->table, 1, no_hash, UP_MS, NULL), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_int_equal(f->changes, 0);
    assert_int_equal(rank_table_register(f->table, 1, registration, UP_MS + 5, NULL), WG_OK);
    assert_state(f, 1, WG_RANK_READY, UP_MS + 5);
    /* one that has no READY before it waits for it */
    assert_int_equal(rank_table_register(f->table, 0, registration, UP_MS + 6, NULL), WG_OK);
    assert_state(f, 0, WG_RANK_HELLO, UP_MS + 6);
    ready(f, 0, UP_MS + 7);
    assert_state(f, 0, WG_RANK_READY, UP_MS + 7);
}

static void test_a_malformed_registration_changes_nothing(void **state)
{
    fixture_t *f = *state;
    wg_error_t error;
    assert_int_equal(rank_table_register(f->table, 1, bytes_of("\x91\x01", 2), UP_MS, &error), WG_E_DECODE);
    assert_string_equal(error.message,
                        "messagepack decode failed for EngineCoreReadyResponse at byte 0: not a map");
    assert_false(rank_table_get(f->table, 1)->registered);
    assert_state(f, 1, WG_RANK_ABSENT, 0);
    assert_int_equal(rank_table_register(f->table, 1, registration, UP_MS, NULL), WG_OK);
    assert_int_equal(rank_table_register(f->table, 1, bytes_of("\xc1", 1), UP_MS, NULL), WG_E_DECODE);
    assert_true(rank_table_get(f->table, 1)->registered);
    assert_int_equal(rank_table_get(f->table, 1)->response.size, registration.size);
}

static void test_ranks_are_connected_while_their_routes_are_up(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 0);
    bring_up(f, 1);
    assert_int_equal(rank_table_connected(f->table), 2);
    rank_table_route(f->table, 0, false, 900);
    assert_int_equal(rank_table_connected(f->table), 1);
    rank_table_route(f->table, 2, true, 910); /* it has registered with an earlier life of ours */
    assert_int_equal(rank_table_connected(f->table), 2);
}

/* The route may still be that of the engine before. */
static void test_an_engine_that_dials_is_connected_once_it_has_registered(void **state)
{
    fixture_t *f = *state;
    hello(f, 1, 100);
    rank_table_route(f->table, 1, true, 150);
    assert_int_equal(rank_table_connected(f->table), 0);
    assert_int_equal(rank_table_register(f->table, 1, registration, 200, NULL), WG_OK);
    assert_int_equal(rank_table_connected(f->table), 1);
}

/* --- routes --- */

static void test_a_rank_that_is_lost_may_come_back_with_its_route(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 1);
    rank_table_route(f->table, 1, false, 900);
    rank_table_route(f->table, 1, true, 950);
    assert_state(f, 1, WG_RANK_READY, 950);
    assert_last_change(f, 1, WG_RANK_LOST);
    assert_true(rank_table_get(f->table, 1)->registered);
}

static void test_a_route_does_not_make_the_next_engine_ready(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 1);
    rank_table_route(f->table, 1, false, 900);
    hello(f, 1, 950);
    rank_table_route(f->table, 1, true, 960);
    assert_state(f, 1, WG_RANK_HELLO, 950);
    ready(f, 1, 970);
    assert_state(f, 1, WG_RANK_READY, 970);
}

static void test_an_engine_that_registered_is_lost_with_its_route(void **state)
{
    fixture_t *f = *state;
    hello(f, 1, 100);
    rank_table_route(f->table, 1, true, 110);
    assert_int_equal(rank_table_register(f->table, 1, registration, UP_MS, NULL), WG_OK);
    rank_table_route(f->table, 1, false, 120);
    assert_state(f, 1, WG_RANK_LOST, 120);
    assert_last_change(f, 1, WG_RANK_HELLO);
    rank_table_route(f->table, 1, true, 130);
    assert_state(f, 1, WG_RANK_LOST, 120); /* it has never been READY */
}

/* The route that goes is that of the engine before it: this one has not even connected yet. */
static void test_an_engine_that_loads_is_not_lost_with_a_route(void **state)
{
    fixture_t *f = *state;
    bring_up(f, 1);
    rank_table_route(f->table, 1, false, 900);
    rank_table_route(f->table, 1, true, 910);
    rank_table_route(f->table, 1, false, 920);
    hello(f, 1, 930);
    rank_table_route(f->table, 1, true, 940);
    rank_table_route(f->table, 1, false, 950);
    assert_state(f, 1, WG_RANK_HELLO, 930);
}

static void test_a_route_that_was_not_up_cannot_be_lost(void **state)
{
    fixture_t *f = *state;
    hello(f, 1, 100);
    ready(f, 1, 200);
    rank_table_route(f->table, 1, false, 300);
    assert_state(f, 1, WG_RANK_READY, 200);
    rank_table_route(f->table, 1, true, 310);
    rank_table_route(f->table, 1, true, 320);
    assert_state(f, 1, WG_RANK_READY, 200);
    rank_table_route(f->table, 1, false, 330);
    assert_state(f, 1, WG_RANK_LOST, 330);
    rank_table_route(f->table, 1, false, 340);
    assert_state(f, 1, WG_RANK_LOST, 330);
}

static void test_a_route_alone_makes_nobody_ready(void **state)
{
    fixture_t *f = *state;
    rank_table_route(f->table, 1, true, 100);
    assert_true(rank_table_get(f->table, 1)->route_up);
    assert_state(f, 1, WG_RANK_ABSENT, 0);
    rank_table_route(f->table, 1, false, 200);
    assert_state(f, 1, WG_RANK_ABSENT, 0);
    assert_int_equal(f->changes, 0);
}

static void test_an_engine_that_left_before_its_init_is_lost(void **state)
{
    fixture_t *f = *state;
    rank_table_left(f->table, 1, 50);
    assert_state(f, 1, WG_RANK_ABSENT, 0);
    hello(f, 1, 100);
    rank_table_left(f->table, 1, 200);
    assert_state(f, 1, WG_RANK_LOST, 200);
    rank_table_left(f->table, 1, 300);
    assert_state(f, 1, WG_RANK_LOST, 200);
    bring_up(f, 0);
    rank_table_left(f->table, 0, 900);
    assert_state(f, 0, WG_RANK_READY, UP_MS);
}

/* --- after a restart of the coordinator --- */

static void test_a_learned_rank_is_ready_once_its_route_is_up(void **state)
{
    fixture_t *f = *state;
    assert_true(learn(f, 1, WG_RANK_READY, registration, 100));
    assert_state(f, 1, WG_RANK_ABSENT, 0);
    assert_int_equal(rank_table_get(f->table, 1)->registration.max_model_len, 4096);
    rank_table_route(f->table, 1, true, 200);
    assert_state(f, 1, WG_RANK_READY, 200);
    assert_last_change(f, 1, WG_RANK_ABSENT);
    assert_int_equal(rank_table_connected(f->table), 1);
}

static void test_a_learned_rank_whose_route_is_up_is_ready_at_once(void **state)
{
    fixture_t *f = *state;
    rank_table_route(f->table, 1, true, 50);
    assert_true(learn(f, 1, WG_RANK_READY, (wire_bytes_t){NULL, 0}, 100));
    assert_state(f, 1, WG_RANK_READY, 100);
    assert_false(rank_table_get(f->table, 1)->registered);
    assert_true(learn(f, 1, WG_RANK_LOST, registration, 200)); /* another frontend knows what it once said */
    assert_true(rank_table_get(f->table, 1)->registered);
    assert_false(learn(f, 1, WG_RANK_READY, registration, 300));
    assert_state(f, 1, WG_RANK_READY, 100);
}

static void test_a_rank_that_is_not_ready_elsewhere_is_not_here(void **state)
{
    fixture_t *f = *state;
    rank_table_route(f->table, 1, true, 50);
    for (wg_rank_state_t known = WG_RANK_ABSENT; known <= WG_RANK_LOST; known++) {
        if (known != WG_RANK_READY)
            (void)!learn(f, 1, known, registration, 100);
    }
    assert_state(f, 1, WG_RANK_ABSENT, 0);
    assert_true(rank_table_get(f->table, 1)->registered);
}

static void test_a_connected_rank_that_answers_is_ready(void **state)
{
    fixture_t *f = *state;
    rank_table_answered(f->table, 1, 50); /* before it is lost: a late word of the dead */
    assert_state(f, 1, WG_RANK_ABSENT, 0);
    rank_table_route(f->table, 1, true, 60);
    rank_table_answered(f->table, 1, 70);
    assert_state(f, 1, WG_RANK_READY, 70);
    rank_table_answered(f->table, 1, 80);
    assert_state(f, 1, WG_RANK_READY, 70);
}

static void test_a_rank_that_has_dialled_is_ready_when_it_says_so(void **state)
{
    fixture_t *f = *state;
    hello(f, 1, 100);
    rank_table_route(f->table, 1, true, 110);
    rank_table_answered(f->table, 1, 120); /* a late word of the engine before */
    assert_int_equal(rank_table_register(f->table, 1, registration, 200, NULL), WG_OK);
    rank_table_answered(f->table, 1, 210); /* overtakes the READY, which comes over another socket */
    assert_state(f, 1, WG_RANK_HELLO, 100);
    ready(f, 1, 220);
    assert_state(f, 1, WG_RANK_READY, 220);
}

/* It may have loaded long ago, and only be found again. */
static void test_an_engine_that_was_offered_its_init_may_answer_at_once(void **state)
{
    fixture_t *f = *state;
    rank_table_offered(f->table, 1, 100);
    assert_state(f, 1, WG_RANK_HELLO, 100);
    rank_table_answered(f->table, 1, 110);
    assert_state(f, 1, WG_RANK_HELLO, 100);
    rank_table_route(f->table, 1, true, 120);
    rank_table_answered(f->table, 1, 130);
    assert_state(f, 1, WG_RANK_READY, 130);
}

static void test_an_answer_may_overtake_the_ready_of_a_rank_that_dialled_before_a_restart(void **state)
{
    fixture_t *f = *state;
    rank_table_route(f->table, 1, true, 110);
    assert_int_equal(rank_table_register(f->table, 1, registration, 200, NULL), WG_OK);
    rank_table_answered(f->table, 1, 210);
    assert_state(f, 1, WG_RANK_READY, 210);
    ready(f, 1, 220);
    assert_state(f, 1, WG_RANK_READY, 210);
    assert_int_equal(rank_table_ready(f->table, 1, no_hash, 230, NULL), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
}

/* Its gate opened after we were restarted: it says READY, but has said HELLO to our earlier life. */
static void test_a_connected_rank_may_say_ready_without_a_hello(void **state)
{
    fixture_t *f = *state;
    rank_table_route(f->table, 1, true, 100);
    ready(f, 1, 200);
    assert_state(f, 1, WG_RANK_READY, 200);
}

static void test_nobody_takes_the_place_of_a_connected_rank_that_is_not_known_yet(void **state)
{
    fixture_t *f = *state;
    rank_table_route(f->table, 1, true, 100);
    assert_int_equal(rank_table_hello(f->table, 1, 200, NULL), WG_E_UNEXPECTED_HANDSHAKE_MESSAGE);
    assert_true(rank_table_waiting_hello(f->table, 1));
}

static void test_only_an_absent_rank_can_be_learned_and_only_once(void **state)
{
    fixture_t *f = *state;
    assert_true(learn(f, 0, WG_RANK_READY, registration, 100));
    assert_false(learn(f, 0, WG_RANK_READY, registration, 110));
    assert_false(learn(f, 1, WG_RANK_READY, bytes_of("\xc1", 1), 100));
    assert_false(rank_table_get(f->table, 1)->registered);
    hello(f, 1, 200);
    assert_false(learn(f, 1, WG_RANK_READY, registration, 210));
    assert_state(f, 1, WG_RANK_HELLO, 200);
    bring_up(f, 2);
    assert_false(learn(f, 2, WG_RANK_READY, registration, 900));
    rank_table_route(f->table, 2, false, 910);
    assert_false(learn(f, 2, WG_RANK_READY, registration, 920));
    assert_state(f, 2, WG_RANK_LOST, 910);
}

static void test_a_hello_counts_more_than_what_was_learned(void **state)
{
    fixture_t *f = *state;
    assert_true(learn(f, 1, WG_RANK_READY, registration, 100));
    hello(f, 1, 200);
    rank_table_route(f->table, 1, true, 300);
    assert_state(f, 1, WG_RANK_HELLO, 200);
    assert_false(rank_table_get(f->table, 1)->registered);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_every_rank_starts_absent),
        TEST(test_a_rank_is_known_by_its_two_bytes),
        TEST(test_hello_ready_and_loss_in_order),
        TEST(test_ready_before_hello_is_refused),
        TEST(test_a_second_hello_of_a_live_rank_is_refused_and_remembered),
        TEST(test_the_waiting_engine_gets_its_turn_once_the_first_is_lost),
        TEST(test_a_hello_that_is_taken_forgets_the_one_that_waited),
        TEST(test_a_hello_in_hello_is_a_restart),
        TEST(test_a_second_hello_is_taken_where_the_route_is_not_up),
        TEST(test_a_registration_is_kept_as_it_came),
        TEST(test_an_empty_registration_is_one),
        TEST(test_a_ready_that_overtakes_its_registration_counts),
        TEST(test_a_malformed_registration_changes_nothing),
        TEST(test_ranks_are_connected_while_their_routes_are_up),
        TEST(test_an_engine_that_dials_is_connected_once_it_has_registered),
        TEST(test_a_rank_that_is_lost_may_come_back_with_its_route),
        TEST(test_a_route_does_not_make_the_next_engine_ready),
        TEST(test_an_engine_that_registered_is_lost_with_its_route),
        TEST(test_an_engine_that_loads_is_not_lost_with_a_route),
        TEST(test_a_route_that_was_not_up_cannot_be_lost),
        TEST(test_a_route_alone_makes_nobody_ready),
        TEST(test_an_engine_that_left_before_its_init_is_lost),
        TEST(test_a_learned_rank_is_ready_once_its_route_is_up),
        TEST(test_a_learned_rank_whose_route_is_up_is_ready_at_once),
        TEST(test_only_an_absent_rank_can_be_learned_and_only_once),
        TEST(test_a_rank_that_is_not_ready_elsewhere_is_not_here),
        TEST(test_a_connected_rank_that_answers_is_ready),
        TEST(test_a_rank_that_has_dialled_is_ready_when_it_says_so),
        TEST(test_an_engine_that_was_offered_its_init_may_answer_at_once),
        TEST(test_an_answer_may_overtake_the_ready_of_a_rank_that_dialled_before_a_restart),
        TEST(test_a_connected_rank_may_say_ready_without_a_hello),
        TEST(test_nobody_takes_the_place_of_a_connected_rank_that_is_not_known_yet),
        TEST(test_a_hello_counts_more_than_what_was_learned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
