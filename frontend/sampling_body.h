/* sampling_body.h: the sampling parameters (protocol.md 5), as both routes take them: generate in an object,
 * completions beside its other fields. The loop. Tests: tests/unit/generate_body_*_test.c */
#ifndef WG_FRONTEND_SAMPLING_BODY_H
#define WG_FRONTEND_SAMPLING_BODY_H

#include "frontend/json_fields.h"

extern const json_table_t sampling_body_table;

/* What a request has that says nothing. */
void sampling_body_defaults(request_body_t *body, const wg_config_t *config);

/* After all members were read: what involves two of them, and the model's EOS ids. prefix: of their names. */
WG_MUST_CHECK wg_status_t sampling_body_finish(const body_reader_t *reader, const char *prefix);

/* structured_outputs.c: packs the object into body->structured_outputs. */
json_field_fn structured_outputs_read;

#endif
