#include "common/status_json.h"

#include <string.h>

void status_json_number(text_buffer_t *out, int64_t value)
{
    if (value < 0)
        text_buffer_text(out, "null");
    else
        text_buffer_int(out, value);
}

static void field(text_buffer_t *out, const char *name, int64_t value)
{
    text_buffer_format(out, ",\"%s\":", name);
    status_json_number(out, value);
}

void status_json_rank(text_buffer_t *out, const status_json_rank_t *rank)
{
    const wire_registration_t *registration = rank->registration;
    text_buffer_format(out, "{\"rank\":%u,\"state\":\"%s\"", rank->rank, rank->state);
    field(out, "since_ms", rank->since_ms);
    field(out, "in_flight", rank->in_flight);
    field(out, "waiting", rank->waiting);
    field(out, "running", rank->running);
    if (rank->kv_cache_usage < 0.0)
        text_buffer_text(out, ",\"kv_cache_usage\":null");
    else
        text_buffer_format(out, ",\"kv_cache_usage\":%.6g", rank->kv_cache_usage);
    field(out, "stats_age_ms", rank->stats_age_ms);
    field(out, "max_model_len", registration->max_model_len);
    field(out, "num_gpu_blocks", registration->num_gpu_blocks);
    field(out, "block_size", registration->block_size);
    text_buffer_text(out, ",\"vllm_version\":");
    if (registration->vllm_version[0])
        text_buffer_json(out, registration->vllm_version, strlen(registration->vllm_version));
    else
        text_buffer_text(out, "null");
    text_buffer_text(out, "}");
}

void status_json_respond(http_exchange_t *exchange, int status, text_buffer_t *body)
{
    static const http_header_t json = {"Content-Type", "application/json"};
    if (body->failed) {
        wg_error_t error;
        WG_FAIL(&error, SYSTEM, "response", "out of memory");
        http_respond_error(exchange, &error, NULL, 0);
    } else {
        http_respond(exchange, status, &json, 1, body->data, body->size);
    }
    text_buffer_free(body);
}

void status_json_respond_ready(http_exchange_t *exchange, bool ready, const char *reason, size_t size)
{
    text_buffer_t body = {0};
    text_buffer_format(&body, "{\"ready\":%s", ready ? "true" : "false");
    if (!ready) {
        text_buffer_text(&body, ",\"reason\":");
        text_buffer_json(&body, reason, size);
    }
    text_buffer_text(&body, "}\n");
    status_json_respond(exchange, ready ? 200 : 503, &body);
}

void status_json_livez(void *context, http_exchange_t *exchange)
{
    (void)context;
    text_buffer_t body = {0};
    text_buffer_text(&body, "{\"live\":true}\n");
    status_json_respond(exchange, 200, &body);
}
