/* collective_member.h: a process of a lockstep group towards the process of rank 0 (collective_hub.h). It
 * connects with ZMQ's own retries, so the processes may start in any order; but one that comes back is not
 * let in again, as a real process group would not. Owned by the loop. Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_COLLECTIVE_MEMBER_H
#define WG_TESTS_FAKE_ENGINE_COLLECTIVE_MEMBER_H

#include "tests/fake_engine/lockstep.h"
#include "tests/fake_engine/rank_host.h"

/* Each yields whether to go on; false ends the loop. */
typedef struct {
    bool (*on_release)(void *context, lockstep_vote_t result);                /* the step is done */
    bool (*on_missing)(void *context, const uint32_t *ranks, uint32_t count); /* have not entered it */
    void *context;
} collective_handlers_t;

typedef struct collective_member collective_member_t;

/* address: to connect to. *out is NULL on failure. The caller destroys, before the loop. */
WG_MUST_CHECK wg_status_t collective_member_new(collective_member_t **out, rank_host_t *host,
                                                const char *address, const collective_handlers_t *handlers,
                                                wg_error_t *error);
void collective_member_destroy(collective_member_t **member); /* accepts NULL, clears *member */

/* All ranks of this process have entered the step. */
WG_MUST_CHECK wg_status_t collective_member_enter(collective_member_t *member, lockstep_vote_t vote,
                                                  wg_error_t *error);
/* All but those; who else is missing? The answer, if any, comes by on_missing. */
WG_MUST_CHECK wg_status_t collective_member_ask(collective_member_t *member, uint32_t *missing,
                                                uint32_t count, wg_error_t *error);

#endif
