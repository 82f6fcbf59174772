#include "tests/fake_engine/engine_sampling.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    wire_reader_t *reader;
    engine_request_t *request;
    int64_t vocab_size;
    bool ignore_eos;
    bool masks_unknown_id; /* a stop id outside the vocabulary: the mask of min_tokens would write out of
                              bounds */
} sampling_t;

typedef struct sampling_key {
    const char *name;
    bool (*read)(sampling_t *sampling, const struct sampling_key *key);
    double least; /* of a number, as is `most`: finite numbers only */
    double most;
    bool above_least; /* `least` itself is not allowed */
    bool nullable;
} sampling_key_t;

static bool read_int(sampling_t *sampling, const sampling_key_t *key, int64_t *out)
{
    if (!wire_reader_int(sampling->reader, out))
        return false;
    if ((double)*out < key->least || (double)*out > key->most)
        return wire_reader_fail(sampling->reader, "an integer out of its range");
    return true;
}

static bool on_int(sampling_t *sampling, const sampling_key_t *key)
{
    int64_t value;
    return read_int(sampling, key, &value);
}

static bool on_float(sampling_t *sampling, const sampling_key_t *key)
{
    double value;
    if (!wire_reader_float(sampling->reader, &value))
        return false;
    if (!isfinite(value) || value < key->least || value > key->most ||
        (key->above_least && value <= key->least))
        return wire_reader_fail(sampling->reader, "a number out of its range");
    return true;
}

static bool on_bool(sampling_t *sampling, const sampling_key_t *key)
{
    (void)key;
    bool value;
    return wire_reader_bool(sampling->reader, &value);
}

static bool on_max_tokens(sampling_t *sampling, const sampling_key_t *key)
{
    return read_int(sampling, key, &sampling->request->max_tokens);
}

static bool on_min_tokens(sampling_t *sampling, const sampling_key_t *key)
{
    return read_int(sampling, key, &sampling->request->min_tokens);
}

static bool on_ignore_eos(sampling_t *sampling, const sampling_key_t *key)
{
    (void)key;
    return wire_reader_bool(sampling->reader, &sampling->ignore_eos);
}

static bool on_eos(sampling_t *sampling, const sampling_key_t *key)
{
    sampling->request->has_eos = true;
    return read_int(sampling, key, &sampling->request->eos_id);
}

/* Passes over an array of ids. ids may be NULL; else it has room for them. */
static bool read_ids(sampling_t *sampling, uint32_t count, int64_t *ids, bool *outside)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t id;
        if (!wire_reader_int(sampling->reader, &id))
            return false;
        if (id < 0 || id >= sampling->vocab_size)
            *outside = true;
        if (ids)
            ids[i] = id;
    }
    return true;
}

static bool on_stop_token_ids(sampling_t *sampling, const sampling_key_t *key)
{
    (void)key;
    uint32_t count;
    if (!wire_reader_array(sampling->reader, &count))
        return false;
    int64_t *ids = calloc(count > 0 ? count : 1, sizeof *ids);
    if (!ids)
        return wire_reader_fail(sampling->reader, "out of memory");
    if (!read_ids(sampling, count, ids, &sampling->masks_unknown_id)) {
        free(ids);
        return false;
    }
    engine_request_set_stop_ids(sampling->request, ids, count);
    return true;
}

static bool on_all_stop_token_ids(sampling_t *sampling, const sampling_key_t *key)
{
    (void)key;
    uint32_t count;
    return wire_reader_array(sampling->reader, &count) &&
           read_ids(sampling, count, NULL, &sampling->masks_unknown_id);
}

static bool on_vocabulary_ids(sampling_t *sampling, const sampling_key_t *key)
{
    (void)key;
    uint32_t count;
    bool outside = false;
    if (!wire_reader_array(sampling->reader, &count) || !read_ids(sampling, count, NULL, &outside))
        return false;
    return !outside || wire_reader_fail(sampling->reader, "an id outside the vocabulary");
}

static bool on_bad_words(sampling_t *sampling, const sampling_key_t *key)
{
    (void)key;
    uint32_t count;
    wire_text_t word;
    if (!wire_reader_array(sampling->reader, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!wire_reader_text(sampling->reader, &word))
            return false;
    }
    return true;
}

static bool on_bad_words_ids(sampling_t *sampling, const sampling_key_t *key)
{
    uint32_t count;
    if (!wire_reader_array(sampling->reader, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!on_vocabulary_ids(sampling, key))
            return false;
    }
    return true;
}

