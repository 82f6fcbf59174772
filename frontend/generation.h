/* generation.h: the routes that generate: each joins one HTTP exchange and one request of the client, and
 * lives until either ends. The answer is whole, or a stream of server-sent events (the README has the
 * shapes). Owned by the loop. Tests: tests/unit/generation_test.c, tests/integration/test_generate.py,
 * test_completions.py */
#ifndef WG_FRONTEND_GENERATION_H
#define WG_FRONTEND_GENERATION_H

#include "common/http_server.h"
#include "frontend/answer.h"
#include "frontend/client.h"
#include "frontend/request_body.h"

typedef struct generations generations_t; /* all of one frontend, with the clock that they share */

typedef struct {
    const char *id_prefix; /* of an id that the client did not give */
    request_body_parse_fn *parse;
    const answer_form_t *form;
    client_field_names_t names;
} generation_route_t;

extern const generation_route_t generation_generate;    /* POST /inference/v1/generate */
extern const generation_route_t generation_completions; /* POST /v1/completions */

/* NULL without memory. All three must outlive it. */
WG_MUST_CHECK generations_t *generations_new(zloop_t *loop, client_t *client, const wg_config_t *config);
/* When every exchange has ended, as they have when the HTTP server is destroyed. Accepts NULL, clears. */
void generations_destroy(generations_t **generations);

/* Answers the exchange, now or later. */
void generations_handle(generations_t *generations, const generation_route_t *route,
                        http_exchange_t *exchange);

#endif
