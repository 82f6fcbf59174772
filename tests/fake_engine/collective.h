/* collective.h: the steps of a lockstep group. Each of its ranks enters a step, and none gets out of it before
 * all have entered; what becomes of one that must wait is this module's too. The ranks may live in several
 * processes: rank 0's is the hub (collective_hub.h), the others are its members (collective_member.h).
 * Owned by the loop. Tests: tests/integration
 *
 * A rank in a step is to handle no message at all, as a real one that sits in a collective operation; this
 * is up to the rank. When some rank has not come for --collective-timeout-ms, the process says who it was,
 * and ends with RANK_EXIT_COLLECTIVE. The hub says so by name; where it does not answer, rank 0 is named. A
 * process that died is one whose ranks do not come: nobody minds before the next step. */
#ifndef WG_TESTS_FAKE_ENGINE_COLLECTIVE_H
#define WG_TESTS_FAKE_ENGINE_COLLECTIVE_H

#include "tests/fake_engine/engine_init.h"
#include "tests/fake_engine/lockstep.h"
#include "tests/fake_engine/rank_host.h"

#define RANK_EXIT_COLLECTIVE 7

typedef struct collective collective_t; /* of all ranks in this process */
typedef struct collective_seat collective_seat_t;

/* init: of the first rank that got one. WG_E_DECODE for a rank of this process that is not in the group. *out
 * is NULL on failure. The caller destroys, after the ranks and before the loop. */
WG_MUST_CHECK wg_status_t collective_new(collective_t **out, rank_host_t *host, const engine_init_t *init,
                                         wg_error_t *error);
void collective_destroy(collective_t **collective); /* accepts NULL, clears *collective */

/* The step that the rank has entered is done, with that result. It may enter the next one at once. Yields
 * whether to go on. */
typedef bool collective_release_fn(void *context, lockstep_vote_t result);

/* The seat of that rank, which is one of this process; it belongs to the collective. WG_E_DECODE unless the
 * INIT has the same parallel_config as the first. */
WG_MUST_CHECK wg_status_t collective_take_seat(collective_t *collective, collective_seat_t **out,
                                               uint32_t rank, const engine_init_t *init,
                                               collective_release_fn *on_release, void *context,
                                               wg_error_t *error);

/* Not while it is in a step. wave: only for the report. Never calls on_release. */
WG_MUST_CHECK wg_status_t collective_enter(collective_seat_t *seat, int64_t wave, lockstep_vote_t vote,
                                           wg_error_t *error);

#endif
