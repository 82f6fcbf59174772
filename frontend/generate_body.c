#include "frontend/generate_body.h"

#include "common/log.h"
#include "frontend/json_body.h"

#include <float.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef wg_status_t read_fn(generate_body_t *out, const wg_config_t *config, const char *path, json_t *value,
                            wg_error_t *error);

typedef struct {
    const char *name;
    const char *path; /* how errors name it */
    read_fn *read;
} field_t;

/* Ids above int32 crash some kernels even where the vocabulary is not known. */
static int64_t vocabulary(const wg_config_t *config)
{
    return config->model.vocab_size > 0 ? config->model.vocab_size : (int64_t)INT32_MAX + 1;
}

static wg_status_t out_of_memory(wg_error_t *error)
{
    return WG_FAIL(error, SYSTEM, "request body", "out of memory");
}

/* Reads every member of the object by its field. null is like absent. */
static wg_status_t read_object(generate_body_t *out, const wg_config_t *config, json_t *object,
                               const char *context, const field_t *fields, size_t count, wg_error_t *error)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t at = 0;
        while (at < count && strcmp(key, fields[at].name) != 0)
            at++;
        if (at == count) {
            char name[LOG_TEXT_SIZE];
            log_text(name, key, strlen(key));
            WG_FAIL(error, UNSUPPORTED_FIELD, name, context);
            snprintf(error->param, sizeof error->param, "%.63s", name);
            return WG_E_UNSUPPORTED_FIELD;
        }
        if (json_is_null(value))
            continue;
        wg_status_t status = fields[at].read(out, config, fields[at].path, value, error);
        if (status != WG_OK)
            return status;
    }
    return WG_OK;
}

static wg_status_t read_bool(bool *out, const char *path, json_t *value, wg_error_t *error)
{
    if (!json_is_boolean(value))
        return wg_invalid_field(error, path, "must be true or false");
    *out = json_is_true(value);
    return WG_OK;
}

static wg_status_t read_text(wire_text_t *out, const char *path, json_t *value, wg_error_t *error)
{
    if (!json_is_string(value) || json_string_length(value) == 0)
        return wg_invalid_field(error, path, "must be a string that is not empty");
    *out = (wire_text_t){json_string_value(value), json_string_length(value)};
    return WG_OK;
}

/* One id of the vocabulary. */
static wg_status_t read_id(int64_t *out, const wg_config_t *config, const char *path, size_t at,
                           json_t *value, wg_error_t *error)
{
    int64_t limit = vocabulary(config);
    if (!json_is_integer(value))
        return wg_invalid_field(error, path, "element %zu must be an integer", at);
    *out = json_integer_value(value);
    if (*out < 0 || *out >= limit)
        return wg_invalid_field(error, path, "element %zu is %lld, but must be from 0 to %lld", at,
                                (long long)*out, (long long)limit - 1);
    return WG_OK;
}

/* --- sampling_params --- */

typedef struct {
    const char *name;
    size_t offset; /* in wire_sampling_t */
    double low;
    double high;
    bool above_low; /* low itself is not allowed */
    const char *range;
} float_range_t;

static const float_range_t float_ranges[] = {
    {"sampling_params.temperature", offsetof(wire_sampling_t, temperature), 0.0, 2.0, false, "from 0 to 2"},
    {"sampling_params.top_p", offsetof(wire_sampling_t, top_p), 0.0, 1.0, true, "above 0 and at most 1"},
    {"sampling_params.min_p", offsetof(wire_sampling_t, min_p), 0.0, 1.0, false, "from 0 to 1"},
    {"sampling_params.presence_penalty", offsetof(wire_sampling_t, presence_penalty), -2.0, 2.0, false,
     "from -2 to 2"},
    {"sampling_params.frequency_penalty", offsetof(wire_sampling_t, frequency_penalty), -2.0, 2.0, false,
     "from -2 to 2"},
    {"sampling_params.repetition_penalty", offsetof(wire_sampling_t, repetition_penalty), 0.0, 1e308, true,
     "above 0"},
};

