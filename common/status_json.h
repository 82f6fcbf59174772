/* status_json.h: the parts of GET /status that both processes write alike, so that one reader serves both.
 * No state; the loop. Tests: tests/integration/test_status.py */
#ifndef WG_COMMON_STATUS_JSON_H
#define WG_COMMON_STATUS_JSON_H

#include "common/http_server.h"
#include "common/text_buffer.h"
#include "common/wire_control.h"
#include "common/wire_registration.h"

/* One rank as one process sees it. Negative numbers are unknown, and written as null. */
typedef struct {
    uint32_t rank;
    const char *state;
    int64_t since_ms; /* how long it has been in that state */
    int64_t in_flight;
    int64_t waiting;
    int64_t running;
    double kv_cache_usage;
    int64_t stats_age_ms;
    const wire_registration_t *registration;
} status_json_rank_t;

/* {"rank":0,"state":"ready",...} */
void status_json_rank(text_buffer_t *out, const status_json_rank_t *rank);

/* A number, or null where it is negative. */
void status_json_number(text_buffer_t *out, int64_t value);

/* Answers with the text as JSON, or with 500 where it ran out of memory. Frees the text. */
void status_json_respond(http_exchange_t *exchange, int status, text_buffer_t *body);

/* 200 {"ready":true} or 503 {"ready":false,"reason":"..."}. reason: any UTF-8. */
void status_json_respond_ready(http_exchange_t *exchange, bool ready, const char *reason, size_t size);

/* 200 {"live":true}: that it is answered says that the loop turns. An http_handler_fn. */
void status_json_livez(void *context, http_exchange_t *exchange);

#endif
