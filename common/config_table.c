#include "common/config_table.h"

#include <string.h>

#define IN_CONFIG(member) offsetof(wg_config_t, member)
#define IN_FRONTEND(member) offsetof(config_frontend_t, member)
#define IN_ADAPTER(member) offsetof(config_adapter_t, member)

#define REQUIRED NULL
#define NONE ""
#define PORT_MAX 65535
#define TOKEN_MAX INT32_MAX
#define HOUR_MS 3600000
#define DAY_MS 86400000

/* Where a default comes from; what is meant last follows. */
#define UNSAID "for requests that do not say; without this key the model's own (`model.path`), else "

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
    {"model", "path", &config_type_text, IN_CONFIG(model.path), 0, 0, 0, NONE,
     "the model's folder: frontends take `vocab_size`, `eos_token_ids` and `defaults`, where this file does "
     "not give them, from its `config.json` and `generation_config.json`"},
    {"model", "vocab_size", &config_type_int, IN_CONFIG(model.vocab_size), 0, 1, TOKEN_MAX, NONE,
     "token ids must be below it; without it they are not checked against the vocabulary"},
    {"model", "eos_token_ids", &config_type_ints, IN_CONFIG(model.eos_token_ids), IN_CONFIG(model.eos_count),
     0, TOKEN_MAX, NONE, "the tokens that end a text, the primary one first"},
    {"model", "structured_outputs_backend", &config_type_backend, IN_CONFIG(model.structured_outputs_backend),
     0, 0, 0, "guidance",
     "the engines' grammar compiler: `guidance`, `xgrammar`, `outlines` or `lm-format-enforcer`"},

    {"defaults", "temperature", &config_type_float, IN_CONFIG(defaults.temperature), 0, 0, 2, NONE,
     UNSAID "1"},
    {"defaults", "top_p", &config_type_float_above, IN_CONFIG(defaults.top_p), 0, 0, 1, NONE, UNSAID "1"},
    {"defaults", "min_p", &config_type_float, IN_CONFIG(defaults.min_p), 0, 0, 1, NONE, UNSAID "0"},
    {"defaults", "repetition_penalty", &config_type_float_above, IN_CONFIG(defaults.repetition_penalty), 0, 0,
     TOKEN_MAX, NONE, UNSAID "1"},
    {"defaults", "top_k", &config_type_optional_int, IN_CONFIG(defaults.top_k), 0, -1, TOKEN_MAX, NONE,
     UNSAID "0; -1 and 0: off"},
    {"defaults", "max_tokens", &config_type_optional_int, IN_CONFIG(defaults.max_tokens), 0, 0, TOKEN_MAX,
     NONE, UNSAID "0: as many as fit into the model length"},

    {CONFIG_ADAPTERS, "name", &config_type_text, IN_ADAPTER(name), 0, 0, 0, REQUIRED,
     "of a LoRA adapter, which requests give in `model`"},
    {CONFIG_ADAPTERS, "id", &config_type_int, IN_ADAPTER(id), 0, 1, TOKEN_MAX, REQUIRED,
     "by which the engines know it"},
    {CONFIG_ADAPTERS, "path", &config_type_text, IN_ADAPTER(path), 0, 0, 0, REQUIRED,
     "where the engines find it"},

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
    {"limits", "max_header_bytes", &config_type_int, IN_CONFIG(limits.max_header_bytes), 0, 4096, 65536,
     "8192", "the line and the headers of one HTTP request"},
    {"limits", "max_headers", &config_type_int, IN_CONFIG(limits.max_headers), 0, 8, 1000, "100",
     "headers of one HTTP request"},
    {"limits", "max_json_depth", &config_type_int, IN_CONFIG(limits.max_json_depth), 0, 4, 64, "32",
     "nesting of a body"},
    {"limits", "max_ids_per_list", &config_type_int, IN_CONFIG(limits.max_ids_per_list), 0, 1, 1000000,
     "1024", "token ids in any list of a request but its prompt"},
    {"limits", "max_choices", &config_type_int, IN_CONFIG(limits.max_choices), 0, 1, 1024, "16",
     "`n` of a request"},
    {"limits", "max_prompts", &config_type_int, IN_CONFIG(limits.max_prompts), 0, 1, 4096, "64",
     "prompts of one completions request"},
    {"limits", "max_logprobs", &config_type_int, IN_CONFIG(limits.max_logprobs), 0, -1, 1000000, "20",
     "`logprobs` and `prompt_logprobs` of a request; -1: any number, and -1 for all is allowed"},
    {"limits", "max_output_bytes", &config_type_int, IN_CONFIG(limits.max_output_bytes), 0, 1 << 16,
     INT64_C(1) << 36, "268435456",
     "one frame of an engine's outputs; an engine that sends a larger one is disconnected, and its requests "
     "fail"},

    {"timeouts", "heartbeat_interval_ms", &config_type_int, IN_CONFIG(timeouts.heartbeat_interval_ms), 0, 100,
     HOUR_MS, "2000", "how often the connection to each engine is probed"},
    {"timeouts", "heartbeat_timeout_ms", &config_type_int, IN_CONFIG(timeouts.heartbeat_timeout_ms), 0, 200,
     HOUR_MS, "10000",
     "an engine that answers no probe for so long is lost; longer than the largest message takes"},
    {"timeouts", "rank_silence_ms", &config_type_int, IN_CONFIG(timeouts.rank_silence_ms), 0, 0, DAY_MS, "0",
     "a rank with requests in flight that is connected but gives no sign of life for so long ends them and "
     "gets no more until it does: no output, no change of its queue counts, no answer when asked (it answers "
     "between two steps); 0: no limit, else at least 1000 and longer than its longest step"},
    {"timeouts", "zmq_handshake_ms", &config_type_int, IN_CONFIG(timeouts.zmq_handshake_ms), 0, 100, HOUR_MS,
     "30000", "how long a connection to a ZMQ port may take to say what it is, before it is closed"},
    {"timeouts", "waiting_log_ms", &config_type_int, IN_CONFIG(timeouts.waiting_log_ms), 0, 100, HOUR_MS,
     "10000", "how often the log names the ranks that are still missing"},
    {"timeouts", "startup_ms", &config_type_int, IN_CONFIG(timeouts.startup_ms), 0, 0, DAY_MS, "0",
     "how long after the coordinator's start every rank is to be ready; 0: no limit, for only you know how "
     "long your engines load"},
    {"timeouts", "on_startup_timeout", &config_type_startup, IN_CONFIG(timeouts.on_startup_timeout), 0, 0, 0,
     "wait",
     "what the coordinator does then, beyond an error that names the missing ranks: `wait` for them, or "
     "`exit` with status 1, unless it found ranks running when it started"},
    {"timeouts", "wave_repeat_ms", &config_type_int, IN_CONFIG(timeouts.wave_repeat_ms), 0, 10, HOUR_MS,
     "500", "how often a running lockstep group is told again to run, for a rank that missed it"},
    {"timeouts", "wave_watchdog_ms", &config_type_int, IN_CONFIG(timeouts.wave_watchdog_ms), 0, 100, HOUR_MS,
     "10000", "a running lockstep group that shows no sign for so long is asked whether it is stuck"},
    {"timeouts", "http_idle_ms", &config_type_int, IN_CONFIG(timeouts.http_idle_ms), 0, 0, DAY_MS, "120000",
     "an HTTP connection on which nothing moves and nothing is awaited is closed after it; 0: never, else at "
     "least 1000"},
    {"timeouts", "http_header_ms", &config_type_int, IN_CONFIG(timeouts.http_header_ms), 0, 0, DAY_MS,
     "10000", "how long the line and the headers of a request may take to arrive; 0: for ever"},
    {"timeouts", "http_body_ms", &config_type_int, IN_CONFIG(timeouts.http_body_ms), 0, 0, DAY_MS, "60000",
     "how long its body may take after them; 0: for ever"},
    {"timeouts", "lame_duck_ms", &config_type_int, IN_CONFIG(timeouts.lame_duck_ms), 0, 0, HOUR_MS, "0",
     "how long a frontend that was told to stop still serves what comes, while `/readyz` says no already"},
    {"timeouts", "drain_ms", &config_type_int, IN_CONFIG(timeouts.drain_ms), 0, 0, DAY_MS, "30000",
     "how long requests in flight may go on after that; the rest end with `draining`"},
    {"timeouts", "request_deadline_ms", &config_type_int, IN_CONFIG(timeouts.request_deadline_ms), 0, 0,
     DAY_MS, "0", "how long a request may take that does not give its own `deadline_ms`; 0: for ever"},
    {"timeouts", "keep_alive_ms", &config_type_int, IN_CONFIG(timeouts.keep_alive_ms), 0, 0, DAY_MS, "0",
     "a stream that is silent for so long gets a comment line, for proxies that cut silent connections; 0: "
     "none"},
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
    return config_repeat_find(key->section) != NULL;
}

const void *config_key_base(const config_key_t *key, const wg_config_t *config, uint32_t index)
{
    const config_repeat_t *repeat = config_repeat_find(key->section);
    return repeat ? config_repeat_element(repeat, config, index) : (const void *)config;
}

uint32_t config_key_repeats(const config_key_t *key, const wg_config_t *config)
{
    const config_repeat_t *repeat = config_repeat_find(key->section);
    return repeat ? config_repeat_count(repeat, config) : 1;
}
