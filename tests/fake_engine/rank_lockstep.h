/* rank_lockstep.h: how a rank of a lockstep group spends its time, as vLLM's busy loop does (protocol.md 7):
 *
 *   idle      it reads its sockets as messages come; when it has a reason for a step, what else has come, and
 *   stepping  it reads none, for it sits in a collective; between two steps it serves whatever has come
 *
 * The engine's part of a step is done on the way in, and what it gives is sent on the way out; nothing can
 * see the difference, for the rank hears nobody in between.
 *
 * Pause calls: pause_scheduler is answered when it has taken hold and the rank is idle, resume_scheduler with
 * a failure while a pause is in flight. Requests that were held are, at the resume, as one that came for a
 * past wave: the rank runs, and emits start_wave. (vLLM has a barrier of all ranks there, and no message.)
 *
 * Owned by the loop. Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_RANK_LOCKSTEP_H
#define WG_TESTS_FAKE_ENGINE_RANK_LOCKSTEP_H

#include "tests/fake_engine/engine_decode.h"
#include "tests/fake_engine/engine_init.h"
#include "tests/fake_engine/rank_host.h"

typedef struct rank_lockstep rank_lockstep_t;

/* The sockets on which the rank's messages come. */
typedef struct {
    /* Serves what has come on each. Yields whether to go on. */
    bool (*read)(void *context);
    /* From now on serves messages as they come, and calls rank_lockstep_served after them. */
    wg_status_t (*watch)(void *context, wg_error_t *error);
    /* From now on leaves them where they are. */
    void (*ignore)(void *context);
    void *context;
} rank_sockets_t;

/* Engine and output are the rank's, and outlive this. Not watched yet. *out is NULL on failure. The caller
 * destroys, before the host's collective. */
WG_MUST_CHECK wg_status_t rank_lockstep_new(rank_lockstep_t **out, rank_host_t *host, uint32_t rank,
                                            const engine_init_t *init, engine_t *engine,
                                            rank_output_t *output, const rank_sockets_t *sockets,
                                            wg_error_t *error);
void rank_lockstep_destroy(rank_lockstep_t **lockstep); /* accepts NULL, clears *lockstep */

/* Messages, one by one. */
WG_MUST_CHECK wg_status_t rank_lockstep_add(rank_lockstep_t *lockstep, int64_t request_wave,
                                            wg_error_t *error); /* the engine has the request already */
void rank_lockstep_start(rank_lockstep_t *lockstep, const engine_wave_t *start);
WG_MUST_CHECK wg_status_t rank_lockstep_call(rank_lockstep_t *lockstep, const engine_call_t *call,
                                             wg_error_t *error);

/* What a watched socket had is served. Yields whether to go on. */
WG_MUST_CHECK bool rank_lockstep_served(rank_lockstep_t *lockstep);

#endif
