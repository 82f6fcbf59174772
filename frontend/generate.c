/* The head of a stream goes out with its first event, so that a failure before it still gets its own status.
 * After the head, a failure is one error event and the terminator (design.md 5). */
#include "frontend/generate.h"

#include "common/log.h"
#include "frontend/generate_body.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define RANK_HEADER "X-data-parallel-rank"
#define ID_HEADER "X-Request-Id"

typedef struct {
    client_t *client;
    const wg_config_t *config;
    http_exchange_t *exchange;
    in_flight_t *request;
    char id[GENERATE_ID_MAX + 1];
    char rank[8];
    bool stream;
    bool include_usage;
    bool begun; /* the head of the stream is out */
    size_t prompt_tokens;
    size_t completion_tokens;
    text_buffer_t ids;   /* not a stream: the token ids so far, with commas */
    text_buffer_t event; /* a stream: the event that is being written */
} generation_t;

static void free_generation(generation_t *self)
{
    text_buffer_free(&self->ids);
    text_buffer_free(&self->event);
    free(self);
}

/* --- what is written --- */

static void write_ids(text_buffer_t *out, const wire_output_t *output)
{
    wire_reader_t tokens = output->tokens;
    for (uint32_t i = 0; i < output->token_count; i++) {
        int64_t id;
        if (!wire_reader_int(&tokens, &id))
            return; /* cannot be: the decoder has read them all */
        if (i > 0)
            text_buffer_text(out, ",");
        text_buffer_int(out, id);
    }
}

static const char *finish_name(wire_finish_t finish)
{
    switch (finish) {
    case WIRE_FINISH_STOP:
        return "stop";
    case WIRE_FINISH_LENGTH:
        return "length";
    case WIRE_FINISH_REPETITION:
        return "repetition";
    default: /* these end in an error, not in a reason */
        return NULL;
    }
}

static void write_id(const generation_t *self, text_buffer_t *out)
{
    text_buffer_text(out, "{\"request_id\":");
    text_buffer_json(out, self->id, strlen(self->id));
}

static void write_usage(const generation_t *self, text_buffer_t *out)
{
    text_buffer_format(
        out, "\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,\"total_tokens\":%zu}",
        self->prompt_tokens, self->completion_tokens, self->prompt_tokens + self->completion_tokens);
}

static void response_headers(const generation_t *self, const char *content_type, http_header_t out[3])
{
    out[0] = (http_header_t){"Content-Type", content_type};
    out[1] = (http_header_t){ID_HEADER, self->id};
    out[2] = (http_header_t){RANK_HEADER, self->rank};
}

/* Sends self->event. Returns the bytes that the reader has not taken yet. */
static size_t send_event(generation_t *self)
{
    if (!self->begun) {
        http_header_t headers[3];
        response_headers(self, "text/event-stream", headers);
        http_stream_begin(self->exchange, 200, headers, 3);
        self->begun = true;
    }
    size_t waiting = http_stream_write(self->exchange, self->event.data, self->event.size);
    text_buffer_clear(&self->event);
    return waiting;
}

static void end_stream(generation_t *self)
{
    text_buffer_text(&self->event, "data: [DONE]\n\n");
    send_event(self);
    http_stream_end(self->exchange);
}

static void write_error_event(generation_t *self, const wg_error_t *error)
{
    text_buffer_text(&self->event, "data: ");
    http_error_json(&self->event, error);
    text_buffer_text(&self->event, "\n\n");
}

/* --- the request's events --- */

static void stop_slow_reader(generation_t *self, size_t waiting)
{
    wg_error_t error;
    client_abort(self->client, self->request, CLIENT_SLOW_CONSUMER);
    WG_FAIL(&error, SLOW_CONSUMER, self->id, waiting);
    write_error_event(self, &error);
    end_stream(self);
    free_generation(self);
}

