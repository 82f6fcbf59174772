/* request_body.h: what a client asks for, read from a JSON body and checked field by field: by
 * generate_body_parse for POST /inference/v1/generate, by completions_body_parse for POST /v1/completions. A
 * bad ADD is fatal to its rank, so every range of protocol.md 5 is checked here, and what cannot be honoured
 * is refused, never ignored. Pure; the loop.
 *
 *   request_body.c      the struct itself, and what both routes have in common
 *   prompt_scan.c       cuts the token ids out of the text, so that jansson sees the rest only
 *   json_body.c         the rest as a JSON object
 *   json_fields.c       members of an object by a table of fields
 *   json_pack.c         free-form JSON as MessagePack
 *   sampling_body.c     the sampling parameters, structured_outputs.c one of them
 *   generate_body.c, completions_body.c   each route's own fields
 *
 * Tests: tests/unit/generate_body*_test.c, tests/unit/completions_body_test.c, tests/fuzz/ */
#ifndef WG_FRONTEND_REQUEST_BODY_H
#define WG_FRONTEND_REQUEST_BODY_H

#include "common/config.h"
#include "common/wire_request.h"

#include <jansson.h>

#define REQUEST_ID_MAX 256

/* A value in request_body_t.packed, which may still move. */
typedef struct {
    size_t start;
    size_t size; /* 0: none */
} packed_span_t;

typedef struct {
    json_t *root;                    /* owns the texts below */
    msgpack_sbuffer packed;          /* owns the prompts and every packed value */
    wire_text_t request_id;          /* data NULL: none given */
    wire_text_t cache_salt;          /* the same */
    const config_adapter_t *adapter; /* NULL: the base model */
    wire_prompt_t *prompts;          /* at least one */
    size_t prompt_count;
    int64_t n;                /* choices of each prompt */
    wire_sampling_t sampling; /* max_tokens 0: as many as fit */
    int64_t priority;
    int64_t deadline_ms; /* 0: none */
    bool stream;
    bool include_usage;
    bool continuous_usage; /* usage on every event */
    bool has_rank;
    char rank[32]; /* data_parallel_rank as it was written, to be parsed like the header */

    /* Between the parser's steps; the first four own what sampling points to. */
    wire_ids_t stop_ids; /* the user's, and room for the model's */
    wire_ids_t allowed_ids;
    wire_ids_t logprob_ids;
    wire_logit_bias_t *logit_bias;
    packed_span_t structured_outputs;
    packed_span_t repetition_detection;
    const json_t *extra_args; /* these three belong to root */
    const json_t *kv_transfer_params;
    const json_t *ec_transfer_params;
    bool has_stream_options;
    bool has_max_tokens; /* from the client; else it is a default, which gives way to what fits */
} request_body_t;

/* *out is always valid to free. WG_E_INVALID_REQUEST, WG_E_UNSUPPORTED_FIELD or WG_E_MODEL_NOT_FOUND, with
 * the field in error->param; WG_E_SYSTEM without memory. Error texts never repeat raw bytes of the body. */
typedef wg_status_t request_body_parse_fn(request_body_t *out, const wg_config_t *config, const char *text,
                                          size_t size, wg_error_t *error);
WG_MUST_CHECK wg_status_t generate_body_parse(request_body_t *out, const wg_config_t *config,
                                              const char *text, size_t size, wg_error_t *error);
WG_MUST_CHECK wg_status_t completions_body_parse(request_body_t *out, const wg_config_t *config,
                                                 const char *text, size_t size, wg_error_t *error);
void request_body_free(request_body_t *body);

/* One to REQUEST_ID_MAX visible ASCII characters: the id also travels in headers. */
WG_MUST_CHECK wg_status_t request_check_id(const char *field, const char *id, size_t size, wg_error_t *error);

#endif
