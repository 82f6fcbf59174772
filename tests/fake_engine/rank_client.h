/* rank_client.h: one rank towards its clients (protocol.md 4 to 6): it registers with each, serves their
 * requests from its engine, and sends the outputs by way of rank_output. Owned by the loop.
 * Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_RANK_CLIENT_H
#define WG_TESTS_FAKE_ENGINE_RANK_CLIENT_H

#include "common/engine_id.h"
#include "common/status.h"
#include "tests/fake_engine/engine_init.h"
#include "tests/fake_engine/rank_lockstep.h"

typedef struct rank_client rank_client_t; /* all clients of the rank */

/* Connects to all, and sends the registration to each. sockets: all of the rank's, for a lockstep rank, which
 * takes its steps by itself. *out is NULL on failure. The caller destroys, before the host's parts. */
WG_MUST_CHECK wg_status_t rank_client_new(rank_client_t **out, rank_host_t *host, wg_engine_id_t id,
                                          const engine_init_t *init, const rank_sockets_t *sockets,
                                          wg_error_t *error);
void rank_client_destroy(rank_client_t **clients); /* accepts NULL, clears *clients */

/* Begins to read requests; until then they queue, as with an engine that waits for its coordinator. */
WG_MUST_CHECK wg_status_t rank_client_serve(rank_client_t *clients, wg_error_t *error);
void rank_client_ignore(rank_client_t *clients); /* until rank_client_serve is called again */
/* Serves what has come, at once. Yields whether to go on. */
WG_MUST_CHECK bool rank_client_read(rank_client_t *clients);

/* START_DP_WAVE, from whomever; and what follows from it, once the caller's socket is read. Yields whether to
 * go on. */
void rank_client_start_wave(rank_client_t *clients, const engine_wave_t *wave);
WG_MUST_CHECK bool rank_client_served(rank_client_t *clients);

/* Has a reason for a step, and is independent. */
bool rank_client_busy(const rank_client_t *clients);
WG_MUST_CHECK wg_status_t rank_client_step(rank_client_t *clients, wg_error_t *error);

/* The sentinel, to all. */
void rank_client_say_dead(rank_client_t *clients);

#endif
