/* config_file.h: for the tests of the configuration: loads a text as if it stood in a file, and says how a
 * text must be refused. */
#ifndef WG_TESTS_CONFIG_FILE_H
#define WG_TESTS_CONFIG_FILE_H

#include "common/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Two frontends, with everything that is required and a little more. */
#define CONFIG_MODEL "model = { name = \"demo\"; vocab_size = 32000; eos_token_ids = [ 2, 7 ]; };\n"
#define CONFIG_RANKS "ranks = { count = 4; lockstep = false; };\n"
#define CONFIG_COORDINATOR                                                                                   \
    "coordinator = {\n"                                                                                      \
    "  handshake = \"tcp://127.0.0.1:29550\";\n"                                                             \
    "  engine_publish = \"tcp://127.0.0.1:29551\";\n"                                                        \
    "  engine_output = \"tcp://127.0.0.1:29552\";\n"                                                         \
    "  frontend_publish = \"tcp://127.0.0.1:29553\";\n"                                                      \
    "  control = \"tcp://127.0.0.1:29554\";\n"                                                               \
    "  input = \"tcp://127.0.0.1:29555\";\n"                                                                 \
    "  output = \"tcp://127.0.0.1:29556\";\n"                                                                \
    "  http = \"127.0.0.1:9000\";\n"                                                                         \
    "};\n"
#define CONFIG_FRONTEND_LIST                                                                                 \
    "frontends = (\n"                                                                                        \
    "  { name = \"fe0\"; ranks = \"0-3\"; http = \"127.0.0.1:8000\";\n"                                      \
    "    input = \"tcp://127.0.0.1:29560\"; output = \"tcp://127.0.0.1:29561\"; },\n"                        \
    "  { name = \"fe1\"; ranks = \"0,2\"; http = \"127.0.0.1:8001\";\n"                                      \
    "    input = \"tcp://127.0.0.1:29562\"; output = \"tcp://127.0.0.1:29563\"; }\n"                         \
    ");\n"
#define CONFIG_TEXT CONFIG_MODEL CONFIG_RANKS CONFIG_COORDINATOR CONFIG_FRONTEND_LIST

/* The text with its first `old` replaced. The caller frees. */
static inline char *config_replaced(const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    if (!at)
        fail_msg("the text does not hold: %s", old);
    size_t head = (size_t)(at - text);
    size_t size = strlen(text) - strlen(old) + strlen(new) + 1;
    char *out = malloc(size);
    assert_non_null(out);
    snprintf(out, size, "%.*s%s%s", (int)head, text, new, at + strlen(old));
    return out;
}

static inline wg_status_t config_load_bytes(wg_config_t **out, const void *bytes, size_t size,
                                            wg_error_t *error)
{
    char path[] = "/tmp/wavegate-config-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), (ssize_t)size);
    close(file);
    wg_status_t status = wg_config_load(out, path, error);
    unlink(path);
    return status;
}

static inline wg_status_t config_load_text(wg_config_t **out, const char *text, wg_error_t *error)
{
    return config_load_bytes(out, text, strlen(text), error);
}

/* A text that must be accepted. The caller destroys. */
static inline wg_config_t *config_of(const char *text)
{
    wg_config_t *config = NULL;
    wg_error_t error = {0};
    if (config_load_text(&config, text, &error) != WG_OK)
        fail_msg("refused: %s", error.message);
    return config;
}

static inline wg_config_t *config_of_replaced(const char *old, const char *new)
{
    char *text = config_replaced(CONFIG_TEXT, old, new);
    wg_config_t *config = config_of(text);
    free(text);
    return config;
}

/* The caller frees. */
static inline char *printed(const wg_config_t *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    wg_config_print(config, stream);
    fclose(stream);
    return text;
}

/* --- refusals --- */

/* What the plain file is changed by, and what must then be said. */
typedef struct {
    const char *old;
    const char *new;
    const char *key;
    const char *reason; /* a part of it */
    int line;           /* 0: that of the change */
} refusal_t;

static inline int line_of(const char *text, const char *part)
{
    int line = 1;
    for (const char *at = text; at < strstr(text, part); at++)
        line += *at == '\n';
    return line;
}

static inline void assert_refused_at(const char *text, int line, const char *key, const char *reason)
{
    wg_config_t *config = (wg_config_t *)text;
    wg_error_t error = {0};
    wg_status_t status = config_load_text(&config, text, &error);
    if (status == WG_OK)
        fail_msg("accepted, but %s: %s", key, reason);
    assert_int_equal(status, WG_E_CONFIG);
    assert_int_equal(error.status, WG_E_CONFIG);
    assert_null(config);
    char place[128];
    snprintf(place, sizeof place, ":%d: %s: ", line, key);
    const char *at = strstr(error.message, place);
    if (strncmp(error.message, "/tmp/wavegate-config-", 21) != 0 || !at || !strstr(at, reason))
        fail_msg("said: %s\nexpected: FILE%s%s", error.message, place, reason);
}

static inline void assert_refused(const refusal_t *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const refusal_t *refusal = &refusals[i];
        char *text = config_replaced(CONFIG_TEXT, refusal->old, refusal->new);
        int line = refusal->line ? refusal->line : line_of(CONFIG_TEXT, refusal->old);
        assert_refused_at(text, line, refusal->key, refusal->reason);
        free(text);
    }
}

#define ASSERT_REFUSED(...)                                                                                  \
    do {                                                                                                     \
        static const refusal_t refusals[] = {__VA_ARGS__};                                                   \
        assert_refused(refusals, sizeof refusals / sizeof *refusals);                                        \
    } while (0)

#endif
