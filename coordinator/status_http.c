#include "coordinator/status_http.h"

#include "common/status_json.h"
#include "coordinator/coordinator_parts.h"
#include "coordinator/startup_report.h"

#include <string.h>

/* At least one rank serves. */
static void on_health(void *context, http_exchange_t *exchange)
{
    const coordinator_t *self = context;
    text_buffer_t reason = {0};
    startup_report(&reason, self->config, self->ranks, zclock_mono());
    status_json_respond_ready(exchange, rank_table_count_in(self->ranks, WG_RANK_READY) > 0, reason.data,
                              reason.size);
    text_buffer_free(&reason);
}

/* Every rank serves. */
static void on_readyz(void *context, http_exchange_t *exchange)
{
    const coordinator_t *self = context;
    text_buffer_t reason = {0};
    bool waiting = startup_report(&reason, self->config, self->ranks, zclock_mono());
    status_json_respond_ready(exchange, !waiting, reason.data, reason.size);
    text_buffer_free(&reason);
}

static void write_ranks(const coordinator_t *self, text_buffer_t *out, int64_t now_ms)
{
    text_buffer_text(out, "\"ranks\":[");
    for (uint32_t rank = 0; rank < rank_table_count(self->ranks); rank++) {
        const rank_table_rank_t *state = rank_table_get(self->ranks, rank);
        const wire_load_t *load = &load_board_loads(self->loads)[rank];
        int64_t age_ms = load_board_age_ms(self->loads, rank, now_ms);
        const status_json_rank_t row = {
            .rank = rank,
            .state = wg_rank_state_name(state->state),
            .since_ms = state->state == WG_RANK_ABSENT ? -1 : now_ms - state->since_ms,
            .in_flight = control_in_flight(self->control, rank, now_ms),
            .waiting = age_ms < 0 ? -1 : load->waiting,
            .running = age_ms < 0 ? -1 : load->running,
            .kv_cache_usage = age_ms < 0 ? -1.0 : load->kv_cache_usage,
            .stats_age_ms = age_ms,
            .registration = &state->registration,
        };
        if (rank > 0)
            text_buffer_text(out, ",");
        status_json_rank(out, &row);
    }
    text_buffer_text(out, "]");
}

static void write_frontends(const coordinator_t *self, text_buffer_t *out, int64_t now_ms)
{
    text_buffer_text(out, ",\"frontends\":[");
    for (uint32_t i = 0; i < self->config->frontend_count; i++) {
        control_frontend_t frontend = control_frontend(self->control, i, now_ms);
        text_buffer_format(out, "%s{\"name\":\"%s\",\"connected\":%s,\"last_beat_ms\":", i > 0 ? "," : "",
                           self->config->frontends[i].name, frontend.connected ? "true" : "false");
        status_json_number(out, frontend.last_beat_ms > 0 ? now_ms - frontend.last_beat_ms : -1);
        text_buffer_text(out, "}");
    }
    text_buffer_text(out, "]");
}

/* engines_running is what is published; observed_running only what an engine itself has said. */
static void write_waves(const coordinator_t *self, text_buffer_t *out)
{
    wave_driver_state_t waves = {0};
    if (self->waves)
        waves = wave_driver_state(self->waves);
    text_buffer_format(out,
                       ",\"wave\":%lld,\"engines_running\":%s,\"observed_running\":%s,\"wave_starts\":%llu,"
                       "\"wave_raises\":%llu",
                       (long long)waves.wave.current_wave, waves.wave.running ? "true" : "false",
                       waves.wave.observed ? "true" : "false", (unsigned long long)waves.starts,
                       (unsigned long long)waves.raises);
}

static void write_startup(const coordinator_t *self, text_buffer_t *out, uint64_t subscriptions,
                          int64_t now_ms)
{
    int64_t limit_ms = self->config->timeouts.startup_ms;
    bool passed = startup_deadline_passed(self->startup, now_ms);
    bool first = true;
    wg_error_t error;
    text_buffer_format(out,
                       ",\"startup\":{\"missing\":%u,\"limit_ms\":", startup_deadline_missing(self->startup));
    status_json_number(out, limit_ms > 0 ? limit_ms : -1);
    text_buffer_text(out, ",\"timeouts\":[");
    for (startup_phase_t phase = 0; passed && phase < STARTUP_PHASE_COUNT; phase++) {
        if (!startup_deadline_fault(self->startup, phase, subscriptions, now_ms, &error))
            continue;
        text_buffer_text(out, first ? "" : ",");
        text_buffer_json(out, error.message, strlen(error.message));
        first = false;
    }
    text_buffer_text(out, "]}");
}

static void on_status(void *context, http_exchange_t *exchange)
{
    const coordinator_t *self = context;
    int64_t now_ms = zclock_mono();
    text_buffer_t body = {0};
    text_buffer_t waiting = {0};
    bool complete = !startup_report(&waiting, self->config, self->ranks, now_ms);
    publisher_state_t published = {0};
    uint64_t subscriptions = 0;
    if (self->publisher) {
        published = publisher_state(self->publisher);
        subscriptions = engine_publisher_subscriptions(self->engine_publisher);
    }
    text_buffer_format(&body, "{\"process\":\"coordinator\",\"version\":\"%s\",\"ready\":%s,\"waiting\":",
                       WG_VERSION, complete ? "true" : "false");
    if (complete)
        text_buffer_text(&body, "null");
    else
        text_buffer_json(&body, waiting.data, waiting.size);
    text_buffer_text(&body, ",");
    write_ranks(self, &body, now_ms);
    write_frontends(self, &body, now_ms);
    write_waves(self, &body);
    write_startup(self, &body, subscriptions, now_ms);
    text_buffer_format(&body,
                       ",\"counters\":{\"reports\":%llu,\"stale_reports\":%llu,\"publishes\":%llu,\"engine_"
                       "subscriptions\":%llu},"
                       "\"faults\":",
                       (unsigned long long)self->reports, (unsigned long long)self->stale_reports,
                       (unsigned long long)published.publishes, (unsigned long long)subscriptions);
    faults_json(self->faults, &body);
    text_buffer_text(&body, "}\n");
    status_json_respond(exchange, 200, &body);
    text_buffer_free(&waiting);
}

const http_route_t status_http_routes[] = {
    {"GET", "/health", on_health, true},
    {"GET", "/livez", status_json_livez, true},
    {"GET", "/readyz", on_readyz, true},
    {"GET", "/status", on_status, true},
};
const size_t status_http_route_count = sizeof status_http_routes / sizeof *status_http_routes;
