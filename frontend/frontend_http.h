/* frontend_http.h: the frontend's HTTP routes: POST /inference/v1/generate, and GET /health, /livez, /readyz,
 * /v1/models and /status. Owned by the loop. Tests: tests/integration/test_status.py */
#ifndef WG_FRONTEND_FRONTEND_HTTP_H
#define WG_FRONTEND_FRONTEND_HTTP_H

#include "common/http_server.h"

/* For http_server_new; their context is the frontend_t. */
extern const http_route_t frontend_http_routes[];
extern const size_t frontend_http_route_count;

#endif
