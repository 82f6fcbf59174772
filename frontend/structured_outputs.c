/* What the output must look like, for the engine's grammar compiler. Packed as vLLM's
 * StructuredOutputsParams, with the name of the compiler, which vLLM's own frontends put there too: engines
 * read it from each request. */
#include "frontend/json_pack.h"
#include "frontend/sampling_body.h"

#include <stdlib.h>
#include <string.h>

typedef bool check_fn(const json_t *value);

/* Blank text as a schema or a grammar is what no compiler takes. */
static bool is_text(const json_t *value)
{
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    return text[strspn(text, " \t\r\n")] != '\0';
}

static bool is_pattern(const json_t *value)
{
    return json_is_string(value) && json_string_length(value) > 0;
}

static bool is_schema(const json_t *value)
{
    return is_text(value) || json_is_object(value);
}

static bool is_list_of_texts(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!is_pattern(json_array_get(value, i)))
            return false;
    }
    return json_array_size(value) > 0;
}

static bool is_true(const json_t *value)
{
    return json_is_true(value);
}

static bool is_bool(const json_t *value)
{
    return json_is_boolean(value);
}

typedef struct {
    const char *name;
    bool is_kind; /* of which there must be exactly one */
    check_fn *check;
    const char *wanted;
    const char *not_by[2]; /* compilers that fail on it, which older engines do not survive */
} member_t;

#define OUTLINES "outlines"
#define ENFORCER "lm-format-enforcer"

static const member_t members[] = {
    {"json", true, is_schema, "a JSON schema, as an object or a string that is not blank", {0}},
    {"regex", true, is_pattern, "a string that is not empty", {0}},
    {"choice", true, is_list_of_texts, "an array of strings that are not empty", {"xgrammar"}},
    {"grammar", true, is_text, "a string that is not blank", {OUTLINES, ENFORCER}},
    {"json_object", true, is_true, "true", {OUTLINES}},
    {"structural_tag", true, is_schema, "an object, or a string that is not blank", {OUTLINES, ENFORCER}},
    {"disable_fallback", false, is_bool, "true or false", {0}},
    {"disable_any_whitespace", false, is_bool, "true or false", {0}},
    {"disable_additional_properties", false, is_bool, "true or false", {0}},
    {"whitespace_pattern", false, is_pattern, "a string that is not empty", {0}},
};

static const member_t *find_member(const char *name)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (strcmp(members[i].name, name) == 0)
            return &members[i];
    }
    return NULL;
}

/* null and false are the defaults, which are not sent. */
static bool is_default(const json_t *value)
{
    return json_is_null(value) || json_is_false(value);
}

static wg_status_t check_member(const body_reader_t *reader, const char *path, const member_t *member,
                                const json_t *value)
{
    const char *backend = reader->config->model.structured_outputs_backend;
    if (!member->check(value))
        return wg_invalid_field(reader->error, path, "%s must be %s", member->name, member->wanted);
    for (size_t i = 0; i < sizeof member->not_by / sizeof *member->not_by && member->not_by[i]; i++) {
        if (strcmp(member->not_by[i], backend) == 0)
            return wg_invalid_field(reader->error, path, "%s is nothing that the engines' %s can compile",
                                    member->name, backend);
    }
    return WG_OK;
}

static wg_status_t check_members(const body_reader_t *reader, const char *path, json_t *object, size_t *given)
{
    const char *key;
    json_t *value;
    size_t kinds = 0;
    *given = 0;
    json_object_foreach(object, key, value)
    {
        const member_t *member = find_member(key);
        if (!member)
            return json_fields_unsupported(reader, key, "structured_outputs");
        if (json_is_null(value))
            continue;
        wg_status_t status = check_member(reader, path, member, value);
        if (status != WG_OK)
            return status;
        kinds += member->is_kind;
        *given += !is_default(value);
    }
    if (kinds != 1)
        return wg_invalid_field(
            reader->error, path,
            "must have exactly one of json, regex, choice, grammar, json_object, structural_tag");
    return WG_OK;
}

/* The engine takes a structural tag as text only. */
static void pack_structural_tag(wire_pack_t *pack, const json_t *value)
{
    char *text = json_is_object(value) ? json_dumps(value, JSON_COMPACT) : NULL;
    if (text)
        wire_pack_literal(pack, text);
    else if (json_is_string(value))
        json_pack_text(pack, value);
    else
        pack->failed = true; /* out of memory */
    free(text);
}

wg_status_t structured_outputs_read(const body_reader_t *reader, const json_field_t *field, const char *path,
                                    json_t *value)
{
    const char *key;
    json_t *member;
    size_t given;
    wire_pack_t pack;
    request_body_t *body = reader->body;
    (void)field;
    if (!json_is_object(value))
        return wg_invalid_field(reader->error, path, "must be an object");
    wg_status_t status = check_members(reader, path, value, &given);
    if (status != WG_OK)
        return status;
    size_t start = body->packed.size;
    wire_pack_init(&pack, &body->packed);
    wire_pack_map(&pack, given + 1);
    json_object_foreach(value, key, member)
    {
        if (is_default(member))
            continue;
        wire_pack_literal(&pack, key);
        if (strcmp(key, "structural_tag") == 0)
            pack_structural_tag(&pack, member);
        else
            json_pack_value(&pack, member);
    }
    wire_pack_literal(&pack, "_backend");
    wire_pack_literal(&pack, reader->config->model.structured_outputs_backend);
    body->structured_outputs = (packed_span_t){start, body->packed.size - start};
    return wire_pack_finish(&pack, "structured_outputs", reader->error);
}