static void stream_output(generation_t *self, const wire_output_t *output)
{
    const char *finish = finish_name(output->finish);
    if (output->token_count == 0 && !finish)
        return;
    text_buffer_text(&self->event, "data: ");
    write_id(self, &self->event);
    text_buffer_text(&self->event, ",\"choices\":[{\"index\":0,\"token_ids\":[");
    write_ids(&self->event, output);
    text_buffer_text(&self->event, "]");
    if (finish)
        text_buffer_format(&self->event, ",\"finish_reason\":\"%s\"", finish);
    text_buffer_text(&self->event, "}]}\n\n");
    size_t size = self->event.size;
    size_t waiting = send_event(self);
    /* What was written just now cannot have been read yet, and after the last event nothing more comes. */
    bool slow = waiting > size && waiting - size > (size_t)self->config->limits.max_stream_bytes;
    if (slow && output->finish == WIRE_FINISH_NONE)
        stop_slow_reader(self, waiting);
}

static void on_output(void *user, const wire_output_t *output)
{
    generation_t *self = user;
    self->completion_tokens += output->token_count;
    if (self->stream) {
        stream_output(self, output);
        return;
    }
    if (self->ids.size > 0 && output->token_count > 0)
        text_buffer_text(&self->ids, ",");
    write_ids(&self->ids, output);
}

static void respond_error(generation_t *self, const wg_error_t *error)
{
    const http_header_t id = {ID_HEADER, self->id};
    http_respond_error(self->exchange, error, &id, self->id[0] ? 1 : 0);
}

static void respond_whole(generation_t *self, client_cause_t cause)
{
    text_buffer_t body = {0};
    http_header_t headers[3];
    write_id(self, &body);
    text_buffer_text(&body, ",\"model\":");
    text_buffer_json(&body, self->config->model.name, strlen(self->config->model.name));
    text_buffer_format(&body, ",\"created\":%" PRId64 ",\"choices\":[{\"index\":0,\"token_ids\":[",
                       zclock_time() / 1000);
    text_buffer_bytes(&body, self->ids.data, self->ids.size);
    text_buffer_format(&body, "],\"finish_reason\":\"%s\",\"logprobs\":null}],", client_cause_name(cause));
    write_usage(self, &body);
    text_buffer_text(&body,
                     ",\"prompt_logprobs\":null,\"kv_transfer_params\":null,\"ec_transfer_params\":null}\n");
    if (body.failed || self->ids.failed) {
        wg_error_t error;
        WG_FAIL(&error, SYSTEM, "response", "out of memory");
        respond_error(self, &error);
    } else {
        response_headers(self, "application/json", headers);
        http_respond(self->exchange, 200, headers, 3, body.data, body.size);
    }
    text_buffer_free(&body);
}

static void finish_stream(generation_t *self)
{
    if (self->include_usage) {
        text_buffer_text(&self->event, "data: ");
        write_id(self, &self->event);
        text_buffer_text(&self->event, ",\"choices\":[],");
        write_usage(self, &self->event);
        text_buffer_text(&self->event, "}\n\n");
    }
    end_stream(self);
}

static void on_end(void *user, client_cause_t cause, const wg_error_t *error)
{
    generation_t *self = user;
    if (error && self->begun) {
        write_error_event(self, error);
        end_stream(self);
    } else if (error) {
        respond_error(self, error);
    } else if (self->stream) {
        finish_stream(self);
    } else {
        respond_whole(self, cause);
    }
    free_generation(self);
}

static const client_events_t request_events = {.on_output = on_output, .on_end = on_end};

static void on_gone(void *context, http_exchange_t *exchange)
{
    (void)context;
    generation_t *self = http_exchange_user(exchange);
    client_abort(self->client, self->request, CLIENT_GONE);
    free_generation(self);
}

/* --- the way in --- */

static wg_status_t check_content_type(const http_exchange_t *exchange, wg_error_t *error)
{
    static const char json[] = "application/json";
    const char *type = http_header(exchange, "Content-Type");
    bool good = !type || (strncasecmp(type, json, sizeof json - 1) == 0 &&
                          (type[sizeof json - 1] == '\0' || strchr("; \t", type[sizeof json - 1])));
    return good ? WG_OK : WG_FAIL(error, UNSUPPORTED_MEDIA_TYPE, json);
}

