/* rank_table_fixture.h: a table of three ranks and what it has told, for its tests. */
#ifndef WG_TESTS_RANK_TABLE_FIXTURE_H
#define WG_TESTS_RANK_TABLE_FIXTURE_H

#include "coordinator/rank_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, UP_MS = 800 };

typedef struct {
    rank_table_t *table;
    int changes;
    uint32_t rank; /* of the last change */
    wg_rank_state_t before;
    wg_rank_state_t seen[RANKS]; /* the state as the changes told it */
} fixture_t;

static inline wire_bytes_t bytes_of(const char *bytes, size_t size)
{
    return (wire_bytes_t){(const uint8_t *)bytes, size};
}

static const wire_bytes_t registration = {(const uint8_t *)"\x81\xadmax_model_len\xcd\x10\x00", 18};
static const wire_text_t no_hash = {NULL, 0};

static inline void on_changed(void *context, uint32_t rank, wg_rank_state_t before)
{
    fixture_t *f = context;
    assert_int_equal(before, f->seen[rank]); /* no change was left out */
    f->seen[rank] = rank_table_get(f->table, rank)->state;
    f->changes++;
    f->rank = rank;
    f->before = before;
}

static inline int setup_table(void **state, bool lockstep)
{
    fixture_t *f = calloc(1, sizeof *f);
    if (!f || rank_table_new(&f->table, RANKS, lockstep, on_changed, f, NULL) != WG_OK)
        return -1;
    *state = f;
    return 0;
}

static inline int setup(void **state)
{
    return setup_table(state, false);
}

static inline int setup_lockstep(void **state)
{
    return setup_table(state, true);
}

static inline int teardown(void **state)
{
    fixture_t *f = *state;
    rank_table_destroy(&f->table);
    assert_null(f->table);
    rank_table_destroy(&f->table);
    free(f);
    return 0;
}

static inline void hello(fixture_t *f, uint32_t rank, int64_t now_ms)
{
    assert_int_equal(rank_table_hello(f->table, rank, now_ms, NULL), WG_OK);
}

static inline void ready(fixture_t *f, uint32_t rank, int64_t now_ms)
{
    assert_int_equal(rank_table_ready(f->table, rank, no_hash, now_ms, NULL), WG_OK);
}

/* The whole way to READY, since UP_MS. */
static inline void bring_up(fixture_t *f, uint32_t rank)
{
    hello(f, rank, UP_MS - 100);
    assert_int_equal(rank_table_register(f->table, rank, registration, UP_MS - 60, NULL), WG_OK);
    rank_table_route(f->table, rank, true, UP_MS - 50);
    ready(f, rank, UP_MS);
}

/* From a frontend that has the rank in that state; a NULL response is an unknown one. */
static inline bool learn(fixture_t *f, uint32_t rank, wg_rank_state_t state, wire_bytes_t response,
                         int64_t now_ms)
{
    const wire_control_entry_t known = {
        .rank = rank, .number = state, .has_response = response.data != NULL, .response = response};
    return rank_table_learn(f->table, &known, now_ms);
}

static inline void assert_state(const fixture_t *f, uint32_t rank, wg_rank_state_t state, int64_t since_ms)
{
    const rank_table_rank_t *row = rank_table_get(f->table, rank);
    assert_string_equal(wg_rank_state_name(row->state), wg_rank_state_name(state));
    assert_int_equal(row->since_ms, since_ms);
    assert_int_equal(f->seen[rank], state);
}

static inline void assert_last_change(const fixture_t *f, uint32_t rank, wg_rank_state_t before)
{
    assert_int_equal(f->rank, rank);
    assert_int_equal(f->before, before);
}

#endif
