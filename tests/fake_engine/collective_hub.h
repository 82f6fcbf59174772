/* collective_hub.h: the meeting point of a lockstep group, in the process of rank 0: it takes in who has
 * entered a step, and releases all when everyone has, at the pace of --step-ms. One message up and one down
 * per process and step. It listens where the parallel_config says, unless the whole group is in this process.
 * Owned by the loop. Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_COLLECTIVE_HUB_H
#define WG_TESTS_FAKE_ENGINE_COLLECTIVE_HUB_H

#include "tests/fake_engine/collective_member.h"

typedef struct collective_hub collective_hub_t;

/* address: to bind to. size: of the group. *out is NULL on failure. The caller destroys, before the loop. */
WG_MUST_CHECK wg_status_t collective_hub_new(collective_hub_t **out, rank_host_t *host, const char *address,
                                             uint32_t size, const collective_handlers_t *handlers,
                                             wg_error_t *error);
void collective_hub_destroy(collective_hub_t **hub); /* accepts NULL, clears *hub */

/* All ranks of this process have entered the step. Never calls a handler. */
WG_MUST_CHECK wg_status_t collective_hub_enter(collective_hub_t *hub, lockstep_vote_t vote,
                                               wg_error_t *error);
/* All but those; who else is missing? Calls on_missing before it returns, and yields what that does. */
WG_MUST_CHECK bool collective_hub_ask(collective_hub_t *hub, const uint32_t *missing, uint32_t count);

#endif
