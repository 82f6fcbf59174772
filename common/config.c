#include "common/config.h"

#include "common/config_check.h"
#include "common/config_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void wg_config_destroy(wg_config_t **config)
{
    wg_config_t *self = *config;
    if (!self)
        return;
    for (uint32_t i = 0; i < self->frontend_count; i++) {
        free(self->frontends[i].name);
        free(self->frontends[i].ranks);
    }
    for (uint32_t i = 0; i < self->adapter_count; i++) {
        free(self->adapters[i].name);
        free(self->adapters[i].path);
    }
    free(self->frontends);
    free(self->adapters);
    free(self->path);
    free(self->model.name);
    free(self->model.path);
    free(self->model.structured_outputs_backend);
    free(self->model.eos_token_ids);
    free(self->ranks.master_ip);
    free(self->coordinator.state_file);
    free(self->ranks.master_ports);
    free(self->log_level);
    free(self);
    *config = NULL;
}

const config_frontend_t *wg_config_frontend(const wg_config_t *config, const char *name)
{
    for (uint32_t i = 0; i < config->frontend_count; i++) {
        if (strcmp(config->frontends[i].name, name) == 0)
            return &config->frontends[i];
    }
    return NULL;
}

/* --- loading --- */

static wg_status_t check_kind(const config_reading_t *reading, const config_place_t *place,
                              const config_node_t *node, config_node_kind_t wanted)
{
    config_node_kind_t kind = config_node_kind(node);
    if (kind != wanted)
        return config_fail(reading, place, "must be %s, not %s", config_node_kind_name(wanted),
                           config_node_kind_name(kind));
    return WG_OK;
}

/* Every key of that group must be in the table. */
static wg_status_t check_keys(const config_reading_t *reading, const char *section, uint32_t index,
                              const config_node_t *group)
{
    for (uint32_t i = 0; i < config_node_count(group); i++) {
        const config_place_t place = {section, index, config_node_name(config_node_child(group, i))};
        bool is_section = *section == '\0' && config_section_exists(place.name);
        if (!is_section && !config_key_find(section, place.name))
            return config_fail(reading, &place, "unknown key");
    }
    return WG_OK;
}

static wg_status_t check_list(const config_reading_t *reading, const config_repeat_t *repeat,
                              const config_node_t *list)
{
    const config_place_t all = {repeat->section, 0, NULL};
    uint32_t least = repeat->is_required ? 1 : 0;
    uint32_t count = config_node_count(list);
    wg_status_t status = check_kind(reading, &all, list, CONFIG_NODE_LIST);
    if (status == WG_OK && (count < least || count > CONFIG_REPEATS_MAX))
        status = config_fail(reading, &all, "has %u %s, must have %u to %u", count, repeat->section, least,
                             CONFIG_REPEATS_MAX);
    for (uint32_t i = 0; i < count && status == WG_OK; i++) {
        const config_place_t one = {repeat->section, i, ""};
        status = check_kind(reading, &one, config_node_child(list, i), CONFIG_NODE_GROUP);
        if (status == WG_OK)
            status = check_keys(reading, repeat->section, i, config_node_child(list, i));
    }
    return status;
}

/* The outline of the file: groups where groups belong, and no key that the table does not have. */
static wg_status_t check_outline(const config_reading_t *reading)
{
    wg_status_t status = check_keys(reading, CONFIG_TOP, 0, reading->root);
    for (uint32_t i = 0; i < config_node_count(reading->root) && status == WG_OK; i++) {
        const config_node_t *node = config_node_child(reading->root, i);
        const char *name = config_node_name(node);
        const config_place_t place = {name, 0, NULL};
        if (!config_section_exists(name))
            continue;
        const config_repeat_t *repeat = config_repeat_find(name);
        if (repeat)
            status = check_list(reading, repeat, node);
        else if ((status = check_kind(reading, &place, node, CONFIG_NODE_GROUP)) == WG_OK)
            status = check_keys(reading, name, 0, node);
    }
    return status;
}

