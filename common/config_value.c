#include "common/config_value.h"

#include "common/config_address.h"
#include "common/config_table.h"
#include "common/log.h"
#include "common/wire_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void *config_value_field(const config_value_t *value)
{
    return (char *)value->base + value->key->at;
}

const void *config_value_at(const config_key_t *key, const void *base)
{
    return (const char *)base + key->at;
}

uint32_t config_value_count(const config_key_t *key, const void *base)
{
    return *(const uint32_t *)((const char *)base + key->count_at);
}

void config_value_set_count(const config_value_t *value, uint32_t count)
{
    *(uint32_t *)((char *)value->base + value->key->count_at) = count;
}

wg_status_t config_value_no_memory(const config_value_t *value)
{
    return WG_FAIL(value->reading->error, SYSTEM, value->reading->path, strerror(ENOMEM));
}

wg_status_t config_value_read(const config_value_t *value, const config_node_t *node)
{
    const config_type_t *type = value->key->type;
    if (!node) {
        if (!value->key->fallback)
            return config_fail(value->reading, value->place, "is required");
        return type->fall_back ? type->fall_back(value) : WG_OK;
    }
    config_node_kind_t kind = config_node_kind(node);
    bool list = type->kind == CONFIG_NODE_ARRAY && kind == CONFIG_NODE_LIST;
    bool number = type->kind == CONFIG_NODE_FLOAT && kind == CONFIG_NODE_INT;
    if (kind != type->kind && !list && !number)
        return config_fail(value->reading, value->place, "must be %s, not %s",
                           config_node_kind_name(type->kind), config_node_kind_name(kind));
    return type->read(value, node);
}

/* --- numbers --- */

static wg_status_t check_range(const config_value_t *value, int64_t number)
{
    const config_key_t *key = value->key;
    if (number < key->min || number > key->max)
        return config_fail(value->reading, value->place,
                           "%" PRId64 " is out of range, must be in [%" PRId64 ", %" PRId64 "]", number,
                           key->min, key->max);
    return WG_OK;
}

static wg_status_t read_int(const config_value_t *value, const config_node_t *node)
{
    *(int64_t *)config_value_field(value) = config_node_int(node);
    return check_range(value, config_node_int(node));
}

static wg_status_t fall_back_int(const config_value_t *value)
{
    *(int64_t *)config_value_field(value) = strtoll(value->key->fallback, NULL, 10);
    return WG_OK;
}

static bool is_set_int(const config_key_t *key, const void *base)
{
    bool optional = key->fallback && *key->fallback == '\0';
    return !optional || *(const int64_t *)config_value_at(key, base) != 0;
}

static void print_int(const config_key_t *key, const void *base, FILE *stream)
{
    fprintf(stream, "%" PRId64, *(const int64_t *)config_value_at(key, base));
}

const config_type_t config_type_int = {
    "int", CONFIG_NODE_INT, read_int, fall_back_int, is_set_int, print_int,
};

static wg_status_t fall_back_unset(const config_value_t *value)
{
    *(int64_t *)config_value_field(value) = WG_CONFIG_UNSET;
    return WG_OK;
}

static bool is_set_optional_int(const config_key_t *key, const void *base)
{
    return *(const int64_t *)config_value_at(key, base) != WG_CONFIG_UNSET;
}

const config_type_t config_type_optional_int = {
    "int", CONFIG_NODE_INT, read_int, fall_back_unset, is_set_optional_int, print_int,
};

static wg_status_t read_count(const config_value_t *value, const config_node_t *node)
{
    wg_status_t status = check_range(value, config_node_int(node));
    if (status == WG_OK)
        *(uint32_t *)config_value_field(value) = (uint32_t)config_node_int(node);
    return status;
}

static void print_count(const config_key_t *key, const void *base, FILE *stream)
{
    fprintf(stream, "%" PRIu32, *(const uint32_t *)config_value_at(key, base));
}

const config_type_t config_type_count = {
    "int", CONFIG_NODE_INT, read_count, NULL, NULL, print_count,
};

static wg_status_t read_bool(const config_value_t *value, const config_node_t *node)
{
    *(bool *)config_value_field(value) = config_node_bool(node);
    return WG_OK;
}

static void print_bool(const config_key_t *key, const void *base, FILE *stream)
{
    fputs(*(const bool *)config_value_at(key, base) ? "true" : "false", stream);
}

const config_type_t config_type_bool = {
    "bool", CONFIG_NODE_BOOL, read_bool, NULL, NULL, print_bool,
};

/* --- texts --- */

static wg_status_t set_text(const config_value_t *value, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return config_value_no_memory(value);
    *(char **)config_value_field(value) = copy;
    return WG_OK;
}

static bool is_set_text(const config_key_t *key, const void *base)
{
    return *(char *const *)config_value_at(key, base) != NULL;
}

void config_value_print_text(const char *text, FILE *stream)
{
    fputc('"', stream);
    for (const char *at = text; *at; at++) {
        if (*at == '"' || *at == '\\')
            fputc('\\', stream);
        fputc(*at, stream);
    }
    fputc('"', stream);
}

static void print_text(const config_key_t *key, const void *base, FILE *stream)
{
    config_value_print_text(*(char *const *)config_value_at(key, base), stream);
}

static wg_status_t read_text(const config_value_t *value, const config_node_t *node)
{
    const char *text = config_node_text(node);
    size_t length = strlen(text);
    if (length == 0 || length > CONFIG_TEXT_BYTES_MAX)
        return config_fail(value->reading, value->place, "has %zu bytes, must have 1 to %u", length,
                           CONFIG_TEXT_BYTES_MAX);
    for (const char *at = text; *at; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return config_fail(value->reading, value->place, "holds a control character");
    }
    if (!wire_utf8_valid(text, length))
        return config_fail(value->reading, value->place, "is not UTF-8");
    return set_text(value, text);
}

