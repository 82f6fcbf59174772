/* rank_client.h: one rank towards its clients (protocol.md 4 to 6): it registers with each, serves their
 * requests from its engine, and sends the outputs by way of rank_output. Owned by the loop.
 * Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_RANK_CLIENT_H
#define WG_TESTS_FAKE_ENGINE_RANK_CLIENT_H

#include "common/engine_id.h"
#include "common/status.h"
#include "tests/fake_engine/engine_init.h"
#include "tests/fake_engine/rank_host.h"

typedef struct rank_client rank_client_t; /* all clients of the rank */

/* Connects to all, and sends the registration to each. *out is NULL on failure. The caller destroys, before
 * the host's parts. */
WG_MUST_CHECK wg_status_t rank_client_new(rank_client_t **out, rank_host_t *host, wg_engine_id_t id,
                                          const engine_init_t *init, wg_error_t *error);
void rank_client_destroy(rank_client_t **clients); /* accepts NULL, clears *clients */

/* Begins to read requests; until then they queue, as with an engine that waits for its coordinator. */
WG_MUST_CHECK wg_status_t rank_client_serve(rank_client_t *clients, wg_error_t *error);

bool rank_client_busy(const rank_client_t *clients); /* has a reason for a step */
WG_MUST_CHECK wg_status_t rank_client_step(rank_client_t *clients, wg_error_t *error);

/* The sentinel, to all. */
void rank_client_say_dead(rank_client_t *clients);

#endif
