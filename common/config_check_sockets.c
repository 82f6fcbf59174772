/* Which sockets of the cluster cannot both be bound.
 *
 * The file describes every machine at once, and two frontends on two machines may well bind the same wildcard
 * or loopback port. So two processes are taken for neighbours on one machine unless what they advertise says
 * otherwise: all of it on hosts that others can reach, and no host in common. Neighbours, and the sockets of
 * one process, may not bind the same address; and no two sockets anywhere may be known to peers by the same
 * one. */
#include "common/config_check.h"

#include "common/config_address.h"
#include "common/config_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SOCKETS_MAX 8u /* of one process: the table has so many for the coordinator; the tests try each */

typedef struct {
    config_place_t place;
    bool advertised; /* HTTP listeners are not: no peer is told their address */
    config_target_t address;
    config_target_t bind;
} socket_t;

typedef struct {
    socket_t sockets[SOCKETS_MAX];
    uint32_t count;
    bool reachable; /* everything that it advertises names a host that other machines can reach */
} process_t;

static bool parse(const char *text, config_target_t *out)
{
    char reason[CONFIG_REASON_SIZE];
    return *text && config_address_parse(text, NULL, out, reason);
}

/* False where an optional endpoint is not configured. */
static bool set_socket(socket_t *socket, const config_key_t *key, const void *base)
{
    if (key->type == &config_type_http) {
        config_http_target(config_value_at(key, base), &socket->bind);
        return true;
    }
    const config_endpoint_t *endpoint = config_value_at(key, base);
    socket->advertised = true;
    if (strcmp(endpoint->address, endpoint->bind) != 0)
        socket->place.name = key[1].name;
    return parse(endpoint->address, &socket->address) && parse(endpoint->bind, &socket->bind);
}

static void add_socket(process_t *process, const config_key_t *key, const wg_config_t *config,
                       uint32_t frontend)
{
    socket_t socket = {.place = {key->section, frontend, key->name}};
    if (process->count == SOCKETS_MAX || !set_socket(&socket, key, config_key_base(key, config, frontend)))
        return;
    if (socket.advertised && (socket.address.ipc || socket.address.loopback))
        process->reachable = false;
    process->sockets[process->count++] = socket;
}

/* The coordinator, then each frontend. */
static process_t *collect(const wg_config_t *config)
{
    size_t key_count;
    const config_key_t *keys = config_keys(&key_count);
    process_t *processes = calloc(config->frontend_count + (size_t)1, sizeof *processes);
    if (!processes)
        return NULL;
    for (uint32_t i = 0; i <= config->frontend_count; i++)
        processes[i].reachable = true;
    for (const config_key_t *key = keys; key < keys + key_count; key++) {
        if (key->type != &config_type_http && key->type != &config_type_address)
            continue;
        uint32_t first = config_key_is_repeated(key) ? 1 : 0;
        for (uint32_t i = 0; i < config_key_repeats(key, config); i++)
            add_socket(&processes[first + i], key, config, i);
    }
    return processes;
}

static bool are_neighbours(const process_t *left, const process_t *right)
{
    if (left == right || !left->reachable || !right->reachable)
        return true;
    for (uint32_t i = 0; i < left->count; i++) {
        for (uint32_t k = 0; k < right->count; k++) {
            const socket_t *one = &left->sockets[i];
            const socket_t *other = &right->sockets[k];
            if (one->advertised && other->advertised && strcmp(one->address.host, other->address.host) == 0)
                return true;
        }
    }
    return false;
}

static bool is_per_machine(const config_target_t *target)
{
    return target->wildcard || target->loopback;
}

static bool collide(const socket_t *left, const socket_t *right, bool neighbours)
{
    if (left->advertised && right->advertised && config_target_equal(&left->address, &right->address))
        return true;
    if (!neighbours && (is_per_machine(&left->bind) || is_per_machine(&right->bind)))
        return false;
    return config_target_collides(&left->bind, &right->bind);
}

static wg_status_t check_pair(const config_reading_t *reading, const process_t *left, const process_t *right)
{
    bool neighbours = are_neighbours(left, right);
    for (uint32_t i = 0; i < left->count; i++) {
        for (uint32_t k = 0; k < (left == right ? i : right->count); k++) {
            const socket_t *later = &left->sockets[i];
            const socket_t *earlier = &right->sockets[k];
            char key[CONFIG_KEY_TEXT_SIZE];
            if (collide(later, earlier, neighbours))
                return config_fail(reading, &later->place,
                                   "overlaps with %s: two sockets cannot have one address",
                                   config_place_text(&earlier->place, key));
        }
    }
    return WG_OK;
}

wg_status_t config_check_sockets(const config_reading_t *reading)
{
    process_t *processes = collect(reading->config);
    if (!processes)
        return WG_FAIL(reading->error, SYSTEM, reading->path, strerror(ENOMEM));
    wg_status_t status = WG_OK;
    for (uint32_t i = 0; i <= reading->config->frontend_count && status == WG_OK; i++) {
        for (uint32_t k = 0; k <= i && status == WG_OK; k++)
            status = check_pair(reading, &processes[i], &processes[k]);
    }
    free(processes);
    return status;
}
