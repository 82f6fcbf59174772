#include "common/config_source.h"

#include "common/text_buffer.h"

#include <errno.h>
#include <libconfig.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_FILE "file"
#define SYNTAX "syntax"
#define SHOWN_PATH_SIZE 160u

struct config_source {
    config_t file;
};

wg_status_t config_source_fail(wg_error_t *error, const char *path, int line, const char *key,
                               const char *format, ...)
{
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    for (char *at = reason; *at; at++) {
        if (*at < 0x20 || *at > 0x7e)
            *at = '?';
    }
    size_t length = strlen(path);
    const char *shown = length > SHOWN_PATH_SIZE ? path + length - SHOWN_PATH_SIZE : path;
    return WG_FAIL(error, CONFIG, shown, line, key, reason);
}

static bool read_stream(text_buffer_t *text, FILE *stream)
{
    size_t got;
    do {
        char *room = text_buffer_reserve(text, 4096);
        if (!room) {
            errno = ENOMEM;
            return false;
        }
        got = fread(room, 1, 4096, stream);
        text->size += got;
    } while (got > 0 && text->size <= CONFIG_SOURCE_BYTES_MAX);
    return !ferror(stream);
}

static wg_status_t read_file(text_buffer_t *text, const char *path, wg_error_t *error)
{
    FILE *stream = fopen(path, "re");
    if (!stream)
        return config_source_fail(error, path, 0, WHOLE_FILE, "cannot be opened: %s", strerror(errno));
    bool complete = read_stream(text, stream);
    int cause = errno;
    if (fclose(stream) != 0 || !complete)
        return config_source_fail(error, path, 0, WHOLE_FILE, "cannot be read: %s", strerror(cause));
    if (text->size > CONFIG_SOURCE_BYTES_MAX)
        return config_source_fail(error, path, 0, WHOLE_FILE, "is larger than %u bytes",
                                  CONFIG_SOURCE_BYTES_MAX);
    return WG_OK;
}

/* --- what libconfig would take in silence --- */

typedef struct {
    const char *at;
    const char *end; /* where a NUL stands */
    int line;
    text_buffer_t *out;
} scan_t;

static bool in_set(char c, const char *set)
{
    return c && strchr(set, c);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || in_set(c, "_-*");
}

static void copy_until(scan_t *scan, const char *to)
{
    for (const char *at = scan->at; at < to; at++)
        scan->line += *at == '\n';
    text_buffer_bytes(scan->out, scan->at, (size_t)(to - scan->at));
    scan->at = to;
}

static const char *string_end(const scan_t *scan)
{
    for (const char *at = scan->at + 1; at < scan->end; at++) {
        if (*at == '\\')
            at++;
        else if (*at == '"')
            return at + 1;
    }
    return scan->end;
}

/* The end of the comment that starts here, or NULL. */
static const char *comment_end(const scan_t *scan)
{
    size_t left = (size_t)(scan->end - scan->at);
    const char *end;
    if (left >= 2 && memcmp(scan->at, "/*", 2) == 0) {
        end = memmem(scan->at + 2, left - 2, "*/", 2);
        return end ? end + 2 : NULL;
    }
    if (*scan->at != '#' && (left < 2 || memcmp(scan->at, "//", 2) != 0))
        return NULL;
    end = memchr(scan->at, '\n', left);
    return end ? end : scan->end;
}

/* libconfig takes the rest of the file for the comment, with all the keys in it. */
static bool is_open_comment(const scan_t *scan)
{
    return scan->at[0] == '/' && scan->at[1] == '*' && !comment_end(scan);
}

/* libconfig 1.5 reads an integer without L by atoi, which cuts 5000000000 to 705032704, and lets a wider hex
 * number wrap. Such a number gets its L here, and the nearest value that has one, so that the key's own range
 * check refuses it. */
static void copy_number(scan_t *scan)
{
    bool hex = scan->at[0] == '0' && in_set(scan->at[1], "xX");
    const char *end = scan->at + (hex ? 2 : 0);
    while (in_set(*end, hex ? "0123456789abcdefABCDEF" : "0123456789"))
        end++;
    if (!hex && in_set(*end, ".eE")) {
        while (is_name(*end) || in_set(*end, ".+"))
            end++;
        copy_until(scan, end);
        return;
    }
    unsigned long long value = strtoull(scan->at, NULL, hex ? 16 : 10);
    if (value <= INT32_MAX) {
        copy_until(scan, end);
        return;
    }
    text_buffer_format(scan->out, "%lldL", value < INT64_MAX ? (long long)value : (long long)INT64_MAX);
    while (in_set(*end, "lL"))
        end++;
    scan->at = end;
}

static void copy_name(scan_t *scan)
{
    const char *end = scan->at;
    while (is_name(*end))
        end++;
    copy_until(scan, end);
}

static void copy_token(scan_t *scan)
{
    const char *comment = comment_end(scan);
    if (comment)
        copy_until(scan, comment);
    else if (*scan->at == '"')
        copy_until(scan, string_end(scan));
    else if (is_digit(*scan->at))
        copy_number(scan);
    else if (is_name(*scan->at) && *scan->at != '-')
        copy_name(scan);
    else
        copy_until(scan, scan->at + 1);
}

