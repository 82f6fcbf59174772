#include "common/log.h"
#include "frontend/json_body.h"
#include "frontend/json_pack.h"
#include "frontend/prompt_scan.h"
#include "frontend/request_fields.h"
#include "frontend/sampling_body.h"

#include <stdlib.h>
#include <string.h>

#define DAY_MS 86400000

wg_status_t request_check_id(const char *field, const char *id, size_t size, wg_error_t *error)
{
    bool good = size >= 1 && size <= REQUEST_ID_MAX;
    for (size_t i = 0; good && i < size; i++)
        good = id[i] > 0x20 && id[i] < 0x7f;
    return good ? WG_OK
                : wg_invalid_field(error, field, "must be 1 to %d visible ASCII characters without spaces",
                                   REQUEST_ID_MAX);
}

/* --- fields of both routes --- */

static wg_status_t read_request_id(const body_reader_t *reader, const json_field_t *field, const char *path,
                                   json_t *value)
{
    wg_status_t status = json_field_text(reader, field, path, value);
    const wire_text_t *id = &reader->body->request_id;
    return status == WG_OK ? request_check_id(path, id->data, id->size, reader->error) : status;
}

static wg_status_t read_model(const body_reader_t *reader, const json_field_t *field, const char *path,
                              json_t *value)
{
    const wg_config_t *config = reader->config;
    (void)field;
    if (!json_is_string(value) || json_string_length(value) == 0)
        return wg_invalid_field(reader->error, path, "must be a string that is not empty");
    const wire_text_t model = {json_string_value(value), json_string_length(value)};
    if (wire_text_is(model, config->model.name))
        return WG_OK;
    for (uint32_t i = 0; i < config->adapter_count; i++) {
        if (wire_text_is(model, config->adapters[i].name)) {
            reader->body->adapter = &config->adapters[i];
            return WG_OK;
        }
    }
    char name[LOG_TEXT_SIZE];
    WG_FAIL(reader->error, MODEL_NOT_FOUND, log_text(name, model.data, model.size));
    if (reader->error)
        snprintf(reader->error->param, sizeof reader->error->param, "%s", path);
    return WG_E_MODEL_NOT_FOUND;
}

static wg_status_t read_stream_options(const body_reader_t *reader, const json_field_t *field,
                                       const char *path, json_t *value)
{
    static const json_field_t fields[] = {
        {"include_usage", json_field_bool, offsetof(request_body_t, include_usage), 0, 0, false, NULL},
        {"continuous_usage_stats", json_field_bool, offsetof(request_body_t, continuous_usage), 0, 0, false,
         NULL},
    };
    static const json_table_t table = {fields, sizeof fields / sizeof *fields};
    (void)field;
    if (!json_is_object(value))
        return wg_invalid_field(reader->error, path, "must be an object");
    reader->body->has_stream_options = true;
    return json_fields_read(reader, value, "stream_options.", path, &table, 1);
}

/* Whether it is a rank is for the same code to say that reads the header. */
static wg_status_t read_rank(const body_reader_t *reader, const json_field_t *field, const char *path,
                             json_t *value)
{
    request_body_t *body = reader->body;
    (void)field;
    (void)path;
    body->has_rank = true;
    if (json_is_integer(value))
        snprintf(body->rank, sizeof body->rank, "%lld", (long long)json_integer_value(value));
    else
        snprintf(body->rank, sizeof body->rank, "(not an integer)");
    return WG_OK;
}

wg_status_t request_fields_prompt(const body_reader_t *reader, const json_field_t *field, const char *path,
                                  json_t *value)
{
    (void)reader;
    (void)field;
    (void)path;
    (void)value;
    return WG_OK;
}

#define BODY(member) offsetof(request_body_t, member)

static const json_field_t fields[] = {
    {"request_id", read_request_id, BODY(request_id), 0, 0, false, NULL},
    {"model", read_model, 0, 0, 0, false, NULL},
    {"stream", json_field_bool, BODY(stream), 0, 0, false, NULL},
    {"stream_options", read_stream_options, 0, 0, 0, false, NULL},
    {"priority", json_field_int, BODY(priority), -0x1p63, 0x1p63, false, " of 64 bits"},
    {"cache_salt", json_field_text, BODY(cache_salt), 0, 0, false, NULL},
    {"data_parallel_rank", read_rank, 0, 0, 0, false, NULL},
    {"deadline_ms", json_field_int, BODY(deadline_ms), 1, DAY_MS, false, " from 1 to 86400000"},
    {"kv_transfer_params", json_field_object, BODY(kv_transfer_params), 0, 0, false, NULL},
    {"ec_transfer_params", json_field_object, BODY(ec_transfer_params), 0, 0, false, NULL},
};

