#include "common/model_files.h"

#include "common/config_source.h"
#include "common/config_value.h"
#include "common/text_buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (16u << 20)
#define PATH_SIZE 512u

typedef struct {
    char path[PATH_SIZE];
    json_t *root; /* NULL: the file is not there */
    wg_error_t *error;
} model_file_t;

/* --- the file --- */

/* The file as a whole is at fault. */
static wg_status_t refuse(const model_file_t *file, int line, const char *why)
{
    return config_source_fail(file->error, file->path, line > 0 ? line : 0, "model.path", "%s", why);
}

static bool read_bytes(text_buffer_t *text, int descriptor)
{
    ssize_t got;
    do {
        char *room = text_buffer_reserve(text, 65536);
        if (!room) {
            errno = ENOMEM;
            return false;
        }
        got = read(descriptor, room, 65536);
        if (got < 0)
            return false;
        text->size += (size_t)got;
    } while (got > 0 && text->size <= FILE_BYTES_MAX);
    return true;
}

static wg_status_t read_open_file(text_buffer_t *text, int descriptor, const model_file_t *file)
{
    struct stat about;
    if (fstat(descriptor, &about) != 0)
        return refuse(file, 0, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return refuse(file, 0, "is not a regular file");
    if (!read_bytes(text, descriptor))
        return refuse(file, 0, strerror(errno));
    /* Counted, not asked for: the file may grow meanwhile. */
    return text->size > FILE_BYTES_MAX ? refuse(file, 0, "is larger than 16 MiB") : WG_OK;
}

/* *found: whether there is such a file. */
static wg_status_t read_file(text_buffer_t *text, bool *found, const model_file_t *file)
{
    /* Without O_NONBLOCK, opening a pipe would wait for a writer, for ever. */
    int descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *found = descriptor >= 0 || errno != ENOENT;
    if (descriptor < 0)
        return *found ? refuse(file, 0, strerror(errno)) : WG_OK;
    wg_status_t status = read_open_file(text, descriptor, file);
    close(descriptor);
    return status;
}

/* How long the number is that starts here and that JSON does not have; 0: there is none. */
static size_t non_finite_at(const text_buffer_t *text, size_t at)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (text->size - at >= length && memcmp(text->data + at, words[i], length) == 0)
            return length;
    }
    return 0;
}

/* Python writes infinite floats into JSON by name, and so they stand in the config.json of models that
 * engines do load (Mamba's time_step_limit). Each becomes an empty string of the same length: the lines of
 * later faults stay right, and where it is a member that counts, its type is still wrong. */
static void replace_non_finite(text_buffer_t *text)
{
    bool in_string = false;
    for (size_t at = 0; at < text->size; at++) {
        char c = text->data[at];
        if (c == '"')
            in_string = !in_string;
        else if (in_string && c == '\\')
            at++;
        size_t length = in_string ? 0 : non_finite_at(text, at);
        if (length == 0)
            continue;
        memset(text->data + at, ' ', length);
        memcpy(text->data + at, "\"\"", 2);
        at += length - 1;
    }
}

static wg_status_t parse(model_file_t *file, text_buffer_t *text)
{
    json_error_t fault;
    replace_non_finite(text);
    file->root = json_loadb(text->data, text->size, 0, &fault);
    if (!file->root)
        return refuse(file, fault.line, fault.text);
    return json_is_object(file->root) ? WG_OK : refuse(file, 0, "is not a JSON object");
}

static wg_status_t open_file(model_file_t *file, const char *folder, const char *name, bool is_required,
                             wg_error_t *error)
{
    text_buffer_t text = {0};
    bool found = false;
    *file = (model_file_t){.error = error};
    if (snprintf(file->path, sizeof file->path, "%s/%s", folder, name) >= (int)sizeof file->path)
        return refuse(file, 0, strerror(ENAMETOOLONG));
    wg_status_t status = read_file(&text, &found, file);
    if (status == WG_OK && found)
        status = parse(file, &text);
    else if (status == WG_OK && is_required)
        status = refuse(file, 0, strerror(ENOENT));
    text_buffer_free(&text);
    return status;
}

/* The member, at the top or in text_config (models that also see or hear), or NULL; null is like absent. */
static const json_t *member_of(const model_file_t *file, const char *name)
{
    const json_t *value = json_object_get(file->root, name);
    if (!value || json_is_null(value))
        value = json_object_get(json_object_get(file->root, "text_config"), name);
    return json_is_null(value) ? NULL : value;
}

/* --- numbers --- */

