#include "frontend/frontend.h"

#include "common/exposure.h"
#include "common/log.h"
#include "common/rank_map.h"
#include "frontend/frontend_http.h"
#include "frontend/frontend_parts.h"

/* To each rank an input and an output, to the coordinator the control link and the load feed. */
enum { CONNECTIONS_PER_RANK = 2, CONNECTIONS_TO_COORDINATOR = 2 };

static wg_status_t open_http(frontend_t *self, zloop_t *loop, wg_error_t *error)
{
    http_server_options_t options = {
        .listen = self->self->http,
        .routes = frontend_http_routes,
        .route_count = frontend_http_route_count,
        .context = self,
    };
    size_t peers = CONNECTIONS_TO_COORDINATOR + (size_t)CONNECTIONS_PER_RANK * self->self->rank_count;
    wg_status_t status = http_server_set_limits(&options, self->config, peers, error);
    return status == WG_OK ? http_server_new(&self->http, loop, &options, error) : status;
}

wg_status_t frontend_new(frontend_t **out, zloop_t *loop, const wg_config_t *config, const char *name,
                         wg_error_t *error)
{
    wg_status_t status = WG_FAIL(error, SYSTEM, "frontend", "out of memory");
    frontend_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return status;
    self->loop = loop;
    self->config = config;
    self->self = wg_config_frontend(config, name);
    self->started = zclock_time() / 1000;
    self->faults = faults_new();
    if (self->faults)
        status = client_new(&self->client, loop, config, self->self, self->faults, error);
    if (status == WG_OK) {
        self->generations = generations_new(loop, self->client, config);
        status = self->generations ? open_http(self, loop, error)
                                   : WG_FAIL(error, SYSTEM, "frontend", "out of memory");
    }
    if (status != WG_OK) {
        frontend_destroy(&self);
        return status;
    }
    char ranks[128];
    rank_map_text(ranks, sizeof ranks, self->self->ranks, self->self->rank_count);
    log_notice("listening http=%s:%u input=%s output=%s ranks=[%s] lame_duck_ms=%lld drain_ms=%lld",
               self->self->http.host, http_server_port(self->http), self->self->input.bind,
               self->self->output.bind, ranks, (long long)config->timeouts.lame_duck_ms,
               (long long)config->timeouts.drain_ms);
    exposure_warn(config, self->self);
    *out = self;
    return WG_OK;
}

void frontend_destroy(frontend_t **frontend)
{
    frontend_t *self = *frontend;
    if (!self)
        return;
    http_server_destroy(&self->http); /* before the client: it reports who was still there */
    generations_destroy(&self->generations);
    client_destroy(&self->client);
    faults_destroy(&self->faults);
    free(self);
    *frontend = NULL;
}
