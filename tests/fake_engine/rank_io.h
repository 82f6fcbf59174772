/* rank_io.h: one rank from its HELLO on (protocol.md 3): the handshake and the coordinator's broadcasts; its
 * clients are rank_client's. Owned by the loop. Tests: tests/integration
 *
 *   GREETING   HELLO is sent                      until INIT
 *   LOADING    INIT came                          until --load-ms are over
 *   GATED      registered with every client       until READY on the XSUB; skipped without a coordinator
 *   SERVING    READY is sent, requests are read   until the end
 *
 * The socket of the handshake is open in the first three. */
#ifndef WG_TESTS_FAKE_ENGINE_RANK_IO_H
#define WG_TESTS_FAKE_ENGINE_RANK_IO_H

#include "common/status.h"
#include "tests/fake_engine/rank_host.h"

typedef struct rank_io rank_io_t;

/* Sends HELLO. *out is NULL on failure. The caller destroys, after the loop has ended and before the host's
 * parts. */
WG_MUST_CHECK wg_status_t rank_io_new(rank_io_t **out, rank_host_t *host, uint32_t rank, wg_error_t *error);
void rank_io_destroy(rank_io_t **io); /* accepts NULL, clears *io */

bool rank_io_waits_for_init(const rank_io_t *io);
bool rank_io_busy(const rank_io_t *io); /* has a reason for a step, and is independent */

/* One step, if so. False, after a failure, ends the loop. */
WG_MUST_CHECK bool rank_io_step(rank_io_t *io);

/* The sentinel, if the clients are known yet. */
void rank_io_say_dead(rank_io_t *io);

#endif
