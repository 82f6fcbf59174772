/* generate_body_fixture.h: for the tests of the request bodies of both routes: a model, and how a body must be
 * taken or refused. Bodies are written with single quotes (json_text.h). */
#ifndef WG_TESTS_GENERATE_BODY_FIXTURE_H
#define WG_TESTS_GENERATE_BODY_FIXTURE_H

#include "frontend/request_body.h"
#include "tests/unit/json_text.h"

#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define SAMPLING(members) "{'token_ids':[1],'sampling_params':{" members "}}"
#define BODY(members) "{'token_ids':[1]," members "}"

/* Of the route under test. */
static request_body_parse_fn *parse_body = generate_body_parse;

/* What model_files_apply makes of a configuration that says nothing. */
#define DEFAULTS                                                                                             \
    {                                                                                                        \
        .temperature = 1, .top_p = 1, .repetition_penalty = 1                                                \
    }
#define LIMITS                                                                                               \
    {                                                                                                        \
        .max_json_depth = 32, .max_ids_per_list = 100, .max_choices = 8, .max_prompts = 4,                   \
        .max_logprobs = 20                                                                                   \
    }

static inline const wg_config_t *model(void)
{
    static char name[] = "demo";
    static int64_t eos[] = {2, 7};
    static char backend[] = "guidance";
    static char adapter[] = "sql";
    static char adapter_path[] = "/loras/sql";
    static config_adapter_t adapters[] = {{adapter, 3, adapter_path}};
    static const wg_config_t config = {
        .model = {.name = name,
                  .vocab_size = 32000,
                  .eos_token_ids = eos,
                  .eos_count = 2,
                  .structured_outputs_backend = backend},
        .defaults = DEFAULTS,
        .limits = LIMITS,
        .adapters = adapters,
        .adapter_count = 1,
    };
    return &config;
}

/* Neither its vocabulary nor its EOS ids are known. */
static inline const wg_config_t *unknown_model(void)
{
    static char name[] = "demo";
    static const wg_config_t config = {.model = {.name = name}, .defaults = DEFAULTS, .limits = LIMITS};
    return &config;
}

/* The caller frees the body. */
static inline request_body_t taken_by(const wg_config_t *config, const char *json)
{
    request_body_t body;
    wg_error_t error;
    char *text = json_text(json);
    if (parse_body(&body, config, text, strlen(json), &error) != WG_OK)
        fail_msg("refused: %s: %s", json, error.message);
    free(text); /* nothing in the body points into it */
    return body;
}

static inline request_body_t taken(const char *json)
{
    return taken_by(model(), json);
}

static inline void assert_prompt(const request_body_t *body, size_t prompt, const uint32_t *ids, size_t count)
{
    wire_reader_t reader;
    int64_t id = -1;
    assert_in_range(prompt + 1, 1, body->prompt_count);
    wire_reader_init(&reader, body->prompts[prompt].packed.data, body->prompts[prompt].packed.size);
    assert_int_equal(body->prompts[prompt].count, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(wire_reader_int(&reader, &id));
        assert_int_equal(id, ids[i]);
    }
    assert_int_equal(wire_reader_finish(&reader, "prompt", NULL), WG_OK);
}

/* A packed value as msgpack-c prints it, but with single quotes. */
static inline void assert_packed(wire_bytes_t packed, const char *wanted)
{
    char printed[1024] = "";
    char *text = json_text(wanted);
    msgpack_unpacked unpacked;
    size_t at = 0;
    msgpack_unpacked_init(&unpacked);
    assert_int_equal(msgpack_unpack_next(&unpacked, (const char *)packed.data, packed.size, &at),
                     MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(at, packed.size);
    msgpack_object_print_buffer(printed, sizeof printed, unpacked.data);
    if (strlen(printed) != strlen(wanted) || memcmp(printed, text, strlen(wanted)) != 0)
        fail_msg("packed: %s\nexpected: %s", printed, wanted);
    msgpack_unpacked_destroy(&unpacked);
    free(text);
}

/* A body, what it must be refused for, and a part of what is said. */
typedef struct {
    const char *json;
    wg_status_t status;
    const char *param;
    const char *message;
} bad_body_t;

static inline void assert_printable(const char *text)
{
    for (; *text; text++)
        assert_in_range((unsigned char)*text, 0x20, 0x7e);
}

static inline void assert_refused_bytes(const wg_config_t *config, const char *text, size_t size,
                                        const bad_body_t *bad)
{
    request_body_t body;
    wg_error_t error = {0};
    wg_status_t status = parse_body(&body, config, text, size, &error);
    if (status != bad->status || strcmp(error.param, bad->param) != 0 || !strstr(error.message, bad->message))
        fail_msg("%.200s\nsaid: %s, param `%s`: %s\nexpected: %s, param `%s`: %s", bad->json,
                 wg_status_name(status), error.param, status == WG_OK ? "" : error.message,
                 wg_status_name(bad->status), bad->param, bad->message);
    assert_int_equal(error.status, status);
    assert_printable(error.message);
    assert_printable(error.param);
    request_body_free(&body); /* it always can be freed */
}

static inline void assert_refused_by(const wg_config_t *config, const bad_body_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *text = json_text(rows[i].json);
        assert_refused_bytes(config, text, strlen(rows[i].json), &rows[i]);
        free(text);
    }
}

#define ASSERT_REFUSED(...)                                                                                  \
    do {                                                                                                     \
        static const bad_body_t refused[] = {__VA_ARGS__};                                                   \
        assert_refused_by(model(), refused, COUNT_OF(refused));                                              \
    } while (0)

#define INVALID(json, param, message)                                                                        \
    {                                                                                                        \
        json, WG_E_INVALID_REQUEST, param, message                                                           \
    }
#define UNSUPPORTED(json, param, message)                                                                    \
    {                                                                                                        \
        json, WG_E_UNSUPPORTED_FIELD, param, message                                                         \
    }

#endif
