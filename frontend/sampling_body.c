#include "frontend/sampling_body.h"

#include "frontend/json_pack.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define GREEDY_BELOW 1e-5   /* the engine samples nothing at such a temperature */
#define BIAS_MAX 100.0      /* OpenAI's */
#define MASKED_IDS_MAX 128  /* vLLM's, of all that would end the text */
#define LOGPROB_IDS_MAX 128 /* vLLM's: its sampler's row for them is no wider */

void sampling_body_defaults(request_body_t *body, const wg_config_t *config)
{
    wire_sampling_defaults(&body->sampling);
    body->sampling.temperature = config->defaults.temperature;
    body->sampling.top_p = config->defaults.top_p;
    body->sampling.min_p = config->defaults.min_p;
    body->sampling.repetition_penalty = config->defaults.repetition_penalty;
    body->sampling.top_k = config->defaults.top_k;
    body->sampling.max_tokens = config->defaults.max_tokens;
    body->n = 1;
}

/* --- fields that need more than a range --- */

static wg_status_t read_n(const body_reader_t *reader, const json_field_t *field, const char *path,
                          json_t *value)
{
    int64_t limit = reader->config->limits.max_choices;
    (void)field;
    reader->body->n = json_is_integer(value) ? json_integer_value(value) : 0;
    if (reader->body->n < 1 || reader->body->n > limit)
        return wg_invalid_field(reader->error, path, "must be an integer from 1 to %" PRId64, limit);
    return WG_OK;
}

static wg_status_t read_max_tokens(const body_reader_t *reader, const json_field_t *field, const char *path,
                                   json_t *value)
{
    reader->body->has_max_tokens = true;
    return json_field_int(reader, field, path, value);
}

static wg_status_t read_seed(const body_reader_t *reader, const json_field_t *field, const char *path,
                             json_t *value)
{
    reader->body->sampling.has_seed = true;
    return json_field_int(reader, field, path, value);
}

/* -1 means all, so it is above every limit but none. More than the vocabulary has would fail in the engine's
 * step, and take the rank along. */
static wg_status_t read_logprobs(const body_reader_t *reader, const json_field_t *field, const char *path,
                                 json_t *value)
{
    int64_t most = json_fields_vocabulary(reader->config);
    int64_t limit = reader->config->limits.max_logprobs;
    int64_t least = limit < 0 ? -1 : 0;
    if (limit >= 0 && limit < most)
        most = limit;
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : INT64_MIN;
    if (number < least || number > most)
        return wg_invalid_field(reader->error, path, "must be an integer from %" PRId64 " to %" PRId64, least,
                                most);
    *(int64_t *)((char *)reader->body + field->at) = number;
    return WG_OK;
}

static wg_status_t read_logprob_token_ids(const body_reader_t *reader, const json_field_t *field,
                                          const char *path, json_t *value)
{
    if (json_array_size(value) > LOGPROB_IDS_MAX)
        return wg_invalid_field(reader->error, path, "has %zu ids, engines take %d", json_array_size(value),
                                LOGPROB_IDS_MAX);
    return json_field_ids(reader, field, path, value);
}

static wg_status_t read_stop_token_ids(const body_reader_t *reader, const json_field_t *field,
                                       const char *path, json_t *value)
{
    (void)field;
    return json_fields_read_ids(reader, path, value, reader->config->model.eos_count,
                                &reader->body->stop_ids);
}

static wg_status_t read_skip_reading_prefix_cache(const body_reader_t *reader, const json_field_t *field,
                                                  const char *path, json_t *value)
{
    (void)field;
    if (!json_is_boolean(value))
        return wg_invalid_field(reader->error, path, "must be true or false");
    reader->body->sampling.skip_reading_prefix_cache = json_is_true(value);
    return WG_OK;
}

/* We consume what engines emit, whatever a client calls it. */
static wg_status_t read_output_kind(const body_reader_t *reader, const json_field_t *field, const char *path,
                                    json_t *value)
{
    (void)field;
    json_int_t kind = json_is_integer(value) ? json_integer_value(value) : -1;
    return kind >= 0 && kind <= 2 ? WG_OK
                                  : wg_invalid_field(reader->error, path, "must be an integer from 0 to 2");
}

/* The key as an id: digits only, and none in front that could make two keys one id. */
static bool parse_id(const char *key, int64_t limit, int64_t *id)
{
    size_t digits = strspn(key, "0123456789");
    if (digits == 0 || digits > 10 || key[digits] || (key[0] == '0' && digits > 1))
        return false;
    *id = strtoll(key, NULL, 10);
    return *id < limit;
}

