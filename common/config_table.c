#include "common/config_table.h"

#include <string.h>

#define IN_CONFIG(member) offsetof(wg_config_t, member)
#define IN_FRONTEND(member) offsetof(config_frontend_t, member)

#define REQUIRED NULL
#define NONE ""
#define PORT_MAX 65535
#define TOKEN_MAX INT32_MAX
#define HOUR_MS 3600000
#define DAY_MS 86400000

/* An endpoint is two keys; config_type_bind relies on the order. */
#define ENDPOINT(section, name, where, fallback, help)                                                       \
    {section, name, &config_type_address, (where), 0, 0, 0, fallback, help},                                 \
    {                                                                                                        \
        section, name "_bind", &config_type_bind, (where), 0, 0, 0, "the address",                           \
            "what the process binds for `" name "`, where that differs from what peers connect to"           \
    }

static const config_key_t keys[] = {
    {CONFIG_TOP, "log_level", &config_type_level, IN_CONFIG(log_level), 0, 0, 0, "notice",
     "the least urgent log lines written: `error`, `warning`, `notice` or `debug`"},

    {"model", "name", &config_type_text, IN_CONFIG(model.name), 0, 0, 0, REQUIRED,
     "the name that requests give in `model`"},
    {"model", "vocab_size", &config_type_int, IN_CONFIG(model.vocab_size), 0, 1, TOKEN_MAX, NONE,
     "token ids must be below it; without it they are not checked against the vocabulary"},
    {"model", "eos_token_ids", &config_type_ints, IN_CONFIG(model.eos_token_ids), IN_CONFIG(model.eos_count),
     0, TOKEN_MAX, NONE, "the tokens that end a text, the primary one first"},

    {"ranks", "count", &config_type_count, IN_CONFIG(ranks.count), 0, 1, WG_RANK_MAX + 1, REQUIRED,
     "how many engine ranks the cluster has"},
    {"ranks", "lockstep", &config_type_bool, IN_CONFIG(ranks.lockstep), 0, 0, 0, "false",
     "the ranks step together (mixture of experts); needs the three `master_` keys, and of the coordinator "
     "`engine_publish`, `engine_output` and `frontend_publish`"},
    {"ranks", "master_ip", &config_type_host, IN_CONFIG(ranks.master_ip), 0, 0, 0, NONE,
     "lockstep only: the host of rank 0, for the engines' own process group"},
    {"ranks", "master_port", &config_type_int, IN_CONFIG(ranks.master_port), 0, 1, PORT_MAX, NONE,
     "lockstep only: the process group's port on that host"},
    {"ranks", "master_ports", &config_type_ints, IN_CONFIG(ranks.master_ports),
     IN_CONFIG(ranks.master_port_count), 1, PORT_MAX, NONE,
     "lockstep only: further ports there, for the engines to use when they set up the group"},

    ENDPOINT(
        "coordinator", "handshake", IN_CONFIG(coordinator.handshake), REQUIRED,
        "where engines say HELLO: `--data-parallel-address` and `--data-parallel-rpc-port` of each engine"),
    ENDPOINT("coordinator", "engine_publish", IN_CONFIG(coordinator.engine_publish), NONE,
             "wave messages to the engines; this, `engine_output` and `frontend_publish`: all three or none"),
    ENDPOINT("coordinator", "engine_output", IN_CONFIG(coordinator.engine_output), NONE,
             "queue counts and wave reports from the engines"),
    ENDPOINT("coordinator", "frontend_publish", IN_CONFIG(coordinator.frontend_publish), NONE,
             "queue counts and wave state to the frontends"),
    ENDPOINT("coordinator", "control", IN_CONFIG(coordinator.control), REQUIRED,
             "where frontends join and learn the state of the ranks"),
    ENDPOINT("coordinator", "input", IN_CONFIG(coordinator.input), REQUIRED,
             "requests of the coordinator itself to the engines"),
    ENDPOINT("coordinator", "output", IN_CONFIG(coordinator.output), REQUIRED,
             "the engines' answers to those"),
    {"coordinator", "http", &config_type_http, IN_CONFIG(coordinator.http), 0, 0, 0, REQUIRED,
     "the coordinator's HTTP listener; port 0: any free port"},
    {"coordinator", "state_file", &config_type_text, IN_CONFIG(coordinator.state_file), 0, 0, 0, NONE,
     "lockstep only: keeps the wave over a restart; without it a file in `/run/wavegate`, `$XDG_RUNTIME_DIR` "
     "or `/tmp`"},

    {CONFIG_FRONTENDS, "name", &config_type_name, IN_FRONTEND(name), 0, 0, 0, REQUIRED,
     "what `-n` selects; 1 to 64 of the characters A-Z a-z 0-9 . _ -"},
    {CONFIG_FRONTENDS, "ranks", &config_type_ranks, IN_FRONTEND(ranks), IN_FRONTEND(rank_count), 0, 0,
     REQUIRED, "the ranks that it serves, as in \"0-3\", \"0,2\" or \"4-7,9\""},
    ENDPOINT(CONFIG_FRONTENDS, "input", IN_FRONTEND(input), REQUIRED, "its requests to the engines"),
    ENDPOINT(CONFIG_FRONTENDS, "output", IN_FRONTEND(output), REQUIRED, "the engines' answers to it"),
    {CONFIG_FRONTENDS, "http", &config_type_http, IN_FRONTEND(http), 0, 0, 0, REQUIRED,
     "its HTTP listener; port 0: any free port"},

    {"limits", "max_in_flight", &config_type_int, IN_CONFIG(limits.max_in_flight), 0, 1, 1000000, "4096",
     "requests that a frontend accepts at a time; more are told to retry later"},
    {"limits", "max_body_bytes", &config_type_int, IN_CONFIG(limits.max_body_bytes), 0, 1 << 10, 1 << 30,
     "8388608", "the body of one HTTP request"},
    {"limits", "max_stream_bytes", &config_type_int, IN_CONFIG(limits.max_stream_bytes), 0, 1 << 12, 1 << 30,
     "4194304", "output of one request that its client has not read yet; above that the request is aborted"},
    {"limits", "max_connections", &config_type_int, IN_CONFIG(limits.max_connections), 0, 1, 1000000, "8192",
     "HTTP connections of one process"},

    {"timeouts", "heartbeat_interval_ms", &config_type_int, IN_CONFIG(timeouts.heartbeat_interval_ms), 0, 100,
     HOUR_MS, "2000", "how often the connection to each engine is probed"},
    {"timeouts", "heartbeat_timeout_ms", &config_type_int, IN_CONFIG(timeouts.heartbeat_timeout_ms), 0, 200,
     HOUR_MS, "10000",
     "an engine that answers no probe for so long is lost; longer than the largest message takes"},
    {"timeouts", "waiting_log_ms", &config_type_int, IN_CONFIG(timeouts.waiting_log_ms), 0, 100, HOUR_MS,
     "10000", "how often the log names the ranks that are still missing"},
    {"timeouts", "wave_repeat_ms", &config_type_int, IN_CONFIG(timeouts.wave_repeat_ms), 0, 10, HOUR_MS,
     "500", "how often a running lockstep group is told again to run, for a rank that missed it"},
    {"timeouts", "wave_watchdog_ms", &config_type_int, IN_CONFIG(timeouts.wave_watchdog_ms), 0, 100, HOUR_MS,
     "10000", "a running lockstep group that shows no sign for so long is asked whether it is stuck"},
    {"timeouts", "http_idle_ms", &config_type_int, IN_CONFIG(timeouts.http_idle_ms), 0, 0, DAY_MS, "120000",
     "an HTTP connection on which nothing moves and nothing is awaited is closed after it; 0: never, else at "
     "least 1000"},
};

const config_key_t *config_keys(size_t *count)
{
    *count = sizeof keys / sizeof *keys;
    return keys;
}

const config_key_t *config_key_find(const char *section, const char *name)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, name) == 0)
            return &keys[i];
    }
    return NULL;
}

bool config_section_exists(const char *name)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(keys[i].section, name) == 0)
            return true;
    }
    return false;
}

bool config_key_is_repeated(const config_key_t *key)
{
    return strcmp(key->section, CONFIG_FRONTENDS) == 0;
}

const void *config_key_base(const config_key_t *key, const wg_config_t *config, uint32_t frontend)
{
    return config_key_is_repeated(key) ? (const void *)&config->frontends[frontend] : config;
}

uint32_t config_key_repeats(const config_key_t *key, const wg_config_t *config)
{
    return config_key_is_repeated(key) ? config->frontend_count : 1;
}
