/* Bodies that are not JSON, or were made to hurt (cases B078 and B079). */
#include "tests/unit/generate_body_fixture.h"

#include <pthread.h>

typedef struct {
    const char *bytes;
    size_t size;
    const char *message;
} bytes_row_t;

#define BYTES(literal) literal, sizeof(literal) - 1

/* Ends where the block ends, so that the sanitizer sees a read behind it. */
static char *copy_of(const char *bytes, size_t size)
{
    char *block = malloc(size + 1);
    assert_non_null(block);
    memcpy(block + 1, bytes, size);
    return block;
}

static void assert_bytes_refused(const bytes_row_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *text = copy_of(rows[i].bytes, rows[i].size);
        const bad_body_t bad = INVALID(rows[i].bytes, "body", rows[i].message);
        assert_refused_bytes(model(), text + 1, rows[i].size, &bad);
        free(text);
    }
}

static void test_what_is_no_json_object_is_refused(void **state)
{
    (void)state;
    static const bytes_row_t rows[] = {
        {BYTES(""), "not valid JSON at line 1"},
        {BYTES(" \n"), "not valid JSON at line 2"},
        {BYTES("[]"), "must be a JSON object"},
        {BYTES("\"\""), "not valid JSON at line 1"},
        {BYTES("null"), "not valid JSON at line 1"},
        {BYTES("7"), "not valid JSON at line 1"},
        {BYTES("{:"), "not valid JSON at line 1"},
        {BYTES("{"), "not valid JSON at line 1"},
        {BYTES("{\"token_ids\":[1,2"), "not valid JSON at line 1"},
        {BYTES("{\"token_ids\":[1,]}"), "not valid JSON at line 1"},
        {BYTES("{\"token_ids\":[1]"), "not valid JSON at line 1"},
        {BYTES("{\"token_ids\":[1]}}"), "not valid JSON at line 1"},
        {BYTES("{\"token_ids\":[1]}{}"), "not valid JSON at line 1"},
        {BYTES("{\"token_ids\":[1]}\0"), "not valid JSON at line 1"},
        {BYTES("{\"token_ids\":[1]} garbage"), "not valid JSON at line 1"},
        {BYTES("\n\n{\"token_ids\" [1]}"), "not valid JSON at line 3"},
        {BYTES("\xef\xbb\xbf{\"token_ids\":[1]}"), "not valid JSON at line 1"}, /* BOM */
        {BYTES("\xff\xfe{\0"), "not valid JSON at line 1"},                     /* UTF-16 */
        {BYTES("{'token_ids':[1]}"), "not valid JSON at line 1"},
        {BYTES("{\"token_ids\":[1]/**/}"), "not valid JSON at line 1"},
        {BYTES("token_ids=1"), "not valid JSON at line 1"},
    };
    assert_bytes_refused(rows, COUNT_OF(rows));
    const bad_body_t none = INVALID("(no body)", "body", "not valid JSON at line 1");
    assert_refused_bytes(model(), NULL, 0, &none);
}

static void test_no_part_of_a_body_is_a_body(void **state)
{
    (void)state;
    static const char whole[] = "{\"token_ids\":[1,31999],\"request_id\":\"a\\u00e9\",\"sampling_params\":"
                                "{\"seed\":-5,\"top_p\":0.5e0}}";
    for (size_t cut = 0; cut < sizeof whole - 1; cut++) {
        char *text = copy_of(whole, cut);
        const bad_body_t bad = INVALID("(a cut body)", "body", "not valid JSON at line 1");
        assert_refused_bytes(model(), text + 1, cut, &bad);
        free(text);
    }
}

static void test_texts_that_are_not_utf8_are_refused_anywhere(void **state)
{
    (void)state;
    static const char *const bad_texts[] = {
        "\x80",
        "\xff",
        "\xc3",
        "\xc3(",
        "\xc0\xaf",
        "\xe0\x80\xaf",
        "\xed\xa0\x80",
        "\xf4\x90\x80\x80",
        "\\ud800",
        "\\udc00",
        "\\ud83d\\ud83d",
        "\\ud83dx",
        "a\\u0000b",
        "\x01",
        "\n",
        "\\x41",
        "\\u12",
    };
    static const char *const places[] = {
        "{\"token_ids\":[1],\"cache_salt\":\"%s\"}",
        "{\"token_ids\":[1],\"request_id\":\"%s\"}",
        "{\"token_ids\":[1],\"model\":\"%s\"}",
        "{\"token_ids\":[1],\"%s\":1}",
        "{\"token_ids\":[\"%s\"]}",
        "{\"token_ids\":[1],\"sampling_params\":{\"%s\":0}}",
    };
    for (size_t i = 0; i < COUNT_OF(bad_texts) * COUNT_OF(places); i++) {
        char body[256];
        int size = snprintf(body, sizeof body, places[i % COUNT_OF(places)], bad_texts[i / COUNT_OF(places)]);
        const bytes_row_t row = {body, (size_t)size, "not valid JSON at line"};
        assert_bytes_refused(&row, 1);
    }
}