static wg_status_t read_logit_bias(const body_reader_t *reader, const json_field_t *field, const char *path,
                                   json_t *value)
{
    const char *key;
    json_t *bias;
    size_t limit = (size_t)reader->config->limits.max_ids_per_list;
    request_body_t *body = reader->body;
    (void)field;
    if (!json_is_object(value))
        return wg_invalid_field(reader->error, path, "must be an object of token ids and numbers");
    if (json_object_size(value) > limit)
        return wg_invalid_field(reader->error, path, "has %zu ids, the limit is %zu", json_object_size(value),
                                limit);
    body->logit_bias = calloc(json_object_size(value) + 1, sizeof *body->logit_bias);
    if (!body->logit_bias)
        return json_fields_no_memory(reader);
    json_object_foreach(value, key, bias)
    {
        wire_logit_bias_t *out = &body->logit_bias[body->sampling.logit_bias_count];
        int64_t vocabulary = json_fields_vocabulary(reader->config);
        if (!parse_id(key, vocabulary, &out->id))
            return wg_invalid_field(reader->error, path, "each key must be a token id from 0 to %" PRId64,
                                    vocabulary - 1);
        out->bias = json_is_number(bias) ? json_number_value(bias) : BIAS_MAX + 1;
        if (!(out->bias >= -BIAS_MAX && out->bias <= BIAS_MAX))
            return wg_invalid_field(reader->error, path, "each value must be a number from -100 to 100");
        body->sampling.logit_bias_count++;
    }
    body->sampling.logit_bias = body->logit_bias;
    return WG_OK;
}

static wg_status_t read_size(const body_reader_t *reader, const char *path, const json_t *object,
                             const char *name, int64_t *out)
{
    const json_t *value = json_object_get(object, name);
    *out = json_is_integer(value) ? json_integer_value(value) : -1;
    if (!value || json_is_null(value))
        *out = 0;
    return *out >= 0 && *out <= INT32_MAX
               ? WG_OK
               : wg_invalid_field(reader->error, path, "%s must be an integer from 0 to 2147483647", name);
}

static wg_status_t read_repetition_detection(const body_reader_t *reader, const json_field_t *field,
                                             const char *path, json_t *value)
{
    static const char *const names[] = {"max_pattern_size", "min_pattern_size", "min_count"};
    enum { MAX_SIZE, MIN_SIZE, MIN_COUNT, COUNT };
    int64_t numbers[COUNT];
    const char *key;
    json_t *member;
    (void)field;
    if (!json_is_object(value))
        return wg_invalid_field(reader->error, path, "must be an object");
    json_object_foreach(value, key, member)
    {
        (void)member;
        if (strcmp(key, names[0]) != 0 && strcmp(key, names[1]) != 0 && strcmp(key, names[2]) != 0)
            return json_fields_unsupported(reader, key, "repetition_detection");
    }
    for (size_t i = 0; i < COUNT; i++) {
        wg_status_t status = read_size(reader, path, value, names[i], &numbers[i]);
        if (status != WG_OK)
            return status;
    }
    if (numbers[MIN_SIZE] > numbers[MAX_SIZE])
        return wg_invalid_field(reader->error, path, "min_pattern_size must be at most max_pattern_size");
    if (numbers[MAX_SIZE] > 0 && numbers[MIN_COUNT] < 2)
        return wg_invalid_field(reader->error, path, "min_count must be at least 2");
    wire_pack_t pack;
    size_t start = reader->body->packed.size;
    wire_pack_init(&pack, &reader->body->packed);
    wire_pack_map(&pack, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        wire_pack_literal(&pack, names[i]);
        wire_pack_int(&pack, numbers[i]);
    }
    reader->body->repetition_detection = (packed_span_t){start, reader->body->packed.size - start};
    return wire_pack_finish(&pack, "repetition_detection", reader->error);
}

#define SAMPLING(member) offsetof(request_body_t, sampling.member)
#define ANY (-0x1p63), 0x1p63, false, " of 64 bits"

