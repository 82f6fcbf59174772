#include "frontend/json_fields.h"

#include "common/log.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

wg_status_t json_fields_no_memory(const body_reader_t *reader)
{
    return WG_FAIL(reader->error, SYSTEM, "request body", "out of memory");
}

wg_status_t json_fields_unsupported(const body_reader_t *reader, const char *field, const char *context)
{
    char name[LOG_TEXT_SIZE];
    log_text(name, field, strlen(field));
    WG_FAIL(reader->error, UNSUPPORTED_FIELD, name, context);
    if (reader->error)
        snprintf(reader->error->param, sizeof reader->error->param, "%.63s", name);
    return WG_E_UNSUPPORTED_FIELD;
}

static const json_field_t *find_field(const json_table_t *tables, size_t table_count, const char *name)
{
    for (size_t i = 0; i < table_count; i++) {
        for (size_t k = 0; k < tables[i].count; k++) {
            if (strcmp(tables[i].fields[k].name, name) == 0)
                return &tables[i].fields[k];
        }
    }
    return NULL;
}

wg_status_t json_fields_read(const body_reader_t *reader, json_t *object, const char *prefix,
                             const char *context, const json_table_t *tables, size_t table_count)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        char path[JSON_PATH_SIZE];
        const json_field_t *field = find_field(tables, table_count, key);
        if (!field)
            return json_fields_unsupported(reader, key, context);
        if (json_is_null(value))
            continue;
        snprintf(path, sizeof path, "%s%s", prefix, field->name);
        wg_status_t status = field->read(reader, field, path, value);
        if (status != WG_OK)
            return status;
    }
    return WG_OK;
}

static void *target(const body_reader_t *reader, const json_field_t *field)
{
    return (char *)reader->body + field->at;
}

wg_status_t json_field_bool(const body_reader_t *reader, const json_field_t *field, const char *path,
                            json_t *value)
{
    if (!json_is_boolean(value))
        return wg_invalid_field(reader->error, path, "must be true or false");
    *(bool *)target(reader, field) = json_is_true(value);
    return WG_OK;
}

wg_status_t json_field_no_effect(const body_reader_t *reader, const json_field_t *field, const char *path,
                                 json_t *value)
{
    (void)field;
    return json_is_boolean(value) ? WG_OK : wg_invalid_field(reader->error, path, "must be true or false");
}

static wg_status_t unsupported(const body_reader_t *reader, const json_field_t *field)
{
    return json_fields_unsupported(reader, field->name, "a request of token ids");
}

wg_status_t json_field_only_null(const body_reader_t *reader, const json_field_t *field, const char *path,
                                 json_t *value)
{
    (void)path;
    (void)value;
    return unsupported(reader, field);
}

wg_status_t json_field_only_false(const body_reader_t *reader, const json_field_t *field, const char *path,
                                  json_t *value)
{
    (void)path;
    return json_is_false(value) ? WG_OK : unsupported(reader, field);
}

wg_status_t json_field_only_empty(const body_reader_t *reader, const json_field_t *field, const char *path,
                                  json_t *value)
{
    bool is_empty = (json_is_string(value) && json_string_length(value) == 0) ||
                    (json_is_array(value) && json_array_size(value) == 0);
    (void)path;
    return is_empty ? WG_OK : unsupported(reader, field);
}

wg_status_t json_field_int(const body_reader_t *reader, const json_field_t *field, const char *path,
                           json_t *value)
{
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : 0;
    bool has_least = field->least > -0x1p53;
    bool has_most = field->most < 0x1p53;
    if (!json_is_integer(value) || (has_least && number < (json_int_t)field->least) ||
        (has_most && number > (json_int_t)field->most))
        return wg_invalid_field(reader->error, path, "must be an integer%s", field->range);
    *(int64_t *)target(reader, field) = number;
    return WG_OK;
}

wg_status_t json_field_float(const body_reader_t *reader, const json_field_t *field, const char *path,
                             json_t *value)
{
    double number = json_is_number(value) ? json_number_value(value) : NAN;
    /* kernels take 32 bits, where anything below FLT_MIN may become 0 */
    double least = field->above_least ? (double)FLT_MIN : field->least;
    if (!(number >= least && number <= field->most))
        return wg_invalid_field(reader->error, path, "must be a number %s", field->range);
    *(double *)target(reader, field) = number;
    return WG_OK;
}

wg_status_t json_field_text(const body_reader_t *reader, const json_field_t *field, const char *path,
                            json_t *value)
{
    if (!json_is_string(value) || json_string_length(value) == 0)
        return wg_invalid_field(reader->error, path, "must be a string that is not empty");
    *(wire_text_t *)target(reader, field) =
        (wire_text_t){json_string_value(value), json_string_length(value)};
    return WG_OK;
}

wg_status_t json_field_object(const body_reader_t *reader, const json_field_t *field, const char *path,
                              json_t *value)
{
    if (!json_is_object(value))
        return wg_invalid_field(reader->error, path, "must be an object");
    *(const json_t **)target(reader, field) = value;
    return WG_OK;
}

/* --- token ids --- */

int64_t json_fields_vocabulary(const wg_config_t *config)
{
    return config->model.vocab_size > 0 ? config->model.vocab_size : (int64_t)INT32_MAX + 1;
}

wg_status_t json_fields_read_id(const body_reader_t *reader, const char *path, size_t at, const json_t *value,
                                int64_t *out)
{
    int64_t limit = json_fields_vocabulary(reader->config);
    if (!json_is_integer(value))
        return wg_invalid_field(reader->error, path, "element %zu must be an integer", at);
    *out = json_integer_value(value);
    if (*out < 0 || *out >= limit)
        return wg_invalid_field(reader->error, path,
                                "element %zu is %" PRId64 ", but must be from 0 to %" PRId64, at, *out,
                                limit - 1);
    return WG_OK;
}

wg_status_t json_fields_read_ids(const body_reader_t *reader, const char *path, const json_t *value,
                                 size_t spare, wire_ids_t *out)
{
    size_t count = json_array_size(value);
    size_t limit = (size_t)reader->config->limits.max_ids_per_list;
    if (!json_is_array(value))
        return wg_invalid_field(reader->error, path, "must be an array of token ids");
    if (count > limit)
        return wg_invalid_field(reader->error, path, "has %zu ids, the limit is %zu", count, limit);
    int64_t *ids = calloc(count + spare + 1, sizeof *ids);
    if (!ids)
        return json_fields_no_memory(reader);
    *out = (wire_ids_t){ids, count};
    for (size_t i = 0; i < count; i++) {
        wg_status_t status = json_fields_read_id(reader, path, i, json_array_get(value, i), &ids[i]);
        if (status != WG_OK)
            return status;
    }
    return WG_OK;
}

wg_status_t json_field_ids(const body_reader_t *reader, const json_field_t *field, const char *path,
                           json_t *value)
{
    if (json_is_array(value) && json_array_size(value) == 0)
        return wg_invalid_field(reader->error, path, "must have at least one token id");
    return json_fields_read_ids(reader, path, value, 0, target(reader, field));
}
