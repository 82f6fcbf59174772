/* The request bodies of both routes against plain jansson, which reads the ids one JSON value each: what is
 * taken must be JSON with exactly those ids, what is plainly good must be taken, and what would go to an
 * engine must be sound. An error must be printable. */
#include "frontend/request_body.h"
#include "tests/fuzz/fuzz.h"

#define VOCABULARY 32000
#define MAX_PROMPTS 4

typedef struct {
    request_body_parse_fn *parse;
    const char *prompt;
    bool allows_prompts;
} route_t;

static const route_t routes[] = {
    {generate_body_parse, "token_ids", false},
    {completions_body_parse, "prompt", true},
};

static const wg_config_t *config(void)
{
    static char name[] = "demo";
    static char backend[] = "guidance";
    static char adapter[] = "sql";
    static char path[] = "/loras/sql";
    static int64_t eos[] = {2, 7};
    static config_adapter_t adapters[] = {{adapter, 3, path}};
    static const wg_config_t made = {
        .model = {.name = name,
                  .vocab_size = VOCABULARY,
                  .eos_token_ids = eos,
                  .eos_count = 2,
                  .structured_outputs_backend = backend},
        .defaults = {.temperature = 1, .top_p = 1, .repetition_penalty = 1},
        .limits = {.max_json_depth = 32,
                   .max_ids_per_list = 100,
                   .max_choices = 8,
                   .max_prompts = MAX_PROMPTS,
                   .max_logprobs = 20},
        .adapters = adapters,
        .adapter_count = 1,
    };
    return &made;
}

/* --- what was taken --- */

static void check_ids(const json_t *ids, const wire_prompt_t *prompt)
{
    wire_reader_t reader;
    int64_t id = -1;
    wire_reader_init(&reader, prompt->packed.data, prompt->packed.size);
    FUZZ_CHECK(json_is_array(ids) && json_array_size(ids) > 0);
    FUZZ_CHECK(json_array_size(ids) == prompt->count);
    for (size_t i = 0; i < prompt->count; i++) {
        const json_t *element = json_array_get(ids, i);
        FUZZ_CHECK(json_is_integer(element) && wire_reader_int(&reader, &id));
        FUZZ_CHECK(json_integer_value(element) == id && id >= 0 && id < VOCABULARY);
    }
    FUZZ_CHECK(wire_reader_finish(&reader, "prompt", NULL) == WG_OK);
}

static void check_prompts(const route_t *route, const json_t *root, const request_body_t *body)
{
    const json_t *ids = json_object_get(root, route->prompt);
    bool is_nested = route->allows_prompts && json_is_array(json_array_get(ids, 0));
    FUZZ_CHECK(body->prompt_count == (is_nested ? json_array_size(ids) : 1));
    FUZZ_CHECK(body->prompt_count <= MAX_PROMPTS);
    for (size_t i = 0; i < body->prompt_count; i++)
        check_ids(is_nested ? json_array_get(ids, i) : ids, &body->prompts[i]);
}

static void check_sampling(const request_body_t *body)
{
    const wire_sampling_t *sampling = &body->sampling;
    FUZZ_CHECK(body->n >= 1 && body->n <= 8);
    FUZZ_CHECK(sampling->temperature >= 0 && sampling->temperature <= 2);
    FUZZ_CHECK(sampling->top_p > 0 && sampling->top_p <= 1);
    FUZZ_CHECK(sampling->min_p >= 0 && sampling->min_p <= 1);
    FUZZ_CHECK(sampling->repetition_penalty > 0 && sampling->repetition_penalty < 1e39);
    FUZZ_CHECK(sampling->top_k >= -1 && sampling->top_k <= INT32_MAX);
    FUZZ_CHECK(sampling->min_tokens >= 0);
    FUZZ_CHECK(sampling->max_tokens == 0 || sampling->min_tokens <= sampling->max_tokens);
    FUZZ_CHECK(sampling->logprobs == WIRE_UNSET || (sampling->logprobs >= 0 && sampling->logprobs <= 20));
    FUZZ_CHECK(sampling->all_stop_count <= 102);
    for (size_t i = 0; i < sampling->all_stop_count; i++)
        FUZZ_CHECK(sampling->all_stop_token_ids[i] >= 0 && sampling->all_stop_token_ids[i] < VOCABULARY);
}

/* As a request goes out: all of it must be what the engines' decoder takes. */
static void check_add(const request_body_t *body)
{
    for (size_t i = 0; i < body->prompt_count; i++) {
        msgpack_sbuffer out;
        wire_reader_t reader;
        const wire_add_t add = {
            .request_id = {"id", 2},
            .external_req_id = body->request_id,
            .prompt = body->prompts[i],
            .sampling = body->sampling,
            .cache_salt = body->cache_salt,
            .data_parallel_rank = -1,
            .priority = body->priority,
        };
        msgpack_sbuffer_init(&out);
        FUZZ_CHECK(wire_add_encode(&out, &add, NULL) == WG_OK);
        wire_reader_init(&reader, out.data, out.size);
        FUZZ_CHECK(wire_reader_skip(&reader));
        FUZZ_CHECK(wire_reader_finish(&reader, "ADD", NULL) == WG_OK);
        msgpack_sbuffer_destroy(&out);
    }
}

/* --- what must be taken --- */

static bool are_good_ids(const json_t *ids)
{
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= VOCABULARY)
            return false;
    }
    return json_array_size(ids) > 0; /* no array: 0 */
}

static bool is_good_prompt(const route_t *route, const json_t *value)
{
    if (!route->allows_prompts || !json_is_array(json_array_get(value, 0)))
        return are_good_ids(value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!are_good_ids(json_array_get(value, i)))
            return false;
    }
    return json_array_size(value) <= MAX_PROMPTS;
}

static bool is_plainly_good(const route_t *route, json_t *root, const uint8_t *data, size_t size)
{
    const char *key;
    json_t *value;
    if (!json_is_object(root) || memchr(data, '\0', size)) /* jansson passes over some NULs */
        return false;
    json_object_foreach(root, key, value)
    {
        bool is_known = (strcmp(key, "stream") == 0 && json_is_boolean(value)) ||
                        (strcmp(key, "priority") == 0 && json_is_integer(value)) ||
                        (strcmp(key, "cache_salt") == 0 && json_string_length(value) > 0);
        if (!is_known && strcmp(key, route->prompt) != 0)
            return false;
    }
    return is_good_prompt(route, json_object_get(root, route->prompt));
}

/* --- */

static void check_error(wg_status_t status, const wg_error_t *error)
{
    fuzz_refusal(status, error);
    FUZZ_CHECK(status == WG_E_INVALID_REQUEST || status == WG_E_UNSUPPORTED_FIELD ||
               status == WG_E_MODEL_NOT_FOUND); /* it is never our fault */
    for (const char *at = error->param; *at; at++)
        FUZZ_CHECK(*at >= ' ' && *at <= '~');
}

static void try_route(const route_t *route, const uint8_t *data, size_t size)
{
    request_body_t body;
    wg_error_t error = {0};
    json_t *root = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    wg_status_t status = route->parse(&body, config(), (const char *)data, size, &error);
    if (status == WG_OK) {
        FUZZ_CHECK(json_is_object(root));
        check_prompts(route, root, &body);
        check_sampling(&body);
        check_add(&body);
    } else {
        check_error(status, &error);
        FUZZ_CHECK(!is_plainly_good(route, root, data, size));
    }
    request_body_free(&body);
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        try_route(&routes[i], data, size);
    return 0;
}
