#include "common/config_address.h"
#include "common/config_table.h"

#include <string.h>

static wg_status_t read_address(const config_value_t *value, const config_node_t *node)
{
    config_endpoint_t *endpoint = config_value_field(value);
    config_target_t target;
    char reason[CONFIG_REASON_SIZE];
    const config_key_t *bind = value->key + 1;
    if (!config_address_parse(config_node_text(node), bind->name, &target, reason))
        return config_fail(value->reading, value->place, "%s", reason);
    config_address_text(config_node_text(node), &target, endpoint->address);
    return WG_OK;
}

static bool is_set_address(const config_key_t *key, const void *base)
{
    const config_endpoint_t *endpoint = config_value_at(key, base);
    return endpoint->address[0] != '\0';
}

static void print_address(const config_key_t *key, const void *base, FILE *stream)
{
    const config_endpoint_t *endpoint = config_value_at(key, base);
    config_value_print_text(endpoint->address, stream);
}

const config_type_t config_type_address = {
    "address", CONFIG_NODE_TEXT, read_address, NULL, is_set_address, print_address,
};

static wg_status_t read_bind(const config_value_t *value, const config_node_t *node)
{
    config_endpoint_t *endpoint = config_value_field(value);
    config_target_t target;
    char reason[CONFIG_REASON_SIZE];
    const config_key_t *address = value->key - 1;
    if (endpoint->address[0] == '\0')
        return config_fail(value->reading, value->place, "needs `%s` beside it", address->name);
    if (!config_address_parse(config_node_text(node), NULL, &target, reason))
        return config_fail(value->reading, value->place, "%s", reason);
    if (target.ipc != (strncmp(endpoint->address, "ipc:", 4) == 0))
        return config_fail(value->reading, value->place, "must have the transport of `%s`", address->name);
    config_address_text(config_node_text(node), &target, endpoint->bind);
    return WG_OK;
}

static wg_status_t fall_back_bind(const config_value_t *value)
{
    config_endpoint_t *endpoint = config_value_field(value);
    memcpy(endpoint->bind, endpoint->address, sizeof endpoint->bind);
    return WG_OK;
}

static bool is_set_bind(const config_key_t *key, const void *base)
{
    const config_endpoint_t *endpoint = config_value_at(key, base);
    return strcmp(endpoint->bind, endpoint->address) != 0;
}

static void print_bind(const config_key_t *key, const void *base, FILE *stream)
{
    const config_endpoint_t *endpoint = config_value_at(key, base);
    config_value_print_text(endpoint->bind, stream);
}

const config_type_t config_type_bind = {
    "address", CONFIG_NODE_TEXT, read_bind, fall_back_bind, is_set_bind, print_bind,
};

static wg_status_t read_http(const config_value_t *value, const config_node_t *node)
{
    char reason[CONFIG_REASON_SIZE];
    if (!config_http_parse(config_node_text(node), config_value_field(value), reason))
        return config_fail(value->reading, value->place, "%s", reason);
    return WG_OK;
}

static void print_http(const config_key_t *key, const void *base, FILE *stream)
{
    const config_http_t *http = config_value_at(key, base);
    bool ipv6 = strchr(http->host, ':');
    fprintf(stream, "\"%s%s%s:%u\"", ipv6 ? "[" : "", http->host, ipv6 ? "]" : "", http->port);
}

const config_type_t config_type_http = {
    "host:port", CONFIG_NODE_TEXT, read_http, NULL, NULL, print_http,
};
