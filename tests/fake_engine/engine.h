/* engine.h: the state of one rank between its sockets: which requests wait and run, and what each step
 * gives them. Pure: no sockets, no clock. What a rank is in a lockstep group is lockstep.h's.
 * Owned by the loop. Tests: tests/integration
 *
 * A real engine that has just finished its last requests does one more step, with nothing scheduled. It
 * is the one whose stats go to client index 0 (protocol.md 6), so engine_busy stays true for it. */
#ifndef WG_TESTS_FAKE_ENGINE_ENGINE_H
#define WG_TESTS_FAKE_ENGINE_ENGINE_H

#include "common/status.h"
#include "tests/fake_engine/engine_request.h"

#include <stddef.h>
#include <stdint.h>

typedef struct engine engine_t;

typedef struct {
    uint32_t max_num_seqs;    /* how many run at once; the others wait, first come first served */
    uint32_t tokens_per_step; /* for each that runs */
    uint32_t vocab_size;
    int64_t max_model_len;
    int64_t kv_cache_tokens; /* only for the usage in the stats */
    bool abort_silent;       /* an aborted request gets no final output, only its name among the finished */
} engine_options_t;

typedef enum {
    ENGINE_FINISH_NONE = -1,
    ENGINE_FINISH_STOP = 0,
    ENGINE_FINISH_LENGTH = 1,
    ENGINE_FINISH_ABORT = 2,
    ENGINE_FINISH_ERROR = 3,
} engine_finish_t;

/* New tokens `first` up to `first + count` of a request (tokens.h says which), and its end if that is
 * reached. */
typedef struct {
    const engine_request_t *request;
    int64_t first;
    int64_t count;
    engine_finish_t finish;
    bool stopped_by_id; /* by one of stop_token_ids, not by the EOS: stop_reason is the last token */
    bool prefill;       /* the first output: it carries prefill_stats */
    bool silent;        /* only to be named among the finished */
} engine_output_t;

typedef struct {
    uint32_t running;
    uint32_t waiting;
    int64_t current_wave; /* 0, as step_counter is the engine's own, unless a lockstep rank sets both */
    uint64_t step_counter;
    double kv_cache_usage; /* 0..1 */
    uint32_t new_requests; /* scheduled for the first time in the last step, and their prompt tokens */
    int64_t new_prompt_tokens;
} engine_stats_t;

WG_MUST_CHECK engine_t *engine_new(
    const engine_options_t *options);   /* NULL without memory. The caller destroys. */
void engine_destroy(engine_t **engine); /* accepts NULL, clears *engine */

/* Takes the request over on success only. WG_E_DUPLICATE_REQUEST_ID, or WG_E_SYSTEM without memory. A request
 * that no real engine could begin (an empty prompt, or one that leaves no room for a token) ends at once with
 * ENGINE_FINISH_ERROR, one with abort_immediately with ENGINE_FINISH_ABORT. */
WG_MUST_CHECK wg_status_t engine_add(engine_t *engine, engine_request_t *request, wg_error_t *error);

/* The request, now ended, or NULL for an id that is not here. Valid until engine_clear_outputs. */
const engine_request_t *engine_abort(engine_t *engine, wire_text_t id);
void engine_abort_all(engine_t *engine);

/* What a step leaves alone, as a paused scheduler does; such requests are no reason for a step either. */
typedef enum { ENGINE_HOLD_NONE, ENGINE_HOLD_WAITING, ENGINE_HOLD_ALL } engine_hold_t;
void engine_hold(engine_t *engine, engine_hold_t hold);

/* Does a request wait or run that is not held? */
bool engine_unfinished(const engine_t *engine);

/* Is there a reason for a step? That, or the end of a request since the last step. */
bool engine_busy(const engine_t *engine);
void engine_step(engine_t *engine);

/* What the calls above gave since the last engine_clear_outputs, which must come before the next step; in
 * order. */
const engine_output_t *engine_outputs(const engine_t *engine, size_t *count);
void engine_clear_outputs(engine_t *engine);

void engine_stats(const engine_t *engine, engine_stats_t *out);

#endif