const json_table_t request_fields_table = {fields, sizeof fields / sizeof *fields};

/* --- the prompts --- */

static wg_status_t no_prompt(const body_reader_t *reader, const request_shape_t *shape)
{
    return wg_invalid_field(reader->error, shape->prompt, "must be an array of at least one token id%s",
                            shape->allows_prompts ? ", or an array of such arrays" : "");
}

/* An array that could not be scanned in the text: here it fails with words for what is wrong, or is unusual
 * but sound (a name or a number written in another way). */
static wg_status_t pack_prompt(const body_reader_t *reader, const request_shape_t *shape, const json_t *ids,
                               prompt_scan_t *scan)
{
    wire_prompt_packer_t packer;
    prompt_span_t span;
    if (!json_is_array(ids) || json_array_size(ids) == 0)
        return no_prompt(reader, shape);
    wire_prompt_begin(&packer, &reader->body->packed);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        int64_t id;
        wg_status_t status = json_fields_read_id(reader, shape->prompt, i, json_array_get(ids, i), &id);
        if (status != WG_OK)
            return status;
        wire_prompt_add(&packer, (uint32_t)id);
    }
    if (!wire_prompt_end(&packer, &span.start, &span.size, &span.count) || !prompt_scan_add_span(scan, span))
        return json_fields_no_memory(reader);
    return WG_OK;
}

static wg_status_t pack_prompts(const body_reader_t *reader, const request_shape_t *shape,
                                const json_t *value, prompt_scan_t *scan)
{
    size_t limit = (size_t)reader->config->limits.max_prompts;
    bool is_nested = shape->allows_prompts && json_is_array(json_array_get(value, 0));
    if (shape->allows_prompts && (json_is_string(value) || json_is_string(json_array_get(value, 0))))
        return wg_invalid_field(
            reader->error, shape->prompt,
            "must be token ids: text is not tokenized here; use vLLM's /tokenize, or a tokenizer");
    if (!is_nested)
        return pack_prompt(reader, shape, value, scan);
    if (json_array_size(value) > limit)
        return wg_invalid_field(reader->error, shape->prompt, "has %zu prompts, the limit is %zu",
                                json_array_size(value), limit);
    wg_status_t status = WG_OK;
    for (size_t i = 0; i < json_array_size(value) && status == WG_OK; i++)
        status = pack_prompt(reader, shape, json_array_get(value, i), scan);
    return status;
}

/* With the prompt cut out, the member must be what was put in its place. If it is not, what was cut was
 * something else, and the text as it came is the truth. */
static wg_status_t load(const body_reader_t *reader, const request_shape_t *shape, prompt_scan_t *scan,
                        const char *text, size_t size)
{
    request_body_t *body = reader->body;
    wg_status_t status = json_body_load(&body->root, scan, text, size, reader->error);
    if (status != WG_OK)
        return status;
    const json_t *prompt = json_object_get(body->root, shape->prompt);
    if (scan->is_cut && json_is_string(prompt) &&
        prompt_scan_is_mark(json_string_value(prompt), json_string_length(prompt)))
        return WG_OK;
    if (scan->is_cut) {
        json_decref(body->root);
        body->root = NULL;
        prompt_scan_free(scan);
        status = json_body_load(&body->root, scan, text, size, reader->error);
    }
    return status;
}

/* --- all of it --- */

static wg_status_t pack_extra_args(const body_reader_t *reader, packed_span_t *out)
{
    static const char *const names[] = {"kv_transfer_params", "ec_transfer_params"};
    request_body_t *body = reader->body;
    const json_t *const params[] = {body->kv_transfer_params, body->ec_transfer_params};
    size_t pairs = json_object_size(body->extra_args);
    const char *key;
    json_t *value;
    wire_pack_t pack;
    for (size_t i = 0; i < 2; i++) {
        pairs += params[i] != NULL;
        if (params[i] && json_object_get(body->extra_args, names[i]))
            return wg_invalid_field(reader->error, names[i], "is in extra_args, too");
    }
    if (pairs == 0)
        return WG_OK;
    out->start = body->packed.size;
    wire_pack_init(&pack, &body->packed);
    wire_pack_map(&pack, pairs);
    json_object_foreach((json_t *)body->extra_args, key, value) /* reads only, but takes no const */
    {
        wire_pack_literal(&pack, key);
        json_pack_value(&pack, value);
    }
    for (size_t i = 0; i < 2; i++) {
        if (!params[i])
            continue;
        wire_pack_literal(&pack, names[i]);
        json_pack_value(&pack, params[i]);
    }
    out->size = body->packed.size - out->start;
    return wire_pack_finish(&pack, "extra_args", reader->error);
}

