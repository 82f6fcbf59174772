/* request_fields.h: what the bodies of both routes have in common. The loop.
 * Tests: tests/unit/generate_body_test.c, tests/unit/completions_body_test.c */
#ifndef WG_FRONTEND_REQUEST_FIELDS_H
#define WG_FRONTEND_REQUEST_FIELDS_H

#include "frontend/json_fields.h"

/* request_id, model, stream, priority, ...: everything but the prompt and the sampling parameters. */
extern const json_table_t request_fields_table;

typedef struct {
    const char *prompt;         /* the member that holds it */
    bool allows_prompts;        /* several, as an array of arrays */
    const char *sampling;       /* before the names of sampling parameters: "sampling_params." or "" */
    int64_t max_tokens;         /* of a request that does not say; 0: the configuration's */
    const json_table_t *tables; /* of the top level */
    size_t table_count;
} request_shape_t;

/* The whole way from the text to a body that may be submitted. */
WG_MUST_CHECK wg_status_t request_body_parse(request_body_t *out, const request_shape_t *shape,
                                             const wg_config_t *config, const char *text, size_t size,
                                             wg_error_t *error);

/* For the prompt's member: its ids were taken out before, or are checked and taken later. */
json_field_fn request_fields_prompt;

#endif