const config_type_t config_type_text = {
    "string", CONFIG_NODE_TEXT, read_text, NULL, is_set_text, print_text,
};

static wg_status_t read_name(const config_value_t *value, const config_node_t *node)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const char *text = config_node_text(node);
    size_t length = strlen(text);
    if (length == 0 || length > CONFIG_NAME_BYTES_MAX)
        return config_fail(value->reading, value->place, "has %zu bytes, must have 1 to %u", length,
                           CONFIG_NAME_BYTES_MAX);
    if (strspn(text, allowed) != length)
        return config_fail(value->reading, value->place, "`%s` may hold only A-Z a-z 0-9 . _ -", text);
    return set_text(value, text);
}

const config_type_t config_type_name = {
    "string", CONFIG_NODE_TEXT, read_name, NULL, is_set_text, print_text,
};

static wg_status_t read_host(const config_value_t *value, const config_node_t *node)
{
    char reason[CONFIG_REASON_SIZE];
    if (!config_host_parse(config_node_text(node), reason))
        return config_fail(value->reading, value->place, "%s", reason);
    return set_text(value, config_node_text(node));
}

const config_type_t config_type_host = {
    "string", CONFIG_NODE_TEXT, read_host, NULL, is_set_text, print_text,
};

static wg_status_t read_level(const config_value_t *value, const config_node_t *node)
{
    log_level_t level;
    if (!log_level_parse(config_node_text(node), &level))
        return config_fail(value->reading, value->place,
                           "must be error, warning, notice or debug, not `%.64s`", config_node_text(node));
    return set_text(value, config_node_text(node));
}

static wg_status_t fall_back_text(const config_value_t *value)
{
    return set_text(value, value->key->fallback);
}

const config_type_t config_type_level = {
    "string", CONFIG_NODE_TEXT, read_level, fall_back_text, is_set_text, print_text,
};

static wg_status_t read_backend(const config_value_t *value, const config_node_t *node)
{
    static const char *const names[] = {"guidance", "xgrammar", "outlines", "lm-format-enforcer"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(config_node_text(node), names[i]) == 0)
            return set_text(value, names[i]);
    }
    return config_fail(value->reading, value->place,
                       "must be guidance, xgrammar, outlines or lm-format-enforcer, not `%.64s`",
                       config_node_text(node));
}

const config_type_t config_type_backend = {
    "string", CONFIG_NODE_TEXT, read_backend, fall_back_text, is_set_text, print_text,
};

static const char *const startup_names[] = {
    [CONFIG_STARTUP_WAIT] = "wait",
    [CONFIG_STARTUP_EXIT] = "exit",
};

static wg_status_t read_startup(const config_value_t *value, const config_node_t *node)
{
    config_startup_t *out = config_value_field(value);
    const char *text = config_node_text(node);
    *out = strcmp(text, startup_names[CONFIG_STARTUP_EXIT]) == 0 ? CONFIG_STARTUP_EXIT : CONFIG_STARTUP_WAIT;
    if (strcmp(text, startup_names[*out]) != 0)
        return config_fail(value->reading, value->place, "must be wait or exit, not `%.64s`", text);
    return WG_OK;
}

static void print_startup(const config_key_t *key, const void *base, FILE *stream)
{
    config_value_print_text(startup_names[*(const config_startup_t *)config_value_at(key, base)], stream);
}

const config_type_t config_type_startup = {
    "string", CONFIG_NODE_TEXT, read_startup, NULL, NULL, print_startup,
};

/* --- lists --- */

static bool holds(const int64_t *items, uint32_t count, int64_t item)
{
    for (uint32_t i = 0; i < count; i++) {
        if (items[i] == item)
            return true;
    }
    return false;
}

static wg_status_t read_elements(const config_value_t *value, const config_node_t *node, int64_t *items)
{
    for (uint32_t i = 0; i < config_node_count(node); i++) {
        const config_node_t *element = config_node_child(node, i);
        if (config_node_kind(element) != CONFIG_NODE_INT)
            return config_fail(value->reading, value->place, "element %u must be an int, not %s", i,
                               config_node_kind_name(config_node_kind(element)));
        items[i] = config_node_int(element);
        wg_status_t status = check_range(value, items[i]);
        if (status != WG_OK)
            return status;
        if (holds(items, i, items[i]))
            return config_fail(value->reading, value->place, "%" PRId64 " stands twice", items[i]);
    }
    return WG_OK;
}

static wg_status_t read_ints(const config_value_t *value, const config_node_t *node)
{
    uint32_t count = config_node_count(node);
    if (count > CONFIG_LIST_MAX)
        return config_fail(value->reading, value->place, "has %u elements, the most are %u", count,
                           CONFIG_LIST_MAX);
    if (count == 0)
        return WG_OK;
    int64_t *items = calloc(count, sizeof *items);
    if (!items)
        return config_value_no_memory(value);
    *(int64_t **)config_value_field(value) = items;
    config_value_set_count(value, count);
    return read_elements(value, node, items);
}

static bool is_set_ints(const config_key_t *key, const void *base)
{
    return config_value_count(key, base) > 0;
}

static void print_ints(const config_key_t *key, const void *base, FILE *stream)
{
    const int64_t *items = *(int64_t *const *)config_value_at(key, base);
    for (uint32_t i = 0; i < config_value_count(key, base); i++)
        fprintf(stream, "%s%" PRId64, i == 0 ? "[ " : ", ", items[i]);
    fputs(" ]", stream);
}

const config_type_t config_type_ints = {
    "list of ints", CONFIG_NODE_ARRAY, read_ints, NULL, is_set_ints, print_ints,
};
