/* control.h: the coordinator's end of the control link (wire_control.h): which frontends are there, what they
 * hold in flight, and every change of a rank's state for those that serve it. Owned by the coordinator's
 * loop. Tests: tests/integration/test_failure.py */
#ifndef WG_COORDINATOR_CONTROL_H
#define WG_COORDINATOR_CONTROL_H

#include "common/config.h"
#include "common/faults.h"
#include "coordinator/rank_table.h"

#include <czmq.h>

typedef struct control control_t;

/* What a frontend knows when it joins, and the coordinator perhaps not (after a restart). */
typedef struct {
    void (*on_learned_rank)(void *context, const wire_control_entry_t *rank);
    void (*on_learned_wave)(void *context, int64_t wave);
} control_events_t;

WG_MUST_CHECK wg_status_t control_new(control_t **out, zloop_t *loop, const wg_config_t *config,
                                      const rank_table_t *ranks, faults_t *faults,
                                      const control_events_t *events, void *context, wg_error_t *error);
void control_destroy(control_t **control); /* accepts NULL, clears */

/* Tells the joined frontends that serve the rank of its state; all of them in a lockstep group, which fails
 * as one. */
void control_rank_changed(control_t *control, uint32_t rank);

/* Requests in flight at that rank by the last beats of its connected frontends. */
int64_t control_in_flight(const control_t *control, uint32_t rank, int64_t now_ms);

typedef struct {
    bool connected;       /* joined, and not silent for longer than CONTROL_SILENCE_MS */
    int64_t last_beat_ms; /* monotonic; 0: never */
} control_frontend_t;
#define CONTROL_SILENCE_MS 3000
/* index: as in config->frontends. */
control_frontend_t control_frontend(const control_t *control, uint32_t index, int64_t now_ms);

#endif