/* The body's, else the header's, else a new one. */
static wg_status_t choose_id(generation_t *self, const generate_body_t *body, wg_error_t *error)
{
    uint64_t random[2];
    const char *header = http_header(self->exchange, ID_HEADER);
    if (body->request_id.data) {
        memcpy(self->id, body->request_id.data, body->request_id.size);
    } else if (header) {
        wg_status_t status = generate_check_id(ID_HEADER, header, strlen(header), error);
        if (status != WG_OK)
            return status;
        memcpy(self->id, header, strlen(header));
    } else if (getrandom(random, sizeof random, 0) == sizeof random) {
        snprintf(self->id, sizeof self->id, "gen-%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    } else {
        return WG_FAIL(error, SYSTEM, "random request id", strerror(errno));
    }
    return WG_OK;
}

/* Only digits: what is not a rank is refused, never balanced as if nothing had been said (cases B031). */
static wg_status_t parse_rank(const client_t *client, const char *text, uint32_t *rank, wg_error_t *error)
{
    size_t digits = strspn(text, "0123456789");
    unsigned long value = strtoul(text, NULL, 10);
    if (digits == 0 || digits > 9 || text[digits] || value > WG_RANK_MAX) {
        char shown[LOG_TEXT_SIZE];
        log_text(shown, text, strlen(text));
        return client_not_connected(client, shown[0] ? shown : "(empty)", error);
    }
    *rank = (uint32_t)value;
    return WG_OK;
}

static wg_status_t choose_pin(const generation_t *self, const generate_body_t *body, client_submission_t *out,
                              wg_error_t *error)
{
    size_t headers = http_header_count(self->exchange, RANK_HEADER);
    uint32_t rank = 0;
    out->pinned = headers > 0 || body->has_rank;
    if (headers > 1)
        return client_not_connected(self->client, "(the header is there twice)", error);
    wg_status_t status = WG_OK;
    if (headers == 1)
        status = parse_rank(self->client, http_header(self->exchange, RANK_HEADER), &out->rank, error);
    if (status != WG_OK || !body->has_rank)
        return status;
    status = parse_rank(self->client, body->rank, &rank, error);
    if (status == WG_OK && headers == 1 && rank != out->rank)
        return wg_invalid_field(error, "data_parallel_rank", "the body says %u, the header %u", rank,
                                out->rank);
    out->rank = rank;
    return status;
}

static wg_status_t submit(generation_t *self, const generate_body_t *body, wg_error_t *error)
{
    client_submission_t submission = {
        .prompt = body->prompt,
        .prompt_count = body->prompt_count,
        .sampling = body->sampling,
        .cache_salt = body->cache_salt,
        .priority = body->priority,
    };
    wg_status_t status = choose_id(self, body, error);
    if (status == WG_OK)
        status = choose_pin(self, body, &submission, error);
    if (status != WG_OK)
        return status;
    submission.id = (wire_text_t){self->id, strlen(self->id)};
    status = client_submit(self->client, &submission, &request_events, self, &self->request, error);
    if (status == WG_OK)
        snprintf(self->rank, sizeof self->rank, "%u", self->request->rank);
    return status;
}

void generate_handle(client_t *client, const wg_config_t *config, http_exchange_t *exchange)
{
    wg_error_t error;
    generate_body_t body = {0};
    size_t size;
    const char *text = http_body(exchange, &size);
    generation_t *self = calloc(1, sizeof *self);
    if (!self) {
        WG_FAIL(&error, SYSTEM, "request", "out of memory");
        http_respond_error(exchange, &error, NULL, 0);
        return;
    }
    *self = (generation_t){.client = client, .config = config, .exchange = exchange};
    wg_status_t status = check_content_type(exchange, &error);
    if (status == WG_OK)
        status = generate_body_parse(&body, config, text, size, &error);
    self->stream = body.stream;
    self->include_usage = body.include_usage;
    self->prompt_tokens = body.prompt_count;
    if (status == WG_OK)
        status = submit(self, &body, &error);
    generate_body_free(&body);
    if (status != WG_OK) {
        respond_error(self, &error);
        free_generation(self);
        return;
    }
    http_exchange_watch(exchange, on_gone, self);
}
