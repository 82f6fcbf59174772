/* frontend_parts.h: the inside of a frontend_t, for frontend.c, which builds it, and frontend_http.c. */
#ifndef WG_FRONTEND_FRONTEND_PARTS_H
#define WG_FRONTEND_FRONTEND_PARTS_H

#include "common/faults.h"
#include "common/http_server.h"
#include "frontend/client.h"
#include "frontend/frontend.h"
#include "frontend/generation.h"

struct frontend {
    zloop_t *loop;
    const wg_config_t *config;
    const config_frontend_t *self;
    faults_t *faults;
    client_t *client;
    generations_t *generations;
    http_server_t *http;
    int64_t started; /* seconds, Unix */
    struct {
        frontend_drained_fn *drained; /* NULL: not asked for, or done */
        void *context;
        int64_t serve_until_ms; /* monotonic */
        int64_t end_by_ms;
        bool is_refusing;
    } drain;
};

#endif
