/* frontend.h: a frontend as a whole: the engine client, and HTTP in front of it. Owned by its loop.
 * Tests: tests/integration/ */
#ifndef WG_FRONTEND_FRONTEND_H
#define WG_FRONTEND_FRONTEND_H

#include "common/config.h"

#include <czmq.h>

typedef struct frontend frontend_t;

/* name: of one of the configuration's frontends. WG_E_SYSTEM names the address that could not be bound.
 * config must outlive it. */
WG_MUST_CHECK wg_status_t frontend_new(frontend_t **out, zloop_t *loop, const wg_config_t *config,
                                       const char *name, wg_error_t *error);
void frontend_destroy(frontend_t **frontend); /* accepts NULL, clears */

typedef void frontend_drained_fn(void *context);

/* The end in good order: not ready from now on, but serving for timeouts.lame_duck_ms; then requests are
 * refused, and those in flight have timeouts.drain_ms before they end with Draining. Calls drained once, from
 * the loop. To be called once. */
void frontend_drain(frontend_t *frontend, frontend_drained_fn *drained, void *context);

#endif