static wg_status_t read_float(generate_body_t *out, const wg_config_t *config, const char *path,
                              json_t *value, wg_error_t *error)
{
    (void)config;
    const float_range_t *range = float_ranges;
    while (strcmp(range->name, path) != 0)
        range++;
    double number = json_is_number(value) ? json_number_value(value) : -1e308; /* below every range */
    /* kernels take 32 bits, where anything below FLT_MIN may become 0 */
    bool in_range = number <= range->high && number >= (range->above_low ? (double)FLT_MIN : range->low);
    if (!in_range)
        return wg_invalid_field(error, path, "must be a number %s", range->range);
    memcpy((char *)&out->sampling + range->offset, &number, sizeof number);
    return WG_OK;
}

typedef struct {
    const char *name;
    size_t offset; /* in wire_sampling_t */
    int64_t low;
    const char *range;
} int_range_t;

static const int_range_t int_ranges[] = {
    {"sampling_params.top_k", offsetof(wire_sampling_t, top_k), -1, "-1, 0 (both: off) or above"},
    {"sampling_params.max_tokens", offsetof(wire_sampling_t, max_tokens), 1, "at least 1"},
    {"sampling_params.min_tokens", offsetof(wire_sampling_t, min_tokens), 0, "at least 0"},
};

static wg_status_t read_int(generate_body_t *out, const wg_config_t *config, const char *path, json_t *value,
                            wg_error_t *error)
{
    (void)config;
    const int_range_t *range = int_ranges;
    while (strcmp(range->name, path) != 0)
        range++;
    int64_t number = json_is_integer(value) ? json_integer_value(value) : INT64_MIN;
    if (number < range->low)
        return wg_invalid_field(error, path, "must be an integer, %s", range->range);
    memcpy((char *)&out->sampling + range->offset, &number, sizeof number);
    return WG_OK;
}

static wg_status_t read_seed(generate_body_t *out, const wg_config_t *config, const char *path, json_t *value,
                             wg_error_t *error)
{
    (void)config;
    if (!json_is_integer(value))
        return wg_invalid_field(error, path, "must be an integer of 64 bits");
    out->sampling.has_seed = true;
    out->sampling.seed = json_integer_value(value);
    return WG_OK;
}

static wg_status_t read_ignore_eos(generate_body_t *out, const wg_config_t *config, const char *path,
                                   json_t *value, wg_error_t *error)
{
    (void)config;
    return read_bool(&out->sampling.ignore_eos, path, value, error);
}

static wg_status_t read_stop_token_ids(generate_body_t *out, const wg_config_t *config, const char *path,
                                       json_t *value, wg_error_t *error)
{
    if (!json_is_array(value))
        return wg_invalid_field(error, path, "must be an array of token ids");
    size_t count = json_array_size(value);
    out->stop_ids = malloc((count + config->model.eos_count) * sizeof *out->stop_ids);
    if (!out->stop_ids && count > 0)
        return out_of_memory(error);
    for (size_t i = 0; i < count; i++) {
        wg_status_t status = read_id(&out->stop_ids[i], config, path, i, json_array_get(value, i), error);
        if (status != WG_OK)
            return status;
    }
    out->user_stop_count = count;
    return WG_OK;
}

static const field_t sampling_fields[] = {
    {"temperature", "sampling_params.temperature", read_float},
    {"top_p", "sampling_params.top_p", read_float},
    {"top_k", "sampling_params.top_k", read_int},
    {"min_p", "sampling_params.min_p", read_float},
    {"seed", "sampling_params.seed", read_seed},
    {"max_tokens", "sampling_params.max_tokens", read_int},
    {"min_tokens", "sampling_params.min_tokens", read_int},
    {"presence_penalty", "sampling_params.presence_penalty", read_float},
    {"frequency_penalty", "sampling_params.frequency_penalty", read_float},
    {"repetition_penalty", "sampling_params.repetition_penalty", read_float},
    {"stop_token_ids", "sampling_params.stop_token_ids", read_stop_token_ids},
    {"ignore_eos", "sampling_params.ignore_eos", read_ignore_eos},
};

