/* json_fields.h: reads the members of a JSON object by a table of fields, each with the function that reads
 * it and its range, and refuses every other member. null is like absent. Used by the request bodies; the
 * loop. Tests: tests/unit/generate_body*_test.c */
#ifndef WG_FRONTEND_JSON_FIELDS_H
#define WG_FRONTEND_JSON_FIELDS_H

#include "frontend/request_body.h"

#define JSON_PATH_SIZE 64u

typedef struct {
    request_body_t *body;
    const wg_config_t *config;
    wg_error_t *error;
} body_reader_t;

typedef struct json_field json_field_t;
/* path: how errors name it. value is not null. */
typedef wg_status_t json_field_fn(const body_reader_t *reader, const json_field_t *field, const char *path,
                                  json_t *value);

struct json_field {
    const char *name;
    json_field_fn *read;
    size_t at;    /* of what is read, in request_body_t */
    double least; /* numbers */
    double most;
    bool above_least;  /* the least value itself is out of range */
    const char *range; /* in words, for errors */
};

typedef struct {
    const json_field_t *fields;
    size_t count;
} json_table_t;

/* prefix: before the members' names in errors: "sampling_params." or "". context: where an unknown member
 * stood. */
WG_MUST_CHECK wg_status_t json_fields_read(const body_reader_t *reader, json_t *object, const char *prefix,
                                           const char *context, const json_table_t *tables,
                                           size_t table_count);

json_field_fn json_field_bool;      /* into a bool */
json_field_fn json_field_int;       /* into an int64_t; a bound of 2^53 and beyond is int64's end */
json_field_fn json_field_float;     /* into a double */
json_field_fn json_field_text;      /* into a wire_text_t: not empty */
json_field_fn json_field_object;    /* into a const json_t * */
json_field_fn json_field_ids;       /* into an owned wire_ids_t: not empty */
json_field_fn json_field_no_effect; /* a bool that changes nothing here */
/* unsupported but for the one value that asks for nothing; null does, too */
json_field_fn json_field_only_null;
json_field_fn json_field_only_false;
json_field_fn json_field_only_empty; /* "" or [] */

/* Ids are below it. Those above int32 crash some kernels even where the vocabulary is not known. */
int64_t json_fields_vocabulary(const wg_config_t *config);

/* The one check for a list of token ids, whatever it is for. spare: room behind them. */
WG_MUST_CHECK wg_status_t json_fields_read_ids(const body_reader_t *reader, const char *path,
                                               const json_t *value, size_t spare, wire_ids_t *out);
/* The same for one id. at: which element, for errors. */
WG_MUST_CHECK wg_status_t json_fields_read_id(const body_reader_t *reader, const char *path, size_t at,
                                              const json_t *value, int64_t *out);

wg_status_t json_fields_no_memory(const body_reader_t *reader);
wg_status_t json_fields_unsupported(const body_reader_t *reader, const char *field, const char *context);

#endif