static wire_bytes_t packed_at(const request_body_t *body, size_t start, size_t size)
{
    return (wire_bytes_t){(const uint8_t *)body->packed.data + start, size};
}

/* The buffer does not grow any more: spans become pointers. */
static wg_status_t point_at_packed(const body_reader_t *reader, const prompt_scan_t *scan,
                                   packed_span_t extra_args)
{
    request_body_t *body = reader->body;
    body->prompts = calloc(scan->span_count, sizeof *body->prompts);
    if (!body->prompts)
        return json_fields_no_memory(reader);
    body->prompt_count = scan->span_count;
    for (size_t i = 0; i < scan->span_count; i++)
        body->prompts[i] =
            (wire_prompt_t){packed_at(body, scan->spans[i].start, scan->spans[i].size), scan->spans[i].count};
    body->sampling.structured_outputs =
        packed_at(body, body->structured_outputs.start, body->structured_outputs.size);
    body->sampling.repetition_detection =
        packed_at(body, body->repetition_detection.start, body->repetition_detection.size);
    body->sampling.extra_args = packed_at(body, extra_args.start, extra_args.size);
    return WG_OK;
}

static wg_status_t parse(const body_reader_t *reader, const request_shape_t *shape, prompt_scan_t *scan,
                         const char *text, size_t size)
{
    request_body_t *body = reader->body;
    packed_span_t extra_args = {0, 0};
    wg_status_t status = load(reader, shape, scan, text, size);
    if (status == WG_OK)
        status =
            json_fields_read(reader, body->root, "", "the request body", shape->tables, shape->table_count);
    if (status == WG_OK && !scan->is_cut)
        status = pack_prompts(reader, shape, json_object_get(body->root, shape->prompt), scan);
    if (status == WG_OK && body->has_stream_options && !body->stream)
        return wg_invalid_field(reader->error, "stream_options", "needs \"stream\": true");
    body->include_usage = body->include_usage || body->continuous_usage;
    if (status == WG_OK)
        status = sampling_body_finish(reader, shape->sampling);
    if (status == WG_OK)
        status = pack_extra_args(reader, &extra_args);
    if (status == WG_OK)
        status = point_at_packed(reader, scan, extra_args);
    return status;
}

wg_status_t request_body_parse(request_body_t *out, const request_shape_t *shape, const wg_config_t *config,
                               const char *text, size_t size, wg_error_t *error)
{
    prompt_scan_t scan;
    const body_reader_t reader = {out, config, error};
    const prompt_scan_rules_t rules = {
        .member = shape->prompt,
        .allows_lists = shape->allows_prompts,
        .max_lists = (size_t)config->limits.max_prompts,
        .vocabulary = json_fields_vocabulary(config),
        .max_depth = (unsigned)config->limits.max_json_depth,
    };
    *out = (request_body_t){.deadline_ms = config->timeouts.request_deadline_ms};
    msgpack_sbuffer_init(&out->packed);
    sampling_body_defaults(out, config);
    if (shape->max_tokens > 0)
        out->sampling.max_tokens = shape->max_tokens;
    wg_status_t status = prompt_scan(&scan, &rules, text, size, &out->packed, error);
    if (status == WG_OK)
        status = parse(&reader, shape, &scan, text, size);
    prompt_scan_free(&scan);
    return status;
}

void request_body_free(request_body_t *body)
{
    json_decref(body->root);
    msgpack_sbuffer_destroy(&body->packed);
    free(body->prompts);
    free((void *)body->stop_ids.ids); /* these three are const for their readers only */
    free((void *)body->allowed_ids.ids);
    free((void *)body->logprob_ids.ids);
    free(body->logit_bias);
    *body = (request_body_t){0};
}