static wg_status_t read_sampling(generate_body_t *out, const wg_config_t *config, const char *path,
                                 json_t *value, wg_error_t *error)
{
    if (!json_is_object(value))
        return wg_invalid_field(error, path, "must be an object");
    wg_status_t status = read_object(out, config, value, path, sampling_fields,
                                     sizeof sampling_fields / sizeof *sampling_fields, error);
    int64_t max_tokens = out->sampling.max_tokens;
    if (status == WG_OK && max_tokens > 0 && out->sampling.min_tokens > max_tokens)
        return wg_invalid_field(error, "sampling_params.min_tokens", "must be at most max_tokens = %lld",
                                (long long)max_tokens);
    return status;
}

/* The user's stop ids, then the model's further EOS ids, then its primary one (protocol.md 5). */
static wg_status_t add_eos_ids(generate_body_t *out, const wg_config_t *config, wg_error_t *error)
{
    wire_sampling_t *sampling = &out->sampling;
    uint32_t eos_count = config->model.eos_count;
    size_t at = out->user_stop_count;
    if (!out->stop_ids && eos_count > 0)
        out->stop_ids = malloc(eos_count * sizeof *out->stop_ids);
    if (!out->stop_ids && eos_count > 0)
        return out_of_memory(error);
    for (uint32_t i = 1; i < eos_count; i++)
        out->stop_ids[at++] = config->model.eos_token_ids[i];
    sampling->stop_count = sampling->ignore_eos ? out->user_stop_count : at;
    if (eos_count > 0)
        out->stop_ids[at++] = config->model.eos_token_ids[0];
    if (eos_count > 0 && !sampling->ignore_eos)
        sampling->eos_token_id = config->model.eos_token_ids[0];
    sampling->all_stop_token_ids = out->stop_ids;
    sampling->all_stop_count = at;
    return WG_OK;
}

/* --- the body itself --- */

wg_status_t generate_check_id(const char *field, const char *id, size_t size, wg_error_t *error)
{
    bool good = size >= 1 && size <= GENERATE_ID_MAX;
    for (size_t i = 0; good && i < size; i++)
        good = id[i] > 0x20 && id[i] < 0x7f;
    return good ? WG_OK
                : wg_invalid_field(error, field, "must be 1 to %d visible ASCII characters without spaces",
                                   GENERATE_ID_MAX);
}

static wg_status_t read_request_id(generate_body_t *out, const wg_config_t *config, const char *path,
                                   json_t *value, wg_error_t *error)
{
    (void)config;
    wg_status_t status = read_text(&out->request_id, path, value, error);
    return status == WG_OK ? generate_check_id(path, out->request_id.data, out->request_id.size, error)
                           : status;
}

static wg_status_t read_model(generate_body_t *out, const wg_config_t *config, const char *path,
                              json_t *value, wg_error_t *error)
{
    (void)out;
    wire_text_t model = {NULL, 0};
    wg_status_t status = read_text(&model, path, value, error);
    if (status == WG_OK && !wire_text_is(model, config->model.name)) {
        char name[LOG_TEXT_SIZE];
        WG_FAIL(error, MODEL_NOT_FOUND, log_text(name, model.data, model.size));
        snprintf(error->param, sizeof error->param, "%s", path);
        return WG_E_MODEL_NOT_FOUND;
    }
    return status;
}

