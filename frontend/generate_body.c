/* The body of POST /inference/v1/generate: vLLM's GenerateRequest. */
#include "frontend/request_fields.h"
#include "frontend/sampling_body.h"

static wg_status_t read_sampling_params(const body_reader_t *reader, const json_field_t *field,
                                        const char *path, json_t *value)
{
    (void)field;
    if (!json_is_object(value))
        return wg_invalid_field(reader->error, path, "must be an object");
    return json_fields_read(reader, value, "sampling_params.", path, &sampling_body_table, 1);
}

wg_status_t generate_body_parse(request_body_t *out, const wg_config_t *config, const char *text, size_t size,
                                wg_error_t *error)
{
    static const json_field_t fields[] = {
        {"token_ids", request_fields_prompt, 0, 0, 0, false, NULL},
        {"sampling_params", read_sampling_params, 0, 0, 0, false, NULL},
        {"features", json_field_only_null, 0, 0, 0, false, NULL},
    };
    const json_table_t tables[] = {{fields, sizeof fields / sizeof *fields}, request_fields_table};
    const request_shape_t shape = {
        .prompt = "token_ids", .sampling = "sampling_params.", .tables = tables, .table_count = 2};
    return request_body_parse(out, &shape, config, text, size, error);
}