static wg_status_t make_lists(const config_reading_t *reading)
{
    size_t count;
    const config_repeat_t *repeats = config_repeats(&count);
    for (size_t i = 0; i < count; i++) {
        const config_place_t place = {repeats[i].section, 0, NULL};
        const config_node_t *list = config_place_node(reading, &place);
        if (!list && repeats[i].is_required)
            return config_fail(reading, &place, "is required");
        if (!config_repeat_make(&repeats[i], reading->config, list ? config_node_count(list) : 0))
            return WG_FAIL(reading->error, SYSTEM, reading->path, strerror(ENOMEM));
    }
    return WG_OK;
}

static wg_status_t read_key(const config_reading_t *reading, const config_key_t *key)
{
    wg_status_t status = WG_OK;
    for (uint32_t i = 0; i < config_key_repeats(key, reading->config) && status == WG_OK; i++) {
        const config_place_t place = {key->section, i, key->name};
        const config_repeat_t *repeat = config_repeat_find(key->section);
        void *base = repeat ? config_repeat_element(repeat, reading->config, i) : reading->config;
        const config_value_t value = {reading, &place, key, base};
        status = config_value_read(&value, config_place_node(reading, &place));
    }
    return status;
}

static wg_status_t read_all(const config_reading_t *reading)
{
    size_t count;
    const config_key_t *keys = config_keys(&count);
    wg_status_t status = check_outline(reading);
    if (status == WG_OK)
        status = make_lists(reading);
    for (size_t i = 0; i < count && status == WG_OK; i++)
        status = read_key(reading, &keys[i]);
    return status == WG_OK ? config_check(reading) : status;
}

wg_status_t wg_config_load(wg_config_t **out, const char *path, wg_error_t *error)
{
    *out = NULL;
    config_source_t *source = NULL;
    wg_status_t status = config_source_open(&source, path, error);
    if (status != WG_OK)
        return status;
    wg_config_t *config = calloc(1, sizeof *config);
    if (config)
        config->path = strdup(path);
    if (config && config->path) {
        const config_reading_t reading = {path, config_source_root(source), config, error};
        status = read_all(&reading);
    } else {
        status = WG_FAIL(error, SYSTEM, path, strerror(ENOMEM));
    }
    config_source_close(&source);
    if (status != WG_OK)
        wg_config_destroy(&config);
    *out = config;
    return status;
}

/* --- the fingerprint: FNV-1a, 64 bits --- */

static void mix(uint64_t *hash, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++)
        *hash = (*hash ^ bytes[i]) * 0x100000001b3u;
}

static void mix_int(uint64_t *hash, int64_t value)
{
    /* Byte by byte: the processes may run on machines of either byte order. */
    for (unsigned shift = 0; shift < 64; shift += 8) {
        uint8_t byte = (uint8_t)((uint64_t)value >> shift);
        mix(hash, &byte, 1);
    }
}

static void mix_text(uint64_t *hash, const char *text)
{
    const char *shown = text ? text : "";
    mix(hash, shown, strlen(shown) + 1); /* with its NUL, so that "ab", "c" differs from "a", "bc" */
}

static void mix_endpoints(uint64_t *hash, const wg_config_t *config)
{
    size_t count;
    const config_key_t *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        for (uint32_t k = 0; keys[i].type == &config_type_address && k < config_key_repeats(&keys[i], config);
             k++) {
            const config_endpoint_t *endpoint =
                config_value_at(&keys[i], config_key_base(&keys[i], config, k));
            mix_text(hash, endpoint->address);
        }
    }
}

uint64_t wg_config_fingerprint(const wg_config_t *config)
{
    uint64_t hash = 0xcbf29ce484222325u;
    mix_int(&hash, config->ranks.count);
    mix_int(&hash, config->ranks.lockstep);
    mix_text(&hash, config->ranks.master_ip);
    mix_int(&hash, config->ranks.master_port);
    mix_int(&hash, config->ranks.master_port_count);
    for (uint32_t i = 0; i < config->ranks.master_port_count; i++)
        mix_int(&hash, config->ranks.master_ports[i]);
    mix_endpoints(&hash, config);
    mix_int(&hash, config->frontend_count);
    for (uint32_t i = 0; i < config->frontend_count; i++) {
        const config_frontend_t *frontend = &config->frontends[i];
        mix_text(&hash, frontend->name);
        mix_int(&hash, frontend->rank_count);
        for (uint32_t k = 0; k < frontend->rank_count; k++)
            mix_int(&hash, frontend->ranks[k]);
    }
    return hash;
}
