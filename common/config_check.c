#include "common/config_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static wg_status_t check_model(const config_reading_t *reading)
{
    const wg_config_t *config = reading->config;
    const config_place_t place = {"model", 0, "eos_token_ids"};
    for (uint32_t i = 0; config->model.vocab_size > 0 && i < config->model.eos_count; i++) {
        int64_t id = config->model.eos_token_ids[i];
        if (id >= config->model.vocab_size)
            return config_fail(reading, &place,
                               "%" PRId64 " is out of range, must be below model.vocab_size (%" PRId64 ")",
                               id, config->model.vocab_size);
    }
    return WG_OK;
}

/* The keys that only a lockstep group has: there all must stand, elsewhere none. */
static wg_status_t check_lockstep(const config_reading_t *reading)
{
    const wg_config_t *config = reading->config;
    const struct {
        const char *name;
        bool given;
    } keys[] = {
        {"master_ip", config->ranks.master_ip},
        {"master_port", config->ranks.master_port != 0},
        {"master_ports", config->ranks.master_port_count > 0},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const config_place_t place = {"ranks", 0, keys[i].name};
        if (config->ranks.lockstep && !keys[i].given)
            return config_fail(reading, &place, "is required where ranks.lockstep is true");
        if (!config->ranks.lockstep && config_place_node(reading, &place))
            return config_fail(reading, &place, "is for a lockstep group only, and ranks.lockstep is false");
    }
    return WG_OK;
}

static wg_status_t check_wave_sockets(const config_reading_t *reading)
{
    const wg_config_t *config = reading->config;
    const struct {
        const char *name;
        bool given;
    } keys[] = {
        {"engine_publish", config->coordinator.engine_publish.address[0]},
        {"engine_output", config->coordinator.engine_output.address[0]},
        {"frontend_publish", config->coordinator.frontend_publish.address[0]},
    };
    bool any = keys[0].given || keys[1].given || keys[2].given;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const config_place_t place = {"coordinator", 0, keys[i].name};
        if (!keys[i].given && config->ranks.lockstep)
            return config_fail(reading, &place, "is required where ranks.lockstep is true");
        if (!keys[i].given && any)
            return config_fail(
                reading, &place,
                "is required: engine_publish, engine_output and frontend_publish, all three or none");
    }
    return WG_OK;
}

static wg_status_t check_timeouts(const config_reading_t *reading)
{
    const wg_config_t *config = reading->config;
    const config_place_t heartbeat = {"timeouts", 0, "heartbeat_timeout_ms"};
    if (config->timeouts.heartbeat_timeout_ms <= config->timeouts.heartbeat_interval_ms)
        return config_fail(reading, &heartbeat,
                           "%" PRId64 " must be above heartbeat_interval_ms (%" PRId64 ")",
                           config->timeouts.heartbeat_timeout_ms, config->timeouts.heartbeat_interval_ms);
    const config_place_t idle = {"timeouts", 0, "http_idle_ms"};
    /* The HTTP library counts whole seconds, and would take 0 of them for "never". */
    if (config->timeouts.http_idle_ms > 0 && config->timeouts.http_idle_ms < 1000)
        return config_fail(reading, &idle, "%" PRId64 " is out of range, must be 0 (never) or at least 1000",
                           config->timeouts.http_idle_ms);
    const config_place_t silence = {"timeouts", 0, "rank_silence_ms"};
    /* Below that a busy machine looks like a wedged engine. */
    if (config->timeouts.rank_silence_ms > 0 && config->timeouts.rank_silence_ms < 1000)
        return config_fail(reading, &silence,
                           "%" PRId64 " is out of range, must be 0 (no limit) or at least 1000",
                           config->timeouts.rank_silence_ms);
    const config_place_t startup = {"timeouts", 0, "on_startup_timeout"};
    if (config->timeouts.on_startup_timeout == CONFIG_STARTUP_EXIT && config->timeouts.startup_ms == 0)
        return config_fail(reading, &startup, "\"exit\" needs a limit: startup_ms is 0 (none)");
    return WG_OK;
}

typedef struct {
    const char *name;
    uint32_t frontend;
} named_t;

static int by_name(const void *left, const void *right)
{
    const named_t *a = left;
    const named_t *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->frontend > b->frontend) - (a->frontend < b->frontend);
}

static wg_status_t check_names(const config_reading_t *reading)
{
    const wg_config_t *config = reading->config;
    named_t *names = calloc(config->frontend_count, sizeof *names);
    if (!names)
        return WG_FAIL(reading->error, SYSTEM, reading->path, strerror(ENOMEM));
    for (uint32_t i = 0; i < config->frontend_count; i++)
        names[i] = (named_t){config->frontends[i].name, i};
    qsort(names, config->frontend_count, sizeof *names, by_name);
    wg_status_t status = WG_OK;
    for (uint32_t i = 1; i < config->frontend_count && status == WG_OK; i++) {
        const config_place_t place = {CONFIG_FRONTENDS, names[i].frontend, "name"};
        if (strcmp(names[i].name, names[i - 1].name) == 0)
            status = config_fail(reading, &place, "`%s` is the name of frontends[%u] too", names[i].name,
                                 names[i - 1].frontend);
    }
    free(names);
    return status;
}

/* Requests name the model or an adapter in the same field, and engines know adapters by their ids. */
static wg_status_t check_adapters(const config_reading_t *reading)
{
    const wg_config_t *config = reading->config;
    for (uint32_t i = 0; i < config->adapter_count; i++) {
        const config_place_t name = {CONFIG_ADAPTERS, i, "name"};
        const config_place_t id = {CONFIG_ADAPTERS, i, "id"};
        if (strcmp(config->adapters[i].name, config->model.name) == 0)
            return config_fail(reading, &name, "`%.64s` is the name of the model too", config->model.name);
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(config->adapters[i].name, config->adapters[k].name) == 0)
                return config_fail(reading, &name, "`%.64s` is the name of adapters[%u] too",
                                   config->adapters[i].name, k);
            if (config->adapters[i].id == config->adapters[k].id)
                return config_fail(reading, &id, "%" PRId64 " is the id of adapters[%u] too",
                                   config->adapters[i].id, k);
        }
    }
    return WG_OK;
}

static wg_status_t check_coverage(const config_reading_t *reading)
{
    const wg_config_t *config = reading->config;
    const config_place_t place = {CONFIG_FRONTENDS, 0, NULL};
    bool *served = calloc(config->ranks.count, sizeof *served);
    if (!served)
        return WG_FAIL(reading->error, SYSTEM, reading->path, strerror(ENOMEM));
    for (uint32_t i = 0; i < config->frontend_count; i++) {
        for (uint32_t k = 0; k < config->frontends[i].rank_count; k++)
            served[config->frontends[i].ranks[k]] = true;
    }
    wg_status_t status = WG_OK;
    for (uint32_t rank = 0; rank < config->ranks.count && status == WG_OK; rank++) {
        if (!served[rank])
            status = config_fail(reading, &place, "rank %u is in the ranks of no frontend", rank);
    }
    free(served);
    return status;
}

wg_status_t config_check(const config_reading_t *reading)
{
    wg_status_t (*const checks[])(const config_reading_t *) = {
        check_model, check_lockstep, check_wave_sockets, check_timeouts,
        check_names, check_adapters, check_coverage,     config_check_sockets,
    };
    wg_status_t status = WG_OK;
    for (size_t i = 0; i < sizeof checks / sizeof *checks && status == WG_OK; i++)
        status = checks[i](reading);
    return status;
}
