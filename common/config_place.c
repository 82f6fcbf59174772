#include "common/config_place.h"

#include <stdarg.h>

static bool is_repeated(const config_place_t *place)
{
    return config_repeat_find(place->section) != NULL;
}

static const config_node_t *member_of_group(const config_node_t *node, const char *name)
{
    return node && config_node_kind(node) == CONFIG_NODE_GROUP ? config_node_member(node, name) : NULL;
}

/* The group that the place's key belongs in. */
static const config_node_t *group_node(const config_reading_t *reading, const config_place_t *place)
{
    if (*place->section == '\0')
        return reading->root;
    const config_node_t *node = config_node_member(reading->root, place->section);
    if (!node || !place->name || !is_repeated(place))
        return node;
    return place->index < config_node_count(node) ? config_node_child(node, place->index) : NULL;
}

const config_node_t *config_place_node(const config_reading_t *reading, const config_place_t *place)
{
    const config_node_t *group = group_node(reading, place);
    return place->name ? member_of_group(group, place->name) : group;
}

const char *config_place_text(const config_place_t *place, char text[CONFIG_KEY_TEXT_SIZE])
{
    const char *name = place->name ? place->name : "";
    if (*place->section == '\0')
        snprintf(text, CONFIG_KEY_TEXT_SIZE, "%s", name);
    else if (!place->name)
        snprintf(text, CONFIG_KEY_TEXT_SIZE, "%s", place->section);
    else if (is_repeated(place))
        snprintf(text, CONFIG_KEY_TEXT_SIZE, "%s[%u]%s%s", place->section, place->index, *name ? "." : "",
                 name);
    else
        snprintf(text, CONFIG_KEY_TEXT_SIZE, "%s.%s", place->section, name);
    return text;
}

wg_status_t config_fail(const config_reading_t *reading, const config_place_t *place, const char *format, ...)
{
    char key[CONFIG_KEY_TEXT_SIZE];
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    const config_node_t *node = config_place_node(reading, place);
    if (!node)
        node = group_node(reading, place);
    return config_source_fail(reading->error, reading->path, config_node_line(node ? node : reading->root),
                              config_place_text(place, key), "%s", reason);
}
