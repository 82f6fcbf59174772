#include "frontend/json_body.h"

#include "common/log.h"

#include <stdio.h>
#include <string.h>

/* As a real, 2^63 - 1 is 2^63: at the edge nothing is certain. */
static bool is_suspect(const json_t *value, bool edge)
{
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            const json_t *element = json_array_get(value, i);
            if (!json_is_array(element) && is_suspect(element, edge))
                return true;
        }
        return false;
    }
    double number = json_real_value(value);
    return edge ? number >= 0x1p63 || number <= -0x1p63 : number > 0x1p63 || number < -0x1p63;
}

/* How many members, or members of members, are suspect; path: the first. */
static size_t find_suspects(json_t *root, bool edge, char path[LOG_TEXT_SIZE])
{
    size_t count = 0;
    const char *key;
    const char *inner_key;
    json_t *value;
    json_t *inner;
    json_object_foreach(root, key, value)
    {
        if (is_suspect(value, edge) && count++ == 0)
            log_text(path, key, strlen(key));
        json_object_foreach(value, inner_key, inner)
        {
            char both[LOG_TEXT_SIZE / 2];
            if (!is_suspect(inner, edge) || count++ > 0)
                continue;
            snprintf(both, sizeof both, "%.30s.%.30s", key, inner_key);
            log_text(path, both, strlen(both));
        }
    }
    return count;
}

/* jansson refuses a whole body for one integer beyond 64 bits, without saying where it stood. Read as reals,
 * the members tell, unless several are at the edge. */
static wg_status_t name_overflow(const char *text, size_t size, wg_error_t *error)
{
    char path[LOG_TEXT_SIZE];
    json_t *root = json_loadb(text, size, JSON_DECODE_INT_AS_REAL, NULL);
    bool found = find_suspects(root, false, path) > 0 || find_suspects(root, true, path) == 1;
    json_decref(root);
    return wg_invalid_field(error, found ? path : "body", "a number is out of range; integers have 64 bits");
}

/* What jansson says of the rest, as a place in the whole text. */
static size_t place_in_text(const prompt_scan_t *scan, size_t place)
{
    bool is_behind = scan->is_cut && place > scan->cut_at;
    return is_behind ? place - PROMPT_SCAN_MARK_SIZE + scan->cut_size : place;
}

/* place: how many bytes of what was parsed were read. why: "", or more words. */
static wg_status_t fail_syntax(const prompt_scan_t *scan, const char *text, size_t size, size_t place,
                               const char *why, wg_error_t *error)
{
    size_t line = 1;
    size_t column = 0;
    place = place_in_text(scan, place);
    for (size_t i = 0; text && i < place && i < size; i++) {
        column = text[i] == '\n' ? 0 : column + 1;
        line += text[i] == '\n';
    }
    return wg_invalid_field(error, "body", "not valid JSON at line %zu, column %zu%s", line, column, why);
}

wg_status_t json_body_load(json_t **out, const prompt_scan_t *scan, const char *text, size_t size,
                           wg_error_t *error)
{
    json_error_t fault;
    const char *parsed = scan->is_cut ? scan->rest.data : text ? text : "";
    size_t parsed_size = scan->is_cut ? scan->rest.size : size;
    const char *nul = memchr(parsed, '\0', parsed_size);
    *out = NULL;
    if (nul) /* jansson takes it for nothing at all where it stands behind a number, true, false or null */
        return fail_syntax(scan, text, size, (size_t)(nul - parsed) + 1, "", error);
    *out = json_loadb(parsed, parsed_size, JSON_REJECT_DUPLICATES, &fault);
    if (!*out && json_error_code(&fault) == json_error_numeric_overflow)
        return name_overflow(parsed, parsed_size, error);
    if (!*out) /* jansson's own text repeats bytes of the body */
        return fail_syntax(
            scan, text, size, fault.position > 0 ? (size_t)fault.position : 0,
            json_error_code(&fault) == json_error_duplicate_key ? ": a key is there twice" : "", error);
    if (!json_is_object(*out))
        return wg_invalid_field(error, "body", "must be a JSON object");
    return WG_OK;
}
