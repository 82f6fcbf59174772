/* collective_table.h: who is in the present step of a lockstep group, as rank 0's process keeps it.
 * Pure. Owned by the loop. Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_COLLECTIVE_TABLE_H
#define WG_TESTS_FAKE_ENGINE_COLLECTIVE_TABLE_H

#include "common/status.h"
#include "tests/fake_engine/lockstep.h"

typedef struct collective_table collective_table_t;

WG_MUST_CHECK collective_table_t *collective_table_new(
    uint32_t size);                                        /* NULL without memory. The caller destroys. */
void collective_table_destroy(collective_table_t **table); /* accepts NULL, clears *table */

/* The ranks belong to that member, a process, for good: the numbers of members are the caller's. False, and
 * nothing is changed, if one of them is outside the group or taken. */
WG_MUST_CHECK bool collective_table_join(collective_table_t *table, uint64_t member, const uint32_t *ranks,
                                         uint32_t count);

/* All ranks of the member have entered. */
void collective_table_enter(collective_table_t *table, uint64_t member, lockstep_vote_t vote);
/* All but those; the votes come with the last of them. */
void collective_table_enter_all_but(collective_table_t *table, uint64_t member, const uint32_t *missing,
                                    uint32_t count);

bool collective_table_is_member(const collective_table_t *table, uint64_t member);
bool collective_table_complete(const collective_table_t *table);
/* Writes who has not entered, ascending, and yields how many; `ranks` has room for the whole group. */
uint32_t collective_table_missing(const collective_table_t *table, uint32_t *ranks);

/* The result of the step; then nobody has entered the next one. */
lockstep_vote_t collective_table_release(collective_table_t *table);

#endif
