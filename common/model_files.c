#include "common/model_files.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX (16L << 20)
#define EOS_IDS_MAX 1024u

typedef struct {
    char path[512];
    json_t *root; /* NULL: the file is not there */
    wg_error_t *error;
} model_file_t;

static wg_status_t fail(const model_file_t *file, const char *member, const char *why)
{
    return WG_FAIL(file->error, CONFIG, file->path, 0, member, why);
}

static wg_status_t open_file(model_file_t *file, const char *folder, const char *name, bool is_required,
                             wg_error_t *error)
{
    struct stat about;
    json_error_t fault;
    *file = (model_file_t){.error = error};
    if (snprintf(file->path, sizeof file->path, "%s/%s", folder, name) >= (int)sizeof file->path)
        return fail(file, "model.path", "is too long");
    if (stat(file->path, &about) != 0)
        return errno == ENOENT && !is_required ? WG_OK : fail(file, "model.path", strerror(errno));
    if (about.st_size > FILE_BYTES_MAX)
        return fail(file, "model.path", "the file has more than 16 MiB");
    file->root = json_load_file(file->path, 0, &fault);
    if (!file->root)
        return WG_FAIL(error, CONFIG, file->path, fault.line, "model.path", fault.text);
    return json_is_object(file->root) ? WG_OK : fail(file, "model.path", "is not a JSON object");
}

/* The member, at the top or in text_config (models that also see or hear), or NULL; null is like absent. */
static const json_t *member_of(const model_file_t *file, const char *name)
{
    const json_t *value = json_object_get(file->root, name);
    if (!value || json_is_null(value))
        value = json_object_get(json_object_get(file->root, "text_config"), name);
    return json_is_null(value) ? NULL : value;
}

static wg_status_t read_vocab_size(wg_config_t *config, const model_file_t *file)
{
    const json_t *value = member_of(file, "vocab_size");
    if (!value || config->model.vocab_size > 0)
        return WG_OK;
    json_int_t size = json_is_integer(value) ? json_integer_value(value) : 0;
    if (size < 1 || size > INT32_MAX)
        return fail(file, "vocab_size", "must be an integer from 1 to 2147483647");
    config->model.vocab_size = size;
    return WG_OK;
}

/* --- the ids that end a text --- */

static bool has_eos_id(const wg_config_t *config, int64_t id)
{
    for (uint32_t i = 0; i < config->model.eos_count; i++) {
        if (config->model.eos_token_ids[i] == id)
            return true;
    }
    return false;
}

static wg_status_t add_eos_id(wg_config_t *config, const model_file_t *file, const json_t *value)
{
    json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
    if (id < 0 || id > INT32_MAX || (config->model.vocab_size > 0 && id >= config->model.vocab_size))
        return fail(file, "eos_token_id", "must be an id of the vocabulary, or an array of them");
    if (has_eos_id(config, id))
        return WG_OK;
    if (config->model.eos_count == EOS_IDS_MAX)
        return fail(file, "eos_token_id", "has more than 1024 ids");
    config->model.eos_token_ids[config->model.eos_count++] = id;
    return WG_OK;
}

static wg_status_t add_eos_ids(wg_config_t *config, const model_file_t *file)
{
    const json_t *value = member_of(file, "eos_token_id");
    if (!value)
        return WG_OK;
    if (!json_is_array(value))
        return add_eos_id(config, file, value);
    wg_status_t status = WG_OK;
    for (size_t i = 0; i < json_array_size(value) && status == WG_OK; i++)
        status = add_eos_id(config, file, json_array_get(value, i));
    return status;
}

/* The model's own first: its first id is the primary one. */
static wg_status_t read_eos_ids(wg_config_t *config, const model_file_t *model,
                                const model_file_t *generation)
{
    if (config->model.eos_count > 0)
        return WG_OK;
    config->model.eos_token_ids = calloc(EOS_IDS_MAX, sizeof *config->model.eos_token_ids);
    if (!config->model.eos_token_ids)
        return WG_FAIL(model->error, SYSTEM, model->path, strerror(ENOMEM));
    wg_status_t status = add_eos_ids(config, model);
    return status == WG_OK ? add_eos_ids(config, generation) : status;
}

/* --- the defaults --- */

static wg_status_t read_float(double *out, const model_file_t *file, const char *name, double low,
                              double high, bool above_low)
{
    const json_t *value = member_of(file, name);
    if (!value || !isnan(*out))
        return WG_OK;
    double number = json_is_number(value) ? json_number_value(value) : NAN;
    if (!(number >= low && number <= high) || (above_low && number <= low))
        return fail(file, name, "is not a number that requests could give");
    *out = number;
    return WG_OK;
}

static wg_status_t read_int(int64_t *out, const model_file_t *file, const char *name, int64_t low)
{
    const json_t *value = member_of(file, name);
    if (!value || *out != WG_CONFIG_UNSET)
        return WG_OK;
    if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > INT32_MAX)
        return fail(file, name, "is not an integer that requests could give");
    *out = json_integer_value(value);
    return WG_OK;
}

static wg_status_t read_defaults(wg_config_t *config, const model_file_t *file)
{
    wg_status_t status = read_float(&config->defaults.temperature, file, "temperature", 0, 2, false);
    if (status == WG_OK)
        status = read_float(&config->defaults.top_p, file, "top_p", 0, 1, true);
    if (status == WG_OK)
        status = read_float(&config->defaults.min_p, file, "min_p", 0, 1, false);
    if (status == WG_OK)
        status =
            read_float(&config->defaults.repetition_penalty, file, "repetition_penalty", 0, INT32_MAX, true);
    if (status == WG_OK)
        status = read_int(&config->defaults.top_k, file, "top_k", -1);
    if (status == WG_OK)
        status = read_int(&config->defaults.max_tokens, file, "max_new_tokens", 1);
    return status;
}

static void set_float(double *out, double value)
{
    if (isnan(*out))
        *out = value;
}

/* What vLLM's SamplingParams take for what nobody has said. */
static void set_rest(wg_config_t *config)
{
    set_float(&config->defaults.temperature, 1.0);
    set_float(&config->defaults.top_p, 1.0);
    set_float(&config->defaults.min_p, 0.0);
    set_float(&config->defaults.repetition_penalty, 1.0);
    if (config->defaults.top_k == WG_CONFIG_UNSET)
        config->defaults.top_k = 0;
    if (config->defaults.max_tokens == WG_CONFIG_UNSET)
        config->defaults.max_tokens = 0;
}

wg_status_t model_files_apply(wg_config_t *config, wg_error_t *error)
{
    model_file_t model = {.error = error};
    model_file_t generation = {.error = error};
    wg_status_t status = WG_OK;
    if (config->model.path) {
        status = open_file(&model, config->model.path, "config.json", true, error);
        if (status == WG_OK)
            status = open_file(&generation, config->model.path, "generation_config.json", false, error);
        if (status == WG_OK)
            status = read_vocab_size(config, &model);
        if (status == WG_OK)
            status = read_eos_ids(config, &model, &generation);
        if (status == WG_OK)
            status = read_defaults(config, &generation);
    }
    if (status == WG_OK)
        set_rest(config);
    json_decref(model.root);
    json_decref(generation.root);
    return status;
}
