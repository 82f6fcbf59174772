#include "frontend/frontend_http.h"

#include "common/status_json.h"
#include "frontend/frontend_parts.h"
#include "frontend/generation.h"

#include <string.h>

static void on_generate(void *context, http_exchange_t *exchange)
{
    const frontend_t *self = context;
    generations_handle(self->generations, &generation_generate, exchange);
}

static void on_completions(void *context, http_exchange_t *exchange)
{
    const frontend_t *self = context;
    generations_handle(self->generations, &generation_completions, exchange);
}

static bool any_rank_ready(const frontend_t *self)
{
    for (uint32_t i = 0; i < self->self->rank_count; i++) {
        if (dispatcher_state(client_dispatcher(self->client, i)) == WG_RANK_READY)
            return true;
    }
    return false;
}

/* At least one rank serves. */
static void on_health(void *context, http_exchange_t *exchange)
{
    static const char reason[] = "no data parallel rank is ready";
    const frontend_t *self = context;
    status_json_respond_ready(exchange, any_rank_ready(self), reason, sizeof reason - 1);
}

/* A request would be accepted now. */
static void on_readyz(void *context, http_exchange_t *exchange)
{
    const frontend_t *self = context;
    wg_error_t error = {0};
    bool ready = client_ready(self->client, &error) == WG_OK;
    status_json_respond_ready(exchange, ready, error.message, strlen(error.message));
}

static void write_model(const frontend_t *self, text_buffer_t *out, const char *name, bool is_adapter)
{
    text_buffer_text(out, "{\"id\":");
    text_buffer_json(out, name, strlen(name));
    text_buffer_text(out, ",\"object\":\"model\",\"created\":");
    text_buffer_int(out, self->started);
    text_buffer_text(out, ",\"owned_by\":\"wavegate\",\"parent\":");
    if (is_adapter)
        text_buffer_json(out, self->config->model.name, strlen(self->config->model.name));
    else
        text_buffer_text(out, "null");
    text_buffer_text(out, ",\"max_model_len\":");
    status_json_number(out, client_max_model_len(self->client));
    text_buffer_text(out, "}");
}

static void on_models(void *context, http_exchange_t *exchange)
{
    const frontend_t *self = context;
    text_buffer_t body = {0};
    text_buffer_text(&body, "{\"object\":\"list\",\"data\":[");
    write_model(self, &body, self->config->model.name, false);
    for (uint32_t i = 0; i < self->config->adapter_count; i++) {
        text_buffer_text(&body, ",");
        write_model(self, &body, self->config->adapters[i].name, true);
    }
    text_buffer_text(&body, "]}\n");
    status_json_respond(exchange, 200, &body);
}

static void write_ranks(const frontend_t *self, text_buffer_t *out, int64_t now_ms)
{
    text_buffer_text(out, "\"ranks\":[");
    for (uint32_t i = 0; i < self->self->rank_count; i++) {
        const dispatcher_t *dispatcher = client_dispatcher(self->client, i);
        const wire_load_t *load = client_load(self->client, i, now_ms);
        int64_t since_ms = dispatcher_since_ms(dispatcher);
        int64_t reported_ms = dispatcher_reported_ms(dispatcher);
        const status_json_rank_t row = {
            .rank = dispatcher_rank(dispatcher),
            .state = wg_rank_state_name(dispatcher_state(dispatcher)),
            .since_ms = since_ms > 0 ? now_ms - since_ms : -1,
            .in_flight = (int64_t)dispatcher_in_flight(dispatcher),
            .waiting = load ? load->waiting : -1,
            .running = load ? load->running : -1,
            .kv_cache_usage = load ? load->kv_cache_usage : -1.0,
            .stats_age_ms = reported_ms > 0 ? now_ms - reported_ms : -1,
            .registration = dispatcher_registration(dispatcher),
        };
        if (i > 0)
            text_buffer_text(out, ",");
        status_json_rank(out, &row);
    }
    text_buffer_text(out, "]");
}

static void write_counters(const frontend_t *self, text_buffer_t *out)
{
    client_counters_t counters = client_counters(self->client);
    text_buffer_format(out, ",\"counters\":{\"accepted\":%llu,\"ended\":{",
                       (unsigned long long)counters.accepted);
    for (int cause = 0; cause < CLIENT_CAUSE_COUNT; cause++)
        text_buffer_format(out, "%s\"%s\":%llu", cause > 0 ? "," : "",
                           client_cause_name((client_cause_t)cause),
                           (unsigned long long)counters.ended[cause]);
    text_buffer_format(out, "},\"orphan_outputs\":%llu,\"death_sentinels\":%llu,\"aborts_sent\":%llu}",
                       (unsigned long long)counters.orphan_outputs,
                       (unsigned long long)counters.death_sentinels,
                       (unsigned long long)counters.aborts_sent);
}

/* null for independent ranks. */
static void write_wave(const frontend_t *self, text_buffer_t *out)
{
    const wave_view_t *view = client_wave_view(self->client);
    if (view)
        text_buffer_format(out, ",\"wave\":%lld,\"engines_running\":%s", (long long)view->wave,
                           view->running ? "true" : "false");
    else
        text_buffer_text(out, ",\"wave\":null,\"engines_running\":null");
}

static void on_status(void *context, http_exchange_t *exchange)
{
    const frontend_t *self = context;
    int64_t now_ms = zclock_mono();
    text_buffer_t body = {0};
    wg_error_t error;
    http_server_stats_t http;
    bool ready = client_ready(self->client, &error) == WG_OK;
    http_server_stats(self->http, &http);
    text_buffer_format(
        &body, "{\"process\":\"frontend\",\"name\":\"%s\",\"version\":\"%s\",\"ready\":%s,\"reason\":",
        self->self->name, WG_VERSION, ready ? "true" : "false");
    if (ready)
        text_buffer_text(&body, "null");
    else
        text_buffer_json(&body, error.message, strlen(error.message));
    text_buffer_format(&body, ",\"degraded\":%s,",
                       client_is_degraded(self->client, now_ms) ? "true" : "false");
    write_ranks(self, &body, now_ms);
    text_buffer_format(&body, ",\"in_flight\":%zu,\"coordinator\":{\"joined\":%s,\"publish_age_ms\":",
                       client_in_flight(self->client), client_joined(self->client) ? "true" : "false");
    status_json_number(&body, client_publish_age_ms(self->client, now_ms));
    text_buffer_text(&body, "}");
    write_wave(self, &body);
    write_counters(self, &body);
    text_buffer_format(&body, ",\"http\":{\"connections\":%zu,\"requests\":%llu,\"refused\":%llu}",
                       http.connections, (unsigned long long)http.requests, (unsigned long long)http.refused);
    text_buffer_format(&body, ",\"buffered_bytes\":%zu,\"faults\":", http.buffered_bytes);
    faults_json(self->faults, &body);
    text_buffer_text(&body, "}\n");
    status_json_respond(exchange, 200, &body);
}

const http_route_t frontend_http_routes[] = {
    {"POST", "/inference/v1/generate", on_generate, false},
    {"POST", "/v1/completions", on_completions, false},
    {"GET", "/health", on_health, true},
    {"GET", "/livez", status_json_livez, true},
    {"GET", "/readyz", on_readyz, true},
    {"GET", "/v1/models", on_models, false},
    {"GET", "/status", on_status, true},
};
const size_t frontend_http_route_count = sizeof frontend_http_routes / sizeof *frontend_http_routes;