/* jansson passes over one that stands behind a number or a word. */
static void test_a_nul_is_refused_anywhere(void **state)
{
    (void)state;
    static const char whole[] =
        "{\"token_ids\":[1 , 31999],\"priority\":-5,\"stream\":true,\"cache_salt\":null,"
        "\"sampling_params\":{\"top_p\":0.5e0,\"seed\":7}}";
    char text[sizeof whole];
    for (size_t at = 0; at < sizeof whole; at++) {
        memcpy(text, whole, at);
        text[at] = '\0';
        memcpy(text + at + 1, whole + at, sizeof whole - 1 - at);
        char *block = copy_of(text, sizeof whole);
        const bad_body_t bad = INVALID("(a body with a NUL)", "body", "not valid JSON at line 1, column");
        assert_refused_bytes(model(), block + 1, sizeof whole, &bad);
        free(block);
    }
}

/* The ids are cut out before jansson sees the text, but a place is one in the text as it came. */
static void test_a_fault_behind_the_prompt_is_found_at_its_place(void **state)
{
    (void)state;
    static const bytes_row_t rows[] = {
        {BYTES("{\"token_ids\":[1,2,3],x}"), "not valid JSON at line 1, column 22"},
        {BYTES("{\"token_ids\":[1,\n2,\n3],x}"), "not valid JSON at line 3, column 4"},
        {BYTES("{x,\"token_ids\":[1,2,3]}"), "not valid JSON at line 1, column 2"},
        {BYTES("{\"token_ids\":[100,200,300,400,500,600,700,800,900],\n\"a\":[}"), "at line 2, column 6"},
    };
    assert_bytes_refused(rows, COUNT_OF(rows));
}

/* What the body holds never comes back as raw bytes: assert_refused_bytes checks every text. */
static void test_error_texts_are_printable_and_bounded(void **state)
{
    (void)state;
    char json[2048];
    char name[1001] = "";
    memset(name, 'k', 1000);
    snprintf(json, sizeof json, BODY("'%s':1"), name);
    name[63] = '\0'; /* as much as a param can hold */
    const bad_body_t unknown = UNSUPPORTED(json, name, "unsupported field `kkk");
    assert_refused_by(model(), &unknown, 1);
    ASSERT_REFUSED(
        UNSUPPORTED(BODY("'\\u0007\\u001b[2J\\u00e9':1"), "??[2J??", "unsupported field `??[2J??`"),
        UNSUPPORTED(SAMPLING("'a\\nb':1"), "a?b", "unsupported field `a?b` in sampling_params"),
        {BODY("'model':'\\ud83d\\ude00\\r\\n'"), WG_E_MODEL_NOT_FOUND, "model", "the model `??????`"});
    memset(name, 'm', 1000);
    snprintf(json, sizeof json, BODY("'model':'%s'"), name);
    const bad_body_t long_model = {json, WG_E_MODEL_NOT_FOUND, "model", "the model `mmm"};
    assert_refused_by(model(), &long_model, 1);
}

/* --- nesting --- */

typedef struct {
    const char *prefix;
    const char *unit;
    size_t times;
} nest_t;

static const nest_t nests[] = {
    {"", "[", 100000},
    {"", "{\"a\":", 100000},
    {"", "[{\"a\":", 50000},
    {"{\"token_ids\":", "[", 100000},
    {"{\"token_ids\":[1],\"sampling_params\":", "{\"a\":", 100000},
    {"{\"later\":", "[", 3000},
};

static char *nest_text(const nest_t *nest, size_t *size)
{
    size_t prefix = strlen(nest->prefix);
    size_t unit = strlen(nest->unit);
    char *text = malloc(prefix + nest->times * unit);
    *size = prefix + nest->times * unit;
    if (!text)
        return NULL;
    memcpy(text, nest->prefix, prefix);
    for (size_t at = prefix; at < *size; at += unit)
        memcpy(text + at, nest->unit, unit);
    return text;
}

static bool is_refused(request_body_parse_fn *parse, const char *text, size_t size)
{
    request_body_t body;
    wg_error_t error = {0};
    wg_status_t status = parse(&body, model(), text, size, &error);
    request_body_free(&body);
    return status == WG_E_INVALID_REQUEST && strcmp(error.param, "body") == 0;
}