static wg_status_t check_text(const text_buffer_t *text, text_buffer_t *out, const char *path,
                              wg_error_t *error)
{
    scan_t scan = {.at = text->data, .end = text->data + text->size - 1, .line = 1, .out = out};
    while (scan.at < scan.end) {
        /* An included file would come without these checks, and libconfig ends the process if it is a folder.
         */
        if (strncmp(scan.at, "@include", strlen("@include")) == 0)
            return config_source_fail(error, path, scan.line, SYNTAX,
                                      "@include is not supported: one file describes the cluster");
        if (is_open_comment(&scan))
            return config_source_fail(error, path, scan.line, SYNTAX,
                                      "the comment that begins here has no end");
        copy_token(&scan);
    }
    text_buffer_bytes(out, "", 1);
    if (out->failed)
        return config_source_fail(error, path, 0, WHOLE_FILE, "cannot be read: %s", strerror(ENOMEM));
    return WG_OK;
}

static wg_status_t read_checked(text_buffer_t *out, const char *path, wg_error_t *error)
{
    text_buffer_t text = {0};
    wg_status_t status = read_file(&text, path, error);
    if (status == WG_OK && text.size > 0 && memchr(text.data, 0, text.size))
        status = config_source_fail(error, path, 0, WHOLE_FILE, "holds a NUL byte");
    if (status == WG_OK) {
        text_buffer_bytes(&text, "", 1);
        status = text.failed
                     ? config_source_fail(error, path, 0, WHOLE_FILE, "cannot be read: %s", strerror(ENOMEM))
                     : check_text(&text, out, path, error);
    }
    text_buffer_free(&text);
    return status;
}

/* --- the tree --- */

static const config_setting_t *setting_of(const config_node_t *node)
{
    return (const config_setting_t *)node;
}

static const config_node_t *node_of(const config_setting_t *setting)
{
    return (const config_node_t *)setting;
}

wg_status_t config_source_open(config_source_t **out, const char *path, wg_error_t *error)
{
    *out = NULL;
    text_buffer_t text = {0};
    config_source_t *source = NULL;
    wg_status_t status = read_checked(&text, path, error);
    if (status != WG_OK)
        goto end;
    source = calloc(1, sizeof *source);
    if (!source) {
        status = WG_FAIL(error, SYSTEM, path, strerror(ENOMEM));
        goto end;
    }
    config_init(&source->file);
    if (!config_read_string(&source->file, text.data)) {
        const char *fault = config_error_text(&source->file);
        status = config_source_fail(error, path, config_error_line(&source->file), SYNTAX, "%s",
                                    fault ? fault : "cannot be parsed");
        config_source_close(&source);
    }
end:
    text_buffer_free(&text);
    *out = source;
    return status;
}

void config_source_close(config_source_t **source)
{
    if (!*source)
        return;
    config_destroy(&(*source)->file);
    free(*source);
    *source = NULL;
}

const config_node_t *config_source_root(const config_source_t *source)
{
    return node_of(config_root_setting(&source->file));
}

config_node_kind_t config_node_kind(const config_node_t *node)
{
    switch (config_setting_type(setting_of(node))) {
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        return CONFIG_NODE_INT;
    case CONFIG_TYPE_BOOL:
        return CONFIG_NODE_BOOL;
    case CONFIG_TYPE_FLOAT:
        return CONFIG_NODE_FLOAT;
    case CONFIG_TYPE_STRING:
        return CONFIG_NODE_TEXT;
    case CONFIG_TYPE_ARRAY:
        return CONFIG_NODE_ARRAY;
    case CONFIG_TYPE_LIST:
        return CONFIG_NODE_LIST;
    default:
        return CONFIG_NODE_GROUP;
    }
}

const char *config_node_kind_name(config_node_kind_t kind)
{
    static const char *const names[] = {
        [CONFIG_NODE_INT] = "an int",    [CONFIG_NODE_BOOL] = "a bool",   [CONFIG_NODE_FLOAT] = "a float",
        [CONFIG_NODE_TEXT] = "a string", [CONFIG_NODE_GROUP] = "a group", [CONFIG_NODE_ARRAY] = "an array",
        [CONFIG_NODE_LIST] = "a list",
    };
    return names[kind];
}

const char *config_node_name(const config_node_t *node)
{
    return config_setting_name(setting_of(node));
}

int config_node_line(const config_node_t *node)
{
    /* The root has none: it stands at the file's beginning. */
    unsigned line = config_setting_source_line(setting_of(node));
    return line > 0 ? (int)line : 1;
}

uint32_t config_node_count(const config_node_t *node)
{
    return config_setting_is_aggregate(setting_of(node)) ? (uint32_t)config_setting_length(setting_of(node))
                                                         : 0;
}

const config_node_t *config_node_child(const config_node_t *node, uint32_t index)
{
    return node_of(config_setting_get_elem(setting_of(node), index));
}

const config_node_t *config_node_member(const config_node_t *group, const char *name)
{
    return node_of(config_setting_get_member(setting_of(group), name));
}

int64_t config_node_int(const config_node_t *node)
{
    return config_setting_get_int64(setting_of(node));
}

bool config_node_bool(const config_node_t *node)
{
    return config_setting_get_bool(setting_of(node));
}

double config_node_float(const config_node_t *node)
{
    return config_setting_get_float(setting_of(node));
}

const char *config_node_text(const config_node_t *node)
{
    return config_setting_get_string(setting_of(node));
}
