/* rank_probe.h: asks ranks that are connected, but not known to be READY, by a utility call: an engine
 * answers once it is through the startup gate. So a coordinator that was restarted finds those that run, and
 * whatever else was lost with its earlier life is made up for. Owned by the coordinator's loop. Tests:
 * tests/integration/test_restart.py */
#ifndef WG_COORDINATOR_RANK_PROBE_H
#define WG_COORDINATOR_RANK_PROBE_H

#include "common/engine_link.h"
#include "coordinator/rank_table.h"

typedef struct rank_probe rank_probe_t;

/* The call_id of all these calls: what else the slot asks counts from 1. */
#define RANK_PROBE_CALL_ID 0

/* ranks and slot must outlive it. WG_E_SYSTEM without memory. */
WG_MUST_CHECK wg_status_t rank_probe_new(rank_probe_t **out, zloop_t *loop, const rank_table_t *ranks,
                                         engine_link_t *slot, wg_error_t *error);
void rank_probe_destroy(rank_probe_t **probe); /* accepts NULL, clears */

/* The rank's route came up: it is asked now, and again ever more rarely until it is READY. */
void rank_probe_route_up(rank_probe_t *probe, uint32_t rank);

#endif
