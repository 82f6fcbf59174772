/* lockstep.h: a frontend's part in a lockstep group: the state of all its ranks, also those that it does not
 * serve, and the waves (wave_view.h) with what they demand: stamps, notices, wakes of its own. Owned by its
 * client. Tests: tests/integration/test_waves.py */
#ifndef WG_FRONTEND_LOCKSTEP_H
#define WG_FRONTEND_LOCKSTEP_H

#include "common/config.h"
#include "common/engine_link.h"
#include "common/wire_control.h"
#include "frontend/load_feed.h"
#include "frontend/wave_view.h"

typedef struct lockstep lockstep_t;

/* link and feed must outlive it. NULL without memory. */
WG_MUST_CHECK lockstep_t *lockstep_new(const wg_config_t *config, const config_frontend_t *frontend,
                                       engine_link_t *link, load_feed_t *feed);
void lockstep_destroy(lockstep_t **lockstep); /* accepts NULL, clears */

void lockstep_set_rank(lockstep_t *lockstep, uint32_t rank, wg_rank_state_t state);
/* A rank of the group that is not READY, or -1. Before the coordinator has said anything, that is rank 0. */
int64_t lockstep_missing_rank(const lockstep_t *lockstep);

/* The waves. view is what the client reads for stamps and status. */
const wave_view_t *lockstep_view(const lockstep_t *lockstep);
void lockstep_on_publish(lockstep_t *lockstep, int64_t wave, bool running);

/* Would lockstep_before_add let a request through now? */
bool lockstep_would_send(const lockstep_t *lockstep, size_t in_flight);

/* Before an ADD. WG_E_CONTROL_CLOSED where nobody would wake the group for it. *undo is for
 * lockstep_not_sent. */
WG_MUST_CHECK wg_status_t lockstep_before_add(lockstep_t *lockstep, size_t in_flight, wave_view_step_t *step,
                                              wave_view_t *undo, wg_error_t *error);
/* After the ADD to that rank has gone out: the notice or the wake. */
void lockstep_after_add(lockstep_t *lockstep, uint32_t rank, wave_view_step_t step);
/* The ADD did not go out after all. */
void lockstep_not_sent(lockstep_t *lockstep, const wave_view_t *undo);

/* The coordinator has fallen silent, or is heard again. False where requests in flight have nobody to wake
 * the group and must be ended. */
WG_MUST_CHECK bool lockstep_on_silent(lockstep_t *lockstep, bool silent);
/* Every wave_repeat_ms. */
void lockstep_on_repeat(lockstep_t *lockstep, size_t in_flight);

#endif
