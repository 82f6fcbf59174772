#include "common/config_table.h"

#include <inttypes.h>
#include <string.h>

static bool same_section(const config_key_t *left, const config_key_t *right)
{
    return strcmp(left->section, right->section) == 0;
}

static void print_values(const config_key_t *first, const config_key_t *end, const void *base,
                         const char *indent, FILE *stream)
{
    for (const config_key_t *key = first; key < end; key++) {
        if (key->type->is_set && !key->type->is_set(key, base))
            continue;
        fprintf(stream, "%s%s = ", indent, key->name);
        key->type->print(key, base, stream);
        fputs(";\n", stream);
    }
}

static void print_list(const config_key_t *first, const config_key_t *end, const wg_config_t *config,
                       FILE *stream)
{
    uint32_t count = config_key_repeats(first, config);
    if (count == 0)
        return;
    fprintf(stream, "%s = (\n", first->section);
    for (uint32_t i = 0; i < count; i++) {
        fputs("    {\n", stream);
        print_values(first, end, config_key_base(first, config, i), "        ", stream);
        fputs(i + 1 < count ? "    },\n" : "    }\n", stream);
    }
    fputs(");\n", stream);
}

static void print_section(const config_key_t *first, const config_key_t *end, const wg_config_t *config,
                          FILE *stream)
{
    if (config_key_is_repeated(first)) {
        print_list(first, end, config, stream);
    } else if (*first->section == '\0') {
        print_values(first, end, config, "", stream);
    } else {
        fprintf(stream, "%s = {\n", first->section);
        print_values(first, end, config, "    ", stream);
        fputs("};\n", stream);
    }
}

void wg_config_print(const wg_config_t *config, FILE *stream)
{
    size_t count;
    const config_key_t *keys = config_keys(&count);
    const config_key_t *end;
    for (const config_key_t *first = keys; first < keys + count; first = end) {
        end = first + 1;
        while (end < keys + count && same_section(first, end))
            end++;
        print_section(first, end, config, stream);
    }
}

static const char *fallback_text(const config_key_t *key)
{
    if (!key->fallback)
        return "required";
    return *key->fallback ? key->fallback : "none";
}

void wg_config_print_keys(FILE *stream)
{
    size_t count;
    const config_key_t *keys = config_keys(&count);
    fputs("| key | type | default | meaning |\n| --- | --- | --- | --- |\n", stream);
    for (const config_key_t *key = keys; key < keys + count; key++) {
        const char *separator = *key->section == '\0' ? "" : config_key_is_repeated(key) ? "[]." : ".";
        fprintf(stream, "| `%s%s%s` | %s", key->section, separator, key->name, key->type->label);
        const char *above = key->type == &config_type_float_above ? "above " : "";
        if (key->max > key->min)
            fprintf(stream, ", %s%" PRId64 " to %" PRId64, above, key->min, key->max);
        fprintf(stream, " | %s | %s |\n", fallback_text(key), key->help);
    }
}