static wg_status_t read_token_ids(generate_body_t *out, const wg_config_t *config, const char *path,
                                  json_t *value, wg_error_t *error)
{
    size_t count = json_is_array(value) ? json_array_size(value) : 0;
    if (count == 0)
        return wg_invalid_field(error, path, "must be an array of at least one token id");
    out->prompt = malloc(count * sizeof *out->prompt);
    if (!out->prompt)
        return out_of_memory(error);
    for (size_t i = 0; i < count; i++) {
        int64_t id = 0;
        wg_status_t status = read_id(&id, config, path, i, json_array_get(value, i), error);
        if (status != WG_OK)
            return status;
        out->prompt[i] = (uint32_t)id;
    }
    out->prompt_count = count;
    return WG_OK;
}

static wg_status_t read_stream(generate_body_t *out, const wg_config_t *config, const char *path,
                               json_t *value, wg_error_t *error)
{
    (void)config;
    return read_bool(&out->stream, path, value, error);
}

static wg_status_t read_include_usage(generate_body_t *out, const wg_config_t *config, const char *path,
                                      json_t *value, wg_error_t *error)
{
    (void)config;
    return read_bool(&out->include_usage, path, value, error);
}

static wg_status_t read_stream_options(generate_body_t *out, const wg_config_t *config, const char *path,
                                       json_t *value, wg_error_t *error)
{
    static const field_t fields[] = {{"include_usage", "stream_options.include_usage", read_include_usage}};
    if (!json_is_object(value))
        return wg_invalid_field(error, path, "must be an object");
    return read_object(out, config, value, path, fields, 1, error);
}

static wg_status_t read_priority(generate_body_t *out, const wg_config_t *config, const char *path,
                                 json_t *value, wg_error_t *error)
{
    (void)config;
    if (!json_is_integer(value))
        return wg_invalid_field(error, path, "must be an integer of 64 bits");
    out->priority = json_integer_value(value);
    return WG_OK;
}

static wg_status_t read_cache_salt(generate_body_t *out, const wg_config_t *config, const char *path,
                                   json_t *value, wg_error_t *error)
{
    (void)config;
    return read_text(&out->cache_salt, path, value, error);
}

/* Whether it is a rank is for the same code to say that reads the header. */
static wg_status_t read_rank(generate_body_t *out, const wg_config_t *config, const char *path, json_t *value,
                             wg_error_t *error)
{
    (void)config;
    (void)path;
    (void)error;
    out->has_rank = true;
    if (json_is_integer(value))
        snprintf(out->rank, sizeof out->rank, "%lld", (long long)json_integer_value(value));
    else
        snprintf(out->rank, sizeof out->rank, "(not an integer)");
    return WG_OK;
}

static const field_t body_fields[] = {
    {"request_id", "request_id", read_request_id},
    {"model", "model", read_model},
    {"token_ids", "token_ids", read_token_ids},
    {"sampling_params", "sampling_params", read_sampling},
    {"stream", "stream", read_stream},
    {"stream_options", "stream_options", read_stream_options},
    {"priority", "priority", read_priority},
    {"cache_salt", "cache_salt", read_cache_salt},
    {"data_parallel_rank", "data_parallel_rank", read_rank},
};

wg_status_t generate_body_parse(generate_body_t *out, const wg_config_t *config, const char *text,
                                size_t size, wg_error_t *error)
{
    *out = (generate_body_t){0};
    wire_sampling_defaults(&out->sampling);
    out->sampling.max_tokens = 0;
    wg_status_t status = json_body_load(&out->root, text, size, error);
    if (status == WG_OK)
        status = read_object(out, config, out->root, "the request body", body_fields,
                             sizeof body_fields / sizeof *body_fields, error);
    if (status != WG_OK)
        return status;
    if (!out->prompt)
        return wg_invalid_field(error, "token_ids", "must be an array of at least one token id");
    if (json_is_object(json_object_get(out->root, "stream_options")) && !out->stream)
        return wg_invalid_field(error, "stream_options", "needs \"stream\": true");
    return add_eos_ids(out, config, error);
}

void generate_body_free(generate_body_t *body)
{
    json_decref(body->root);
    free(body->prompt);
    free(body->stop_ids);
    *body = (generate_body_t){0};
}
