/* lockstep.h: where one rank of a lockstep group stands: its wave, whether it runs, whether a pause call
 * holds it (protocol.md 7). Pure: messages and finished steps in, what to tell the coordinator out.
 * Owned by the loop. Tests: tests/integration
 *
 * It mirrors vLLM's DPEngineCoreProc. A rank steps while it runs or has a request that is not held; a step is
 * a collective (collective.h), and what came back from it decides the rest, so all ranks decide alike.
 *
 * A pause call takes hold in two phases, as in vLLM, or it would stop one rank in the middle of a wave:
 *
 *   OPEN      until pause_scheduler
 *   PAUSING   the rank steps on (and starts to, if it was idle) until every rank is here at an agreement
 *   HELD      START_DP_WAVE is dropped; until resume_scheduler
 *
 * So a pause ends the present wave, or an empty one if the group was idle; and one that does not reach
 * every rank leaves those that it reached in a collective. */
#ifndef WG_TESTS_FAKE_ENGINE_LOCKSTEP_H
#define WG_TESTS_FAKE_ENGINE_LOCKSTEP_H

#include "tests/fake_engine/engine_decode.h"

#include <stdbool.h>
#include <stdint.h>

#define LOCKSTEP_STEPS 32u /* from one agreement to the next */

typedef enum { LOCKSTEP_OPEN, LOCKSTEP_PAUSING, LOCKSTEP_HELD } lockstep_pause_t;

typedef struct {
    int64_t wave;
    bool running;
    lockstep_pause_t pause;
    uint64_t step; /* of the group: how many are done. It goes on from wave to wave */
} lockstep_t;      /* all zero: a rank that has just started */

/* What the ranks bring to a step, and what comes back from it. */
typedef struct {
    bool unfinished; /* has a request that is not held; back: any rank has */
    bool pausing;    /* back: every rank is */
} lockstep_vote_t;

/* An ADD came, stamped with that wave. True: start_wave must be sent, with the rank's wave. */
bool lockstep_add(lockstep_t *lockstep, int64_t request_wave);

/* START_DP_WAVE came to that rank. */
void lockstep_start(lockstep_t *lockstep, uint32_t rank, const engine_wave_t *start);

void lockstep_pause(lockstep_t *lockstep);
/* False: a pause is not through yet, and stays. */
bool lockstep_resume(lockstep_t *lockstep);

/* A step is done, with that result. True: the wave has ended, and the rank, paused, is in the next one. */
bool lockstep_stepped(lockstep_t *lockstep, lockstep_vote_t result);

#endif
