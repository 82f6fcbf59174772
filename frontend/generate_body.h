/* generate_body.h: the JSON body of POST /inference/v1/generate, checked field by field. A bad ADD is fatal
 * to its rank, so every range of protocol.md 5 is checked here, and what is not built yet is refused, never
 * ignored. Pure; the loop. Tests: tests/unit/generate_body_test.c */
#ifndef WG_FRONTEND_GENERATE_BODY_H
#define WG_FRONTEND_GENERATE_BODY_H

#include "common/config.h"
#include "common/wire_request.h"

#include <jansson.h>

#define GENERATE_ID_MAX 256

typedef struct {
    json_t *root;           /* owns the texts below */
    wire_text_t request_id; /* data NULL: none given */
    wire_text_t cache_salt;
    uint32_t *prompt;
    size_t prompt_count;
    int64_t *stop_ids; /* behind sampling.all_stop_token_ids */
    size_t user_stop_count;
    wire_sampling_t sampling; /* max_tokens 0: not given */
    int64_t priority;
    bool stream;
    bool include_usage;
    bool has_rank;
    char rank[32]; /* data_parallel_rank as it was written, to be parsed like the header */
} generate_body_t;

/* *out is always valid to free. WG_E_INVALID_REQUEST, WG_E_UNSUPPORTED_FIELD or WG_E_MODEL_NOT_FOUND, with
 * the field in error->param; WG_E_SYSTEM without memory. Error texts never repeat raw bytes of the body. */
WG_MUST_CHECK wg_status_t generate_body_parse(generate_body_t *out, const wg_config_t *config,
                                              const char *text, size_t size, wg_error_t *error);
void generate_body_free(generate_body_t *body);

/* One to GENERATE_ID_MAX visible ASCII characters: the id also travels in headers. */
WG_MUST_CHECK wg_status_t generate_check_id(const char *field, const char *id, size_t size,
                                            wg_error_t *error);

#endif