static wg_status_t take_int(int64_t *out, const model_file_t *file, const char *name, const json_t *value,
                            int64_t least)
{
    if (!json_is_integer(value))
        return config_source_fail(file->error, file->path, 0, name, "must be an integer");
    int64_t number = json_integer_value(value);
    if (number < least || number > INT32_MAX)
        return config_source_fail(file->error, file->path, 0, name,
                                  "%" PRId64 " is out of range, must be in [%" PRId64 ", %" PRId32 "]",
                                  number, least, INT32_MAX);
    *out = number;
    return WG_OK;
}

typedef struct {
    double least;
    double most;
    bool is_least_excluded;
} range_t;

static wg_status_t take_float(double *out, const model_file_t *file, const char *name, const json_t *value,
                              range_t range)
{
    if (!json_is_number(value))
        return config_source_fail(file->error, file->path, 0, name, "must be a number");
    double number = json_number_value(value);
    bool is_enough = range.is_least_excluded ? number > range.least : number >= range.least;
    if (!is_enough || !(number <= range.most))
        return config_source_fail(file->error, file->path, 0, name,
                                  "%.15g is out of range, must be %s %g and at most %.10g", number,
                                  range.is_least_excluded ? "above" : "at least", range.least, range.most);
    *out = number;
    return WG_OK;
}

/* --- the vocabulary --- */

static wg_status_t read_vocab_size(wg_config_t *config, const model_file_t *file)
{
    const json_t *value = member_of(file, "vocab_size");
    if (!value || config->model.vocab_size > 0)
        return WG_OK;
    return take_int(&config->model.vocab_size, file, "vocab_size", value, 1);
}

/* The configuration's own ids, against a size that it has from the file. */
static wg_status_t check_eos_ids(const wg_config_t *config, const model_file_t *file)
{
    for (uint32_t i = 0; config->model.vocab_size > 0 && i < config->model.eos_count; i++) {
        int64_t id = config->model.eos_token_ids[i];
        if (id >= config->model.vocab_size)
            return config_source_fail(file->error, config->path, 0, "model.eos_token_ids",
                                      "%" PRId64 " is out of range, must be below the vocab_size (%" PRId64
                                      ") of the model's config.json",
                                      id, config->model.vocab_size);
    }
    return WG_OK;
}

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
    int64_t id = 0;
    wg_status_t status = take_int(&id, file, "eos_token_id", value, 0);
    if (status != WG_OK || has_eos_id(config, id))
        return status;
    if (config->model.vocab_size > 0 && id >= config->model.vocab_size)
        return config_source_fail(file->error, file->path, 0, "eos_token_id",
                                  "%" PRId64 " is out of range, must be below the vocab_size (%" PRId64 ")",
                                  id, config->model.vocab_size);
    if (config->model.eos_count == CONFIG_LIST_MAX)
        return config_source_fail(file->error, file->path, 0, "eos_token_id", "has more than %u ids",
                                  CONFIG_LIST_MAX);
    config->model.eos_token_ids[config->model.eos_count++] = id;
    return WG_OK;
}

/* One id, or an array of them. */
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
        return check_eos_ids(config, model);
    config->model.eos_token_ids = calloc(CONFIG_LIST_MAX, sizeof *config->model.eos_token_ids);
    if (!config->model.eos_token_ids)
        return WG_FAIL(model->error, SYSTEM, model->path, strerror(ENOMEM));
    wg_status_t status = add_eos_ids(config, model);
    return status == WG_OK ? add_eos_ids(config, generation) : status;
}

/* --- the defaults --- */

static wg_status_t read_float(double *out, const model_file_t *file, const char *name, range_t range)
{
    const json_t *value = member_of(file, name);
    return value && isnan(*out) ? take_float(out, file, name, value, range) : WG_OK;
}

static wg_status_t read_int(int64_t *out, const model_file_t *file, const char *name, int64_t least)
{
    const json_t *value = member_of(file, name);
    return value && *out == WG_CONFIG_UNSET ? take_int(out, file, name, value, least) : WG_OK;
}

/* The ranges are those of the configuration's own keys. */
static wg_status_t read_defaults(wg_config_t *config, const model_file_t *file)
{
    const range_t temperature = {0, 2, false};
    const range_t fraction = {0, 1, false};
    const range_t fraction_above = {0, 1, true};
    const range_t penalty = {0, INT32_MAX, true};
    wg_status_t status = read_float(&config->defaults.temperature, file, "temperature", temperature);
    if (status == WG_OK)
        status = read_float(&config->defaults.top_p, file, "top_p", fraction_above);
    if (status == WG_OK)
        status = read_float(&config->defaults.min_p, file, "min_p", fraction);
    if (status == WG_OK)
        status = read_float(&config->defaults.repetition_penalty, file, "repetition_penalty", penalty);
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
