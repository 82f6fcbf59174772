/* engine_publisher.h: the XPUB to which every engine subscribes and waits for READY (protocol.md 3): the
 * startup gate, and the way for START_DP_WAVE (protocol.md 7).
 *
 * A lockstep group must be complete before any of its ranks goes on, so READY waits for all. Independent
 * ranks need nobody, so each subscriber gets READY at once, and one missing rank holds up none of the others.
 * Engines that already run ignore one more READY. Owned by the coordinator's loop.
 * Tests: tests/integration/test_startup.py */
#ifndef WG_COORDINATOR_ENGINE_PUBLISHER_H
#define WG_COORDINATOR_ENGINE_PUBLISHER_H

#include "common/config.h"
#include "common/faults.h"
#include "coordinator/rank_table.h"

#include <czmq.h>

typedef struct engine_publisher engine_publisher_t;

/* READY has been sent to a lockstep group all of whose ranks were started by us and had not run before. */
typedef void engine_publisher_started_fn(void *context);

WG_MUST_CHECK wg_status_t engine_publisher_new(engine_publisher_t **out, zloop_t *loop,
                                               const wg_config_t *config, const rank_table_t *ranks,
                                               faults_t *faults,
                                               engine_publisher_started_fn *on_group_started, void *context,
                                               wg_error_t *error);
void engine_publisher_destroy(engine_publisher_t **publisher); /* accepts NULL, clears */

/* A rank has registered, its route came or went, or its state has changed: the gate may open now. */
void engine_publisher_ranks_changed(engine_publisher_t *publisher);

/* Broadcasts START_DP_WAVE [wave, nil]. Only while no engine can be at the gate, which would take it for its
 * READY and fail. */
void engine_publisher_start(engine_publisher_t *publisher, int64_t wave);

/* Subscriptions seen so far; XPUB does not tell whose they are. */
uint64_t engine_publisher_subscriptions(const engine_publisher_t *publisher);

#endif
