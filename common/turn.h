/* turn.h: work that is to be done once after the handlers of the current loop turn, however often it is asked
 * for: batches of ABORTs, sweeps, flushes. zloop has no such hook, so a one-shot timer of 0 ms stands in:
 * zloop runs it at the start of its next turn. Owned by the loop. */
#ifndef WG_COMMON_TURN_H
#define WG_COMMON_TURN_H

#include "common/status.h"

#include <czmq.h>

typedef struct turn turn_t;
typedef void turn_fn(void *context);

WG_MUST_CHECK turn_t *turn_new(zloop_t *loop, turn_fn *work, void *context); /* NULL without memory */
void turn_destroy(turn_t **turn); /* work that is still scheduled is not done; accepts NULL, clears */

void turn_schedule(turn_t *turn);

#endif
