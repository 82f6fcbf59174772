/* wire_request.h: what a client sends to an engine on its input ROUTER (protocol.md 5): the type bytes and
 * the payloads. A bad ADD is fatal to the rank, so callers hand in only values that passed the checks of that
 * section; the encoder itself only sees to order and types. No state; any thread.
 * Tests: tests/unit/wire_request_test.c */
#ifndef WG_COMMON_WIRE_REQUEST_H
#define WG_COMMON_WIRE_REQUEST_H

#include "common/wire_reader.h"

#include <msgpack.h>

typedef enum {
    WIRE_REQUEST_ADD = 0x00,
    WIRE_REQUEST_ABORT = 0x01,
    WIRE_REQUEST_START_DP_WAVE = 0x02,
    WIRE_REQUEST_UTILITY = 0x03,
} wire_request_type_t;

/* A prompt as the ADD carries it (wire_prompt.h), packed once for all the choices of it. */
typedef struct {
    wire_bytes_t packed; /* the ids one after the other, each an int of its own */
    size_t count;
} wire_prompt_t;

typedef struct {
    const int64_t *ids;
    size_t count;
} wire_ids_t;

typedef struct {
    int64_t id;
    double bias;
} wire_logit_bias_t;

#define WIRE_NO_TOKEN (-1)
#define WIRE_UNSET INT64_MIN /* a number that is not sent */

/* vLLM's SamplingParams, but for what needs text. wire_sampling_defaults sets what the engine takes for a
 * key that is not sent; the encoder leaves such keys out. */
typedef struct {
    double presence_penalty;
    double frequency_penalty;
    double repetition_penalty;
    double temperature;
    double top_p;
    double min_p;
    int64_t top_k;
    bool has_seed;
    int64_t seed;
    int64_t max_tokens; /* always sent: the engine's own default of 16 is nobody's wish */
    int64_t min_tokens;
    bool ignore_eos;
    /* Every id that ends the request, the model's EOS ids included, even if they are ignored: the engine
     * masks them until min_tokens. The first stop_count of them are also sent as stop_token_ids. */
    const int64_t *all_stop_token_ids;
    size_t all_stop_count;
    size_t stop_count;
    int64_t eos_token_id;         /* the model's primary one; WIRE_NO_TOKEN: none, or ignored */
    int64_t logprobs;             /* how many of the likeliest; -1: all; WIRE_UNSET: none at all */
    int64_t prompt_logprobs;      /* the same */
    wire_ids_t logprob_token_ids; /* count 0: not sent, here and below */
    wire_ids_t allowed_token_ids;
    const wire_logit_bias_t *logit_bias;
    size_t logit_bias_count;
    int64_t thinking_token_budget;    /* WIRE_UNSET: not sent */
    int8_t skip_reading_prefix_cache; /* negative: not sent, which is not the same as false */
    wire_bytes_t structured_outputs;  /* these three: a packed map; size 0: not sent */
    wire_bytes_t repetition_detection;
    wire_bytes_t extra_args;
} wire_sampling_t;

void wire_sampling_defaults(wire_sampling_t *out);

typedef struct {
    wire_text_t name;
    int64_t id; /* at least 1 */
    wire_text_t path;
} wire_lora_t;

/* W3C Trace Context. data NULL: absent; tracestate goes only with traceparent. */
typedef struct {
    wire_text_t traceparent;
    wire_text_t tracestate;
} wire_trace_t;

/* vLLM's EngineCoreRequest. Texts must be UTF-8; one whose data is NULL is sent as nil. */
typedef struct {
    wire_text_t request_id;
    wire_text_t external_req_id;
    wire_prompt_t prompt;
    wire_sampling_t sampling;
    double arrival_time;     /* seconds, Unix */
    const wire_lora_t *lora; /* NULL: the base model */
    wire_text_t cache_salt;
    int64_t data_parallel_rank; /* negative: not pinned, sent as nil */
    uint32_t client_index;
    int64_t current_wave;
    int64_t priority;
    wire_trace_t trace;
} wire_add_t;

/* All append to *out. WG_E_ENCODE without memory. */
WG_MUST_CHECK wg_status_t wire_add_encode(msgpack_sbuffer *out, const wire_add_t *add, wg_error_t *error);
WG_MUST_CHECK wg_status_t wire_abort_encode(msgpack_sbuffer *out, const wire_text_t *ids, size_t count,
                                            wg_error_t *error);

/* [wave, nil]: nobody is excluded (design.md 4, rule 1). */
WG_MUST_CHECK wg_status_t wire_start_encode(msgpack_sbuffer *out, int64_t wave, wg_error_t *error);
/* A call without arguments, to be answered to that client index. */
WG_MUST_CHECK wg_status_t wire_utility_encode(msgpack_sbuffer *out, uint32_t client_index, int64_t call_id,
                                              const char *method, wg_error_t *error);

#endif