static const json_field_t fields[] = {
    {"temperature", json_field_float, SAMPLING(temperature), 0, 2, false, "from 0 to 2"},
    {"top_p", json_field_float, SAMPLING(top_p), 0, 1, true, "above 0 and at most 1"},
    {"min_p", json_field_float, SAMPLING(min_p), 0, 1, false, "from 0 to 1"},
    {"top_k", json_field_int, SAMPLING(top_k), -1, INT32_MAX, false,
     " from -1 to 2147483647, where -1 and 0 turn it off"},
    {"presence_penalty", json_field_float, SAMPLING(presence_penalty), -2, 2, false, "from -2 to 2"},
    {"frequency_penalty", json_field_float, SAMPLING(frequency_penalty), -2, 2, false, "from -2 to 2"},
    {"repetition_penalty", json_field_float, SAMPLING(repetition_penalty), 0, 1e38, true, "above 0"},
    {"n", read_n, 0, 0, 0, false, NULL},
    {"seed", read_seed, SAMPLING(seed), ANY},
    {"max_tokens", read_max_tokens, SAMPLING(max_tokens), 1, 0x1p63, false, ", at least 1"},
    {"min_tokens", json_field_int, SAMPLING(min_tokens), 0, 0x1p63, false, ", at least 0"},
    {"stop_token_ids", read_stop_token_ids, 0, 0, 0, false, NULL},
    {"ignore_eos", json_field_bool, SAMPLING(ignore_eos), 0, 0, false, NULL},
    {"logprobs", read_logprobs, SAMPLING(logprobs), 0, 0, false, NULL},
    {"prompt_logprobs", read_logprobs, SAMPLING(prompt_logprobs), 0, 0, false, NULL},
    {"logprob_token_ids", read_logprob_token_ids, offsetof(request_body_t, logprob_ids), 0, 0, false, NULL},
    {"allowed_token_ids", json_field_ids, offsetof(request_body_t, allowed_ids), 0, 0, false, NULL},
    {"logit_bias", read_logit_bias, 0, 0, 0, false, NULL},
    {"structured_outputs", structured_outputs_read, 0, 0, 0, false, NULL},
    {"thinking_token_budget", json_field_int, SAMPLING(thinking_token_budget), -1, 0x1p63, false,
     ", -1 or above"},
    {"skip_reading_prefix_cache", read_skip_reading_prefix_cache, 0, 0, 0, false, NULL},
    {"repetition_detection", read_repetition_detection, 0, 0, 0, false, NULL},
    {"extra_args", json_field_object, offsetof(request_body_t, extra_args), 0, 0, false, NULL},
    /* what asks for text, of which there is none here: refused unless it asks for nothing */
    {"stop", json_field_only_empty, 0, 0, 0, false, NULL},
    {"bad_words", json_field_only_empty, 0, 0, 0, false, NULL},
    {"include_stop_str_in_output", json_field_only_false, 0, 0, 0, false, NULL},
    {"truncate_prompt_tokens", json_field_only_null, 0, 0, 0, false, NULL},
    {"flat_logprobs", json_field_only_false, 0, 0, 0, false, NULL},
    /* what only says how text or Python objects are made: accepted, and without effect */
    {"detokenize", json_field_no_effect, 0, 0, 0, false, NULL},
    {"skip_special_tokens", json_field_no_effect, 0, 0, 0, false, NULL},
    {"spaces_between_special_tokens", json_field_no_effect, 0, 0, 0, false, NULL},
    {"output_kind", read_output_kind, 0, 0, 0, false, NULL},
};

const json_table_t sampling_body_table = {fields, sizeof fields / sizeof *fields};

/* --- after all of them --- */

/* The user's stop ids, then the model's further EOS ids, then its primary one (protocol.md 5). */
static wg_status_t add_eos_ids(const body_reader_t *reader)
{
    wire_sampling_t *sampling = &reader->body->sampling;
    const int64_t *eos = reader->config->model.eos_token_ids;
    uint32_t eos_count = reader->config->model.eos_count;
    if (!reader->body->stop_ids.ids)
        reader->body->stop_ids.ids = calloc(eos_count + 1, sizeof(int64_t));
    int64_t *ids = (int64_t *)reader->body->stop_ids.ids; /* ours; const for its readers */
    size_t at = reader->body->stop_ids.count;
    if (!ids)
        return json_fields_no_memory(reader);
    for (uint32_t i = 1; i < eos_count; i++)
        ids[at++] = eos[i];
    sampling->stop_count = sampling->ignore_eos ? reader->body->stop_ids.count : at;
    if (eos_count > 0)
        ids[at++] = eos[0];
    if (eos_count > 0 && !sampling->ignore_eos)
        sampling->eos_token_id = eos[0];
    sampling->all_stop_token_ids = ids;
    sampling->all_stop_count = at;
    return WG_OK;
}

static wg_status_t invalid(const body_reader_t *reader, const char *prefix, const char *name, const char *why)
{
    char path[JSON_PATH_SIZE];
    snprintf(path, sizeof path, "%s%s", prefix, name);
    return wg_invalid_field(reader->error, path, "%s", why);
}

wg_status_t sampling_body_finish(const body_reader_t *reader, const char *prefix)
{
    request_body_t *body = reader->body;
    wire_sampling_t *sampling = &body->sampling;
    char why[64];
    snprintf(why, sizeof why, "must be at most max_tokens = %" PRId64, sampling->max_tokens);
    if (sampling->max_tokens > 0 && sampling->min_tokens > sampling->max_tokens)
        return invalid(reader, prefix, "min_tokens", why);
    if (body->n > 1 && sampling->temperature < GREEDY_BELOW)
        return invalid(reader, prefix, "n",
                       "must be 1 where the temperature is 0, for all choices would be the same");
    if (sampling->has_seed && sampling->seed > INT64_MAX - (body->n - 1))
        return invalid(reader, prefix, "seed", "is too large for the seeds of n choices, each one more");
    if (body->stream && sampling->prompt_logprobs != WIRE_UNSET)
        return invalid(reader, prefix, "prompt_logprobs", "cannot go with \"stream\": true");
    if (body->logprob_ids.count > 0 && sampling->logprobs != WIRE_UNSET &&
        sampling->logprobs != (int64_t)body->logprob_ids.count)
        return invalid(reader, prefix, "logprobs",
                       "must be the number of logprob_token_ids where both are given");
    sampling->allowed_token_ids = body->allowed_ids;
    sampling->logprob_token_ids = body->logprob_ids;
    wg_status_t status = add_eos_ids(reader);
    if (status == WG_OK && sampling->min_tokens > 0 && sampling->all_stop_count > MASKED_IDS_MAX)
        return invalid(reader, prefix, "stop_token_ids",
                       "has more ids than engines can mask until min_tokens");
    return status;
}