static bool on_logit_bias(sampling_t *sampling, const sampling_key_t *key)
{
    (void)key;
    uint32_t count;
    if (!wire_reader_map(sampling->reader, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        int64_t id;
        double bias;
        if (!wire_reader_int(sampling->reader, &id) || !wire_reader_float(sampling->reader, &bias))
            return false;
        if (id < 0 || id >= sampling->vocab_size || !isfinite(bias))
            return wire_reader_fail(sampling->reader,
                                    "a bias of an id outside the vocabulary, or not finite");
    }
    return true;
}

static bool on_extra_args(sampling_t *sampling, const sampling_key_t *key)
{
    (void)key;
    uint32_t count;
    wire_text_t name;
    if (!wire_reader_map(sampling->reader, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!wire_reader_text(sampling->reader, &name) || !wire_reader_skip(sampling->reader))
            return false;
    }
    return true;
}

static bool is_structured_kind(wire_text_t name)
{
    static const char *const kinds[] = {"json",    "regex",       "choice",
                                        "grammar", "json_object", "structural_tag"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (wire_text_is(name, kinds[i]))
            return true;
    }
    return false;
}

static bool on_structured_outputs(sampling_t *sampling, const sampling_key_t *key)
{
    (void)key;
    uint32_t count;
    uint32_t kinds = 0;
    if (!wire_reader_map(sampling->reader, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        wire_text_t name;
        if (!wire_reader_text(sampling->reader, &name))
            return false;
        if (wire_reader_nil(sampling->reader))
            continue;
        kinds += is_structured_kind(name);
        if (!wire_reader_skip(sampling->reader))
            return false;
    }
    return kinds == 1 || wire_reader_fail(sampling->reader, "not exactly one kind of structured output");
}

static bool on_repetition_detection(sampling_t *sampling, const sampling_key_t *key)
{
    (void)key;
    uint32_t count;
    int64_t most = 0;
    int64_t least = 0;
    int64_t repeats = 0;
    if (!wire_reader_map(sampling->reader, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        wire_text_t name;
        int64_t ignored;
        if (!wire_reader_text(sampling->reader, &name))
            return false;
        int64_t *value = wire_text_is(name, "max_pattern_size")   ? &most
                         : wire_text_is(name, "min_pattern_size") ? &least
                         : wire_text_is(name, "min_count")        ? &repeats
                                                                  : &ignored;
        if (!wire_reader_int(sampling->reader, value))
            return false;
    }
    bool sound = least >= 0 && most >= least && (most == 0 || repeats >= 2);
    return sound || wire_reader_fail(sampling->reader, "pattern sizes or a count out of their range");
}

static const sampling_key_t keys[] = {
    /* Each choice is a request of its own, so more than one never reaches an engine. */
    {"n", on_int, .least = 1, .most = 1},
    {"presence_penalty", on_float, .least = -2, .most = 2},
    {"frequency_penalty", on_float, .least = -2, .most = 2},
    {"repetition_penalty", on_float, .least = 0, .most = INFINITY, .above_least = true},
    {"temperature", on_float, .least = 0, .most = 2},
    {"top_p", on_float, .least = 0, .most = 1, .above_least = true},
    {"top_k", on_int, .least = -1, .most = INFINITY},
    {"min_p", on_float, .least = 0, .most = 1},
    {"seed", on_int, .least = -INFINITY, .most = INFINITY, .nullable = true},
    {"stop_token_ids", .read = on_stop_token_ids},
    {"ignore_eos", .read = on_ignore_eos},
    {"max_tokens", on_max_tokens, .least = 1, .most = INFINITY},
    {"min_tokens", on_min_tokens, .least = 0, .most = INFINITY},
    {"logprobs", on_int, .least = -1, .most = INFINITY, .nullable = true},
    {"prompt_logprobs", on_int, .least = -1, .most = INFINITY, .nullable = true},
    {"logprob_token_ids", on_vocabulary_ids, .nullable = true},
    {"detokenize", .read = on_bool},
    {"output_kind", on_int, .least = 0, .most = 2},
    {"_eos_token_id", on_eos, .least = -INFINITY, .most = INFINITY, .nullable = true},
    {"_all_stop_token_ids", .read = on_all_stop_token_ids},
    {"structured_outputs", on_structured_outputs, .nullable = true},
    {"logit_bias", on_logit_bias, .nullable = true},
    {"allowed_token_ids", on_vocabulary_ids, .nullable = true},
    {"extra_args", on_extra_args, .nullable = true},
    {"bad_words", on_bad_words, .nullable = true},
    {"_bad_words_token_ids", on_bad_words_ids, .nullable = true},
    {"skip_reading_prefix_cache", on_bool, .nullable = true},
    {"thinking_token_budget", on_int, .least = -1, .most = INFINITY, .nullable = true},
    {"repetition_detection", on_repetition_detection, .nullable = true},
};

static const sampling_key_t *find_key(wire_text_t name)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (wire_text_is(name, keys[i].name))
            return &keys[i];
    }
    return NULL;
}

static bool read_entry(sampling_t *sampling, const char **key)
{
    wire_text_t name;
    if (!wire_reader_text(sampling->reader, &name))
        return false;
    const sampling_key_t *known = find_key(name);
    if (!known)
        return wire_reader_skip(sampling->reader);
    *key = known->name;
    if (known->nullable && wire_reader_nil(sampling->reader))
        return true;
    return known->read(sampling, known);
}

bool engine_sampling_read(wire_reader_t *reader, engine_request_t *request, uint32_t vocab_size,
                          const char **key)
{
    sampling_t sampling = {.reader = reader, .request = request, .vocab_size = vocab_size};
    uint32_t count;
    *key = NULL;
    if (!wire_reader_map(reader, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        *key = NULL;
        if (!read_entry(&sampling, key))
            return false;
    }
    *key = NULL;
    if (request->min_tokens > request->max_tokens)
        return wire_reader_fail(reader, "min_tokens is larger than max_tokens");
    if (request->min_tokens > 0 && sampling.masks_unknown_id)
        return wire_reader_fail(reader, "a stop id outside the vocabulary, with min_tokens");
    if (sampling.ignore_eos)
        request->has_eos = false;
    return true;
}
