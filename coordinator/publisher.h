/* publisher.h: the XPUB to which frontends, ours or vLLM's, subscribe for the queue counts (protocol.md 8):
 * changed counts at most every 100 ms, and every 5 s regardless. Owned by the coordinator's loop.
 * Tests: tests/integration/test_status.py */
#ifndef WG_COORDINATOR_PUBLISHER_H
#define WG_COORDINATOR_PUBLISHER_H

#include "common/config.h"
#include "common/faults.h"
#include "coordinator/load_board.h"

#include <czmq.h>

typedef struct publisher publisher_t;

/* A first-request notice of a frontend: a request went to that rank, at the wave that the frontend knows. */
typedef void publisher_notice_fn(void *context, int64_t rank, int64_t wave);

WG_MUST_CHECK wg_status_t publisher_new(publisher_t **out, zloop_t *loop, const wg_config_t *config,
                                        load_board_t *loads, faults_t *faults, publisher_notice_fn *on_notice,
                                        void *context, wg_error_t *error);
void publisher_destroy(publisher_t **publisher); /* accepts NULL, clears */

/* The board has new numbers. */
void publisher_loads_changed(publisher_t *publisher);

/* The wave state of a lockstep group as the engines reported it: published at once where it changed, with nil
 * counts. */
void publisher_wave(publisher_t *publisher, int64_t current_wave, bool engines_running);

typedef struct {
    int64_t current_wave;
    bool engines_running;
    uint64_t publishes;
} publisher_state_t;
publisher_state_t publisher_state(const publisher_t *publisher);

#endif
