/* coordinator.h: the coordinator as a whole: its parts, and what passes between them (design.md 1 and 6).
 * Owned by its loop. Tests: tests/integration/ */
#ifndef WG_COORDINATOR_COORDINATOR_H
#define WG_COORDINATOR_COORDINATOR_H

#include "common/config.h"

#include <czmq.h>

typedef struct coordinator coordinator_t;

/* Not all ranks have started in time, and the configuration says to end then. The log says which. */
typedef void coordinator_give_up_fn(void *context);

/* Binds every address of the configuration's `coordinator` group. WG_E_SYSTEM names the one that could not be
 * bound. The configuration must outlive it. */
WG_MUST_CHECK wg_status_t coordinator_new(coordinator_t **out, zloop_t *loop, const wg_config_t *config,
                                          coordinator_give_up_fn *on_give_up, void *context,
                                          wg_error_t *error);
void coordinator_destroy(coordinator_t **coordinator); /* accepts NULL, clears */

#endif
