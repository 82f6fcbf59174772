#include "common/http_internal.h"

#include <string.h>

void http_error_json(text_buffer_t *out, const wg_error_t *error)
{
    text_buffer_text(out, "{\"error\":{\"message\":");
    text_buffer_json(out, error->message, strlen(error->message));
    text_buffer_format(out, ",\"type\":\"%s\",\"param\":", wg_status_type(error->status));
    if (error->param[0] != '\0')
        text_buffer_json(out, error->param, strlen(error->param));
    else
        text_buffer_text(out, "null");
    text_buffer_format(out, ",\"code\":\"%s\"}}", wg_status_code(error->status));
}

void http_respond_error(http_exchange_t *exchange, const wg_error_t *error, const http_header_t *headers,
                        size_t header_count)
{
    static const http_header_t own[] = {{"Content-Type", "application/json"}, {"Retry-After", "1"}};
    int status = wg_status_http(error->status) ? wg_status_http(error->status) : 500;
    bool may_retry = status == 429 || status == 503;
    text_buffer_t body = {0};
    http_error_json(&body, error);
    http_exchange_respond(exchange, status, own, may_retry ? 2 : 1, headers, header_count, body.data,
                          body.size);
    text_buffer_free(&body);
}
