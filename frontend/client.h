/* client.h: the engine client: everything a frontend is, without HTTP (design.md 3). Requests go in, their
 * outputs and their one end come out. It keeps a dispatcher per rank, the routes and the control link behind
 * it.
 *
 * A request has one or more choices, each of them a request of its own to an engine. They are admitted
 * together and end together: the failure of one is the failure of the whole request.
 *
 * Owned by the loop. Callbacks come from the loop only, never from inside client_submit or client_abort.
 * Tests: tests/unit/client_test.c, tests/integration/ */
#ifndef WG_FRONTEND_CLIENT_H
#define WG_FRONTEND_CLIENT_H

#include "common/config.h"
#include "common/faults.h"
#include "common/wire_logprobs.h"
#include "common/wire_outputs.h"
#include "common/wire_request.h"
#include "frontend/dispatcher.h"
#include "frontend/in_flight.h"
#include "frontend/wave_view.h"

#include <czmq.h>

typedef struct client client_t;

/* Why a request ended. */
typedef enum {
    CLIENT_STOP, /* finish reasons of the engine */
    CLIENT_LENGTH,
    CLIENT_REPETITION,
    CLIENT_ABORT,         /* the engine aborted it, nobody here had asked for it */
    CLIENT_ERROR,         /* the engine's finish reason 3 */
    CLIENT_STREAM_CLOSED, /* the engine dropped it without a final output */
    CLIENT_DECODE,        /* one of its outputs could not be understood */
    CLIENT_RANK_LOST,     /* its own, or any of its lockstep group; or it has become silent */
    CLIENT_UNANNOUNCED,   /* the coordinator fell silent before it could have woken the lockstep group */
    CLIENT_DRAINING,
    CLIENT_GONE, /* these three by client_abort */
    CLIENT_SLOW_CONSUMER,
    CLIENT_DEADLINE,
    CLIENT_CAUSE_COUNT
} client_cause_t;

const char *client_cause_name(client_cause_t cause); /* "stop", "client_gone", ... */

/* What an engine said about one choice. */
typedef struct {
    const wire_output_t *wire;
    const wire_logprobs_t *logprobs;        /* a row for each token; NULL where not asked for, or no token */
    const wire_logprobs_t *prompt_logprobs; /* NULL where not asked for, or not in this output */
} client_output_t;

typedef struct {
    /* One output of one choice, its last one included. Valid during the call. May call client_abort. */
    void (*on_output)(void *user, uint32_t choice, const client_output_t *output);
    /* Exactly once, unless client_abort came first; the request is invalid afterwards. error is NULL for
     * STOP, LENGTH and REPETITION, and cause then the last choice's. */
    void (*on_end)(void *user, client_cause_t cause, const wg_error_t *error);
} client_events_t;

/* How the user calls what an error may be about. */
typedef struct {
    const char *prompt;
    const char *max_tokens;
    const char *min_tokens;
    const char *choices;
} client_field_names_t;

/* All texts and lists are copied. Sampling must have passed the checks of protocol.md 5. */
typedef struct {
    wire_text_t id; /* the client's; unique among those in flight */
    const wire_prompt_t *prompts;
    size_t prompt_count;
    uint32_t choices_per_prompt; /* choice c is of prompt c / choices_per_prompt; these share a rank */
    wire_sampling_t sampling; /* max_tokens 0: as many as fit; a seed is the first choice's, then one more */
    bool max_tokens_may_shrink; /* to what fits: nobody asked for so many */
    const wire_lora_t *lora;    /* NULL: the base model */
    wire_text_t cache_salt;     /* data NULL: none */
    wire_trace_t trace;
    int64_t priority;
    bool pinned; /* to this rank */
    uint32_t rank;
    const client_field_names_t *names;
} client_submission_t;

/* Binds the frontend's addresses and starts looking for its ranks. WG_E_SYSTEM. config must outlive it. */
WG_MUST_CHECK wg_status_t client_new(client_t **out, zloop_t *loop, const wg_config_t *config,
                                     const config_frontend_t *frontend, faults_t *faults, wg_error_t *error);
void client_destroy(client_t **client); /* requests still in flight get no on_end; accepts NULL, clears */

/* Sends the ADDs. On failure events are not called, and no engine keeps anything of the request:
 * DuplicateRequestId, InvalidDataParallelRank, InvalidRequest (prompt and max_tokens against the ranks'
 * max_model_len), Overloaded, NoRankReady, Draining, DispatcherClosed, Encode, System. events must outlive
 * the request. */
WG_MUST_CHECK wg_status_t client_submit(client_t *client, const client_submission_t *submission,
                                        const client_events_t *events, void *user, client_request_t **out,
                                        wg_error_t *error);

uint32_t client_request_rank(const client_request_t *request, uint32_t choice);

/* Ends the request without on_end, and tells the engines: one ABORT per rank and loop turn. */
void client_abort(client_t *client, client_request_t *request, client_cause_t cause);

/* The way out, in three steps: not ready any more (client_ready), no more requests, and those in flight end
 * with Draining. */
void client_leave(client_t *client);
void client_refuse(client_t *client);
void client_drain(client_t *client);

/* InvalidDataParallelRank for a rank as the user wrote it, with the ranks that are connected. */
wg_status_t client_not_connected(const client_t *client, const char *rank, wg_error_t *error);

/* Would a request be accepted now? If not, the error says why. */
WG_MUST_CHECK wg_status_t client_ready(const client_t *client, wg_error_t *error);

/* The smallest max_model_len of the ready ranks, or WIRE_UNKNOWN. */
int64_t client_max_model_len(const client_t *client);

size_t client_in_flight(const client_t *client); /* choices, as max_in_flight counts them */

typedef struct {
    uint64_t accepted;                  /* requests, each of which is then counted once below */
    uint64_t ended[CLIENT_CAUSE_COUNT]; /* a request whose ADDs could not all be sent is not accepted */
    uint64_t orphan_outputs;
    uint64_t death_sentinels; /* of engines, or forged */
    uint64_t aborts_sent;     /* ids, not messages */
} client_counters_t;
client_counters_t client_counters(const client_t *client);

/* The rank of this index in the frontend's list, and its load as last published, or NULL where that is long
 * ago. */
const dispatcher_t *client_dispatcher(const client_t *client, uint32_t index);
const wire_load_t *client_load(const client_t *client, uint32_t index, int64_t now_ms);

/* What is known of the lockstep group's waves, or NULL where the ranks are independent. */
const wave_view_t *client_wave_view(const client_t *client);

/* Age of the coordinator's last publish and last word on the control link; -1: none yet. */
int64_t client_publish_age_ms(const client_t *client, int64_t now_ms);
bool client_joined(const client_t *client);
/* The coordinator is away, or publishes nothing: ranks are chosen by this frontend's own counts. */
bool client_is_degraded(const client_t *client, int64_t now_ms);

#endif