static void *parse_nests(void *context)
{
    size_t *refused = context;
    for (size_t i = 0; i < COUNT_OF(nests); i++) {
        size_t size;
        char *text = nest_text(&nests[i], &size);
        if (!text)
            continue;
        *refused +=
            is_refused(generate_body_parse, text, size) && is_refused(completions_body_parse, text, size);
        free(text);
    }
    return NULL;
}

/* The deepest that a configuration can let in goes through every recursive function there is. */
static void *parse_deepest(void *context)
{
    static const char head[] =
        "{\"token_ids\":[1],\"sampling_params\":{\"structured_outputs\":{\"json\":{\"a\":";
    static const char middle[] = "}},\"extra_args\":{\"a\":";
    size_t *taken_deepest = context;
    wg_config_t config = *model();
    config.limits.max_json_depth = 64;
    char json[512];
    size_t size = (size_t)sprintf(json, "%s", head);
    memset(json + size, '[', 60);
    memset(json + size + 60, ']', 60);
    size += 120;
    size += (size_t)sprintf(json + size, "%s", middle);
    memset(json + size, '[', 61);
    memset(json + size + 61, ']', 61);
    size += 122;
    size += (size_t)sprintf(json + size, "}}}");
    request_body_t body;
    *taken_deepest += generate_body_parse(&body, &config, json, size, NULL) == WG_OK;
    request_body_free(&body);
    return NULL;
}

static void run_on_a_small_stack(void *(*run)(void *), size_t *context)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, (size_t)256 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run, context), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

static void test_deep_nesting_is_refused_on_a_small_stack(void **state)
{
    (void)state;
    size_t refused = 0;
    run_on_a_small_stack(parse_nests, &refused);
    assert_int_equal(refused, COUNT_OF(nests));
}

static void test_the_deepest_body_is_taken_on_a_small_stack(void **state)
{
    (void)state;
    size_t taken_deepest = 0;
    run_on_a_small_stack(parse_deepest, &taken_deepest);
    assert_int_equal(taken_deepest, 1);
}

/* Bad text, in the same place. */
static void *parse_bad_texts(void *context)
{
    size_t *refused = context;
    static const bytes_row_t rows[] = {
        {BYTES("{\"token_ids\":[1],\"request_id\":\"\xc0\xaf\"}"), NULL},
        {BYTES("{\"token_ids\":[1],\"request_id\":\"\\ud800\"}"), NULL},
        {BYTES("{\"token_ids\":[1],\"request_id\":\"a\\u0000b\"}"), NULL},
        {BYTES("{\"token_ids\":[1],\"request_id\":\"a\0b\"}"), NULL},
        {BYTES("{\"token_ids\":[1\0,2]}"), NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        *refused += is_refused(generate_body_parse, rows[i].bytes, rows[i].size);
    return NULL;
}

static void test_bad_texts_are_refused_on_a_small_stack(void **state)
{
    (void)state;
    size_t refused = 0;
    run_on_a_small_stack(parse_bad_texts, &refused);
    assert_int_equal(refused, 5);
}

/* It is sound JSON, so it gets as far as the field that nobody knows. */
static void test_nesting_within_the_limit_is_refused_as_a_field(void **state)
{
    (void)state;
    const size_t depth = 31; /* with the body's own, the limit */
    char json[2064];
    size_t size = (size_t)sprintf(json, "{\"token_ids\":[1],\"later\":");
    memset(json + size, '[', depth);
    memset(json + size + depth, ']', depth);
    json[size + 2 * depth] = '}';
    const bad_body_t bad = UNSUPPORTED("(nested)", "later", "unsupported field `later`");
    assert_refused_bytes(model(), json, size + 2 * depth + 1, &bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_json_object_is_refused),
        cmocka_unit_test(test_no_part_of_a_body_is_a_body),
        cmocka_unit_test(test_texts_that_are_not_utf8_are_refused_anywhere),
        cmocka_unit_test(test_a_nul_is_refused_anywhere),
        cmocka_unit_test(test_a_fault_behind_the_prompt_is_found_at_its_place),
        cmocka_unit_test(test_error_texts_are_printable_and_bounded),
        cmocka_unit_test(test_deep_nesting_is_refused_on_a_small_stack),
        cmocka_unit_test(test_the_deepest_body_is_taken_on_a_small_stack),
        cmocka_unit_test(test_bad_texts_are_refused_on_a_small_stack),
        cmocka_unit_test(test_nesting_within_the_limit_is_refused_as_a_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
