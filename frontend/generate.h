/* generate.h: POST /inference/v1/generate: token ids in, token ids out, whole or as a stream of server-sent
 * events (the README has the shapes). Joins one HTTP exchange and one request of the client, and lives until
 * either ends. Owned by the loop. Tests: tests/unit/generate_test.c, tests/integration/test_generate.py */
#ifndef WG_FRONTEND_GENERATE_H
#define WG_FRONTEND_GENERATE_H

#include "common/http_server.h"
#include "frontend/client.h"

/* Answers the exchange, now or later. */
void generate_handle(client_t *client, const wg_config_t *config, http_exchange_t *exchange);

#endif
