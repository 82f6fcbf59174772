#include "frontend/generation_parts.h"

#include "common/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Of traceparent and tracestate; W3C Trace Context asks for at least 512. */
#define TRACE_BYTES_MAX 1024u

const generation_route_t generation_generate = {
    .id_prefix = "gen-",
    .parse = generate_body_parse,
    .form = &generate_form,
    .names = {"token_ids", "sampling_params.max_tokens", "sampling_params.min_tokens", "sampling_params.n"},
};

const generation_route_t generation_completions = {
    .id_prefix = "cmpl-",
    .parse = completions_body_parse,
    .form = &completions_form,
    .names = {"prompt", "max_tokens", "min_tokens", "n"},
};

static wg_status_t check_content_type(const http_exchange_t *exchange, wg_error_t *error)
{
    static const char json[] = "application/json";
    const char *type = http_header(exchange, "Content-Type");
    bool good = !type || (strncasecmp(type, json, sizeof json - 1) == 0 &&
                          (type[sizeof json - 1] == '\0' || strchr("; \t", type[sizeof json - 1])));
    return good ? WG_OK : WG_FAIL(error, UNSUPPORTED_MEDIA_TYPE, json);
}

/* The body's, else the header's, else a new one. */
static wg_status_t choose_id(generation_t *self, const request_body_t *body, wg_error_t *error)
{
    uint64_t random[2];
    const char *header = http_header(self->exchange, ID_HEADER);
    if (body->request_id.data) {
        memcpy(self->id, body->request_id.data, body->request_id.size);
    } else if (header) {
        wg_status_t status = request_check_id(ID_HEADER, header, strlen(header), error);
        if (status != WG_OK)
            return status;
        memcpy(self->id, header, strlen(header));
    } else if (getrandom(random, sizeof random, 0) == sizeof random) {
        snprintf(self->id, sizeof self->id, "%s%016" PRIx64 "%016" PRIx64, self->route->id_prefix, random[0],
                 random[1]);
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

static wg_status_t choose_pin(const generation_t *self, const request_body_t *body, client_submission_t *out,
                              wg_error_t *error)
{
    const client_t *client = self->all->client;
    size_t headers = http_header_count(self->exchange, RANK_HEADER);
    uint32_t rank = 0;
    out->pinned = headers > 0 || body->has_rank;
    if (headers > 1)
        return client_not_connected(client, "(the header is there twice)", error);
    wg_status_t status = WG_OK;
    if (headers == 1)
        status = parse_rank(client, http_header(self->exchange, RANK_HEADER), &out->rank, error);
    if (status != WG_OK || !body->has_rank)
        return status;
    status = parse_rank(client, body->rank, &rank, error);
    if (status == WG_OK && headers == 1 && rank != out->rank)
        return wg_invalid_field(error, "data_parallel_rank", "the body says %u, the header %u", rank,
                                out->rank);
    out->rank = rank;
    return status;
}

/* As W3C wants it, a header that is not sound is dropped, and the request goes on without a trace. */
static wire_text_t trace_header(const http_exchange_t *exchange, const char *name)
{
    const char *value = http_header(exchange, name);
    size_t size = value ? strlen(value) : 0;
    bool good = size > 0 && size <= TRACE_BYTES_MAX && http_header_count(exchange, name) == 1;
    for (size_t i = 0; good && i < size; i++)
        good = value[i] >= 0x20 && value[i] < 0x7f;
    return good ? (wire_text_t){value, size} : (wire_text_t){NULL, 0};
}

static wire_trace_t read_trace(const http_exchange_t *exchange)
{
    wire_trace_t trace = {.traceparent = trace_header(exchange, "traceparent")};
    if (trace.traceparent.data)
        trace.tracestate = trace_header(exchange, "tracestate");
    return trace;
}

static wg_status_t prepare_answer(generation_t *self, const request_body_t *body, wg_error_t *error)
{
    const wg_config_t *config = self->all->config;
    const wire_sampling_t *sampling = &body->sampling;
    answer_t *answer = &self->answer;
    if (!answer_init(answer, (uint32_t)(body->prompt_count * (size_t)body->n)))
        return WG_FAIL(error, SYSTEM, "request", "out of memory");
    answer->id = self->id;
    answer->model = body->adapter ? body->adapter->name : config->model.name;
    answer->created = zclock_time() / 1000;
    answer->choices_per_prompt = (uint32_t)body->n;
    answer->continuous_usage = body->continuous_usage;
    answer->has_logprobs = sampling->logprobs != WIRE_UNSET || sampling->logprob_token_ids.count > 0;
    answer->has_prompt_logprobs = sampling->prompt_logprobs != WIRE_UNSET;
    answer->top_logprobs =
        sampling->logprobs != WIRE_UNSET ? sampling->logprobs : (int64_t)sampling->logprob_token_ids.count;
    answer->top_prompt_logprobs = sampling->prompt_logprobs;
    for (size_t i = 0; i < body->prompt_count; i++)
        answer->prompt_tokens += body->prompts[i].count;
    return WG_OK;
}

/* Says the rank in the response where there is one for all choices. */
static void note_rank(generation_t *self)
{
    uint32_t rank = client_request_rank(self->request, 0);
    for (uint32_t i = 1; i < self->answer.choice_count; i++) {
        if (client_request_rank(self->request, i) != rank)
            return;
    }
    snprintf(self->rank, sizeof self->rank, "%u", rank);
}

static void set_times(generation_t *self, const request_body_t *body)
{
    self->written_ms = zclock_mono();
    self->deadline_ms = body->deadline_ms;
    self->due_ms = body->deadline_ms > 0 ? self->written_ms + body->deadline_ms : 0;
}

static wg_status_t submit(generation_t *self, const request_body_t *body, wg_error_t *error)
{
    const config_adapter_t *adapter = body->adapter;
    wire_lora_t lora = {0};
    client_submission_t submission = {
        .prompts = body->prompts,
        .prompt_count = body->prompt_count,
        .choices_per_prompt = (uint32_t)body->n,
        .sampling = body->sampling,
        .max_tokens_may_shrink = !body->has_max_tokens,
        .cache_salt = body->cache_salt,
        .trace = read_trace(self->exchange),
        .priority = body->priority,
        .names = &self->route->names,
    };
    if (adapter) {
        lora = (wire_lora_t){
            {adapter->name, strlen(adapter->name)}, adapter->id, {adapter->path, strlen(adapter->path)}};
        submission.lora = &lora;
    }
    wg_status_t status = choose_id(self, body, error);
    if (status == WG_OK)
        status = choose_pin(self, body, &submission, error);
    if (status == WG_OK)
        status = prepare_answer(self, body, error);
    if (status != WG_OK)
        return status;
    submission.id = (wire_text_t){self->id, strlen(self->id)};
    return client_submit(self->all->client, &submission, &generation_events, self, &self->request, error);
}

static wg_status_t start(generation_t *self, wg_error_t *error)
{
    request_body_t body = {0};
    size_t size;
    const char *text = http_body(self->exchange, &size);
    wg_status_t status = check_content_type(self->exchange, error);
    if (status == WG_OK)
        status = self->route->parse(&body, self->all->config, text, size, error);
    self->stream = body.stream;
    self->include_usage = body.include_usage;
    if (status == WG_OK)
        status = submit(self, &body, error);
    if (status == WG_OK) {
        set_times(self, &body);
        note_rank(self);
    }
    request_body_free(&body);
    return status;
}

void generations_handle(generations_t *generations, const generation_route_t *route,
                        http_exchange_t *exchange)
{
    wg_error_t error;
    generation_t *self = calloc(1, sizeof *self);
    if (!self) {
        WG_FAIL(&error, SYSTEM, "request", "out of memory");
        http_respond_error(exchange, &error, NULL, 0);
        return;
    }
    *self = (generation_t){.all = generations, .route = route, .exchange = exchange};
    if (start(self, &error) != WG_OK) {
        generation_respond_error(self, &error);
        generation_free(self);
        return;
    }
    generation_clock_add(self);
    generation_watch(self);
}
