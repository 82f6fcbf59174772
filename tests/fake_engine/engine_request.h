/* engine_request.h: one request as a rank holds it: what the ADD said, and how far it is. Made by
 * engine_decode, then owned by an engine. Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_ENGINE_REQUEST_H
#define WG_TESTS_FAKE_ENGINE_ENGINE_REQUEST_H

#include "common/status.h"
#include "common/wire_reader.h"

#include <stdint.h>

#define ENGINE_MAX_TOKENS_DEFAULT 16 /* of SamplingParams, where the key is absent (protocol.md 5) */

typedef enum { ENGINE_WAITING, ENGINE_RUNNING, ENGINE_ENDED } engine_request_state_t;

typedef struct engine_request {
    uint32_t client_index;
    int64_t current_wave; /* as its client knew it */
    uint64_t prompt_hash; /* tokens.h */
    int64_t prompt_tokens;
    int64_t max_tokens;
    int64_t min_tokens;
    int64_t *stop_ids; /* ascending */
    size_t stop_count;
    bool has_eos;
    int64_t eos_id;
    bool abort_immediately;

    /* From here on the engine's. */
    engine_request_state_t state; /* also tells which of the engine's lists holds it */
    int64_t generated;
    struct engine_request *previous;
    struct engine_request *next;

    wire_text_t id;  /* points at id_bytes */
    char id_bytes[]; /* with a NUL behind it, for messages */
} engine_request_t;

/* Copies the id. NULL without memory. The caller destroys, or hands it to engine_add. */
WG_MUST_CHECK engine_request_t *engine_request_new(wire_text_t id);
void engine_request_destroy(engine_request_t **request); /* accepts NULL, clears *request */

/* Does that token stop the request? */
bool engine_request_stops_at(const engine_request_t *request, int64_t token);

/* Takes over an array from malloc, in any order, in place of the present one. */
void engine_request_set_stop_ids(engine_request_t *request, int64_t *ids, size_t count);

#endif
