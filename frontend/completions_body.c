/* The body of POST /v1/completions: OpenAI's, for prompts of token ids, with vLLM's further fields. */
#include "frontend/request_fields.h"
#include "frontend/sampling_body.h"

#define DEFAULT_MAX_TOKENS 16 /* OpenAI's */

/* Of several it would return the best; we return all n. */
static wg_status_t read_best_of(const body_reader_t *reader, const json_field_t *field, const char *path,
                                json_t *value)
{
    (void)field;
    const json_t *n = json_object_get(reader->body->root, "n");
    json_int_t wanted = json_is_integer(n) ? json_integer_value(n) : 1;
    if (!json_is_integer(value) || json_integer_value(value) != wanted)
        return wg_invalid_field(reader->error, path, "must be the same as n");
    return WG_OK;
}

static wg_status_t read_user(const body_reader_t *reader, const json_field_t *field, const char *path,
                             json_t *value)
{
    (void)field;
    return json_is_string(value) ? WG_OK : wg_invalid_field(reader->error, path, "must be a string");
}

wg_status_t completions_body_parse(request_body_t *out, const wg_config_t *config, const char *text,
                                   size_t size, wg_error_t *error)
{
    static const json_field_t fields[] = {
        {"prompt", request_fields_prompt, 0, 0, 0, false, NULL},
        {"best_of", read_best_of, 0, 0, 0, false, NULL},
        {"echo", json_field_only_false, 0, 0, 0, false, NULL},
        {"suffix", json_field_only_empty, 0, 0, 0, false, NULL},
        /* these change nothing here: ids are always there, and text never is */
        {"user", read_user, 0, 0, 0, false, NULL},
        {"add_special_tokens", json_field_no_effect, 0, 0, 0, false, NULL},
        {"return_token_ids", json_field_no_effect, 0, 0, 0, false, NULL},
        {"return_tokens_as_token_ids", json_field_no_effect, 0, 0, 0, false, NULL},
    };
    const json_table_t tables[] = {
        {fields, sizeof fields / sizeof *fields}, request_fields_table, sampling_body_table};
    const request_shape_t shape = {
        .prompt = "prompt",
        .allows_prompts = true,
        .sampling = "",
        .max_tokens = DEFAULT_MAX_TOKENS,
        .tables = tables,
        .table_count = 3,
    };
    return request_body_parse(out, &shape, config, text, size, error);
}
