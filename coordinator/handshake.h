/* handshake.h: the startup handshake (protocol.md 3): the ROUTER that engines dial first. HELLO is answered
 * with the rank's INIT at once, whatever else is pending. Owned by the coordinator's loop. Tests:
 * tests/integration/test_handshake.py */
#ifndef WG_COORDINATOR_HANDSHAKE_H
#define WG_COORDINATOR_HANDSHAKE_H

#include "common/config.h"
#include "common/engine_link.h"
#include "coordinator/rank_table.h"

typedef struct handshake handshake_t;

/* All of them must outlive the handshake. slot: asked, on a second HELLO, whether the first engine is still
 * there. */
typedef struct {
    const wg_config_t *config;
    rank_table_t *ranks;
    engine_link_t *slot;
    faults_t *faults;
} handshake_options_t;

WG_MUST_CHECK wg_status_t handshake_new(handshake_t **out, zloop_t *loop, const handshake_options_t *options,
                                        wg_error_t *error);
void handshake_destroy(handshake_t **handshake); /* accepts NULL, clears */

/* The rank was lost: if another engine has dialled for it meanwhile, it gets its INIT now. */
void handshake_rank_lost(handshake_t *handshake, uint32_t rank);

#endif
