/* startup_deadline.h: which ranks have not started, and how far each has come, for when `timeouts.startup_ms`
 * is over (design.md 5: HandshakeTimeout, InputRegistrationTimeout).
 *
 * It counts from the coordinator's start, not from a rank's last step: an engine that fails while it loads
 * and is started again and again would move such a limit on for ever. A rank that was READY once has started,
 * also where that was before a restart of this coordinator: losing it later is no matter of the start.
 *
 * Pure: no sockets, no clock. Owned by the coordinator's loop. Tests: tests/unit/startup_deadline_test.c */
#ifndef WG_COORDINATOR_STARTUP_DEADLINE_H
#define WG_COORDINATOR_STARTUP_DEADLINE_H

#include "common/config.h"
#include "coordinator/rank_table.h"

typedef struct startup_deadline startup_deadline_t;

/* How far a rank has come that has not started. */
typedef enum {
    STARTUP_NOT_SEEN,
    STARTUP_FROM_BEFORE, /* its engine is connected, but has said no HELLO to this life of the coordinator */
    STARTUP_LEFT,        /* it was lost before its READY, and no other has come */
    STARTUP_LOADING,     /* HELLO, but no registration */
    STARTUP_AT_GATE,     /* lockstep: registered, and waits for the ranks that have come less far */
    STARTUP_SUBSCRIBING, /* lockstep: all have registered, but not all have subscribed */
    STARTUP_REGISTERED,  /* only its READY is missing */
    STARTUP_PHASE_COUNT
} startup_phase_t;

/* config and ranks must outlive it. NULL without memory. now_ms: when the coordinator started, monotonic. */
WG_MUST_CHECK startup_deadline_t *startup_deadline_new(const wg_config_t *config, const rank_table_t *ranks,
                                                       int64_t now_ms);
void startup_deadline_destroy(startup_deadline_t **deadline); /* accepts NULL, clears */

/* The state of the rank has changed in the table. True where with it the last rank has started. */
bool startup_deadline_rank_changed(startup_deadline_t *deadline, uint32_t rank, wg_rank_state_t before);
/* A frontend knows the rank in that state. Only news while the table has not seen the rank; to be told before
 * the table is. */
void startup_deadline_learned(startup_deadline_t *deadline, uint32_t rank, int64_t state);

uint32_t startup_deadline_missing(const startup_deadline_t *deadline); /* ranks that have not started */
/* The limit is over, and ranks are missing. */
bool startup_deadline_passed(const startup_deadline_t *deadline, int64_t now_ms);
/* ... and that is to end the process: where the configuration says so, and no rank was found running. Then it
 * is not the cluster that starts, but a coordinator that was restarted. */
bool startup_deadline_ends(const startup_deadline_t *deadline, int64_t now_ms);

/* Names all missing ranks of that phase in one error. False, and nothing written, where there are none.
 * subscriptions: how many the startup gate has seen. */
bool startup_deadline_fault(const startup_deadline_t *deadline, startup_phase_t phase, uint64_t subscriptions,
                            int64_t now_ms, wg_error_t *out);

#endif
