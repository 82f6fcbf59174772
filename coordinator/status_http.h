/* status_http.h: the coordinator's HTTP routes: GET /health, /livez, /readyz and /status.
 * Owned by the coordinator's loop. Tests: tests/integration/test_status.py */
#ifndef WG_COORDINATOR_STATUS_HTTP_H
#define WG_COORDINATOR_STATUS_HTTP_H

#include "common/http_server.h"

/* For http_server_new; their context is the coordinator_t. */
extern const http_route_t status_http_routes[];
extern const size_t status_http_route_count;

#endif
