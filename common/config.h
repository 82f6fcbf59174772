/* config.h: the cluster's one configuration file (libconfig), the same on every machine, read and checked
 * once at start. The names begin with wg_ because libconfig has the others. Read-only afterwards; any thread.
 * Tests: tests/unit/config_*test.c */
#ifndef WG_COMMON_CONFIG_H
#define WG_COMMON_CONFIG_H

#include "common/engine_id.h"
#include "common/status.h"

#include <stdint.h>
#include <stdio.h>

#define WG_CONFIG_UNSET INT64_MIN /* an int that the file leaves open */

#define WG_ADDRESS_SIZE 128u /* "ipc://" and the 107 bytes that a socket path may have, and the NUL */

/* A ZMQ endpoint. `bind` equals `address` unless the file has a `<key>_bind` beside the key.
 * Both are empty where an optional endpoint is not configured. */
typedef struct {
    char address[WG_ADDRESS_SIZE]; /* what peers are told to connect to */
    char bind[WG_ADDRESS_SIZE];
} config_endpoint_t;

/* host:port of an HTTP listener; the host is numeric, IPv6 without its brackets. */
typedef struct {
    char host[64];
    uint16_t port;
} config_http_t;

typedef struct {
    char *name;
    uint32_t *ranks; /* ascending, no duplicate */
    uint32_t rank_count;
    config_endpoint_t input;
    config_endpoint_t output;
    config_http_t http;
} config_frontend_t;

/* What becomes of a coordinator whose ranks have not all started in time. */
typedef enum { CONFIG_STARTUP_WAIT, CONFIG_STARTUP_EXIT } config_startup_t;

/* A LoRA adapter, which requests name in `model`. */
typedef struct {
    char *name;
    int64_t id; /* at least 1 */
    char *path; /* where the engines find it */
} config_adapter_t;

typedef struct wg_config {
    char *path; /* the file, as given */
    struct {
        char *name;
        char *path;             /* the folder of its config.json and generation_config.json, or NULL */
        int64_t vocab_size;     /* 0: unknown */
        int64_t *eos_token_ids; /* the first is the primary one */
        uint32_t eos_count;
        char *structured_outputs_backend; /* the engines' grammar compiler, as each request names it */
    } model;
    struct { /* for requests that do not say; NAN and WG_CONFIG_UNSET: open, until model_files_apply */
        double temperature;
        double top_p;
        double min_p;
        double repetition_penalty;
        int64_t top_k;      /* 0 and -1: off */
        int64_t max_tokens; /* 0: as many as fit */
    } defaults;
    config_adapter_t *adapters;
    uint32_t adapter_count;
    struct {
        uint32_t count;
        bool lockstep;
        char *master_ip; /* lockstep only, as are the ports */
        int64_t master_port;
        int64_t *master_ports;
        uint32_t master_port_count;
    } ranks;
    struct {
        config_endpoint_t handshake;
        config_endpoint_t engine_publish; /* these three: all or none; */
        config_endpoint_t engine_output;  /* lockstep needs them */
        config_endpoint_t frontend_publish;
        config_endpoint_t control;
        config_endpoint_t input; /* the coordinator's own client slot */
        config_endpoint_t output;
        config_http_t http;
        char *state_file; /* lockstep only; empty: chosen by wave_file */
    } coordinator;
    config_frontend_t *frontends;
    uint32_t frontend_count;
    struct {
        int64_t max_in_flight;    /* requests per frontend */
        int64_t max_body_bytes;   /* of one HTTP request */
        int64_t max_stream_bytes; /* unread output of one response */
        int64_t max_connections;  /* HTTP, per process */
        int64_t max_header_bytes; /* of one HTTP request: its line and headers */
        int64_t max_headers;
        int64_t max_json_depth;   /* of a body */
        int64_t max_ids_per_list; /* token ids in any list but the prompt */
        int64_t max_choices;      /* n */
        int64_t max_prompts;      /* of one completions request */
        int64_t max_logprobs;     /* logprobs and prompt_logprobs; -1: any number */
        int64_t max_output_bytes; /* of one frame of an engine's outputs */
    } limits;
    struct {
        int64_t lame_duck_ms; /* of a frontend that was told to stop: it is not ready, but still serves */
        int64_t drain_ms;     /* then what is in flight may finish for so long */
        int64_t request_deadline_ms;   /* unless the request says; 0: none */
        int64_t keep_alive_ms;         /* a comment in a stream after so long a silence; 0: never */
        int64_t http_header_ms;        /* for a request's line and headers to arrive; 0: no limit */
        int64_t http_body_ms;          /* for its body, from then on; 0: no limit */
        int64_t heartbeat_interval_ms; /* ZMTP, on every ROUTER that engines dial */
        int64_t heartbeat_timeout_ms;
        int64_t rank_silence_ms;  /* a rank with work that gives no sign of life for so long; 0: no limit */
        int64_t zmq_handshake_ms; /* for a connection to a ZMQ port to become one */
        int64_t waiting_log_ms;   /* how often missing ranks are named while the cluster starts */
        int64_t startup_ms;       /* for every rank to start, from the coordinator's start on; 0: no limit */
        config_startup_t on_startup_timeout;
        int64_t wave_repeat_ms;   /* a running lockstep group is woken again so often */
        int64_t wave_watchdog_ms; /* one that shows no sign for so long is pinged */
        int64_t http_idle_ms;     /* an HTTP connection without any traffic is closed; 0: never */
    } timeouts;
    char *log_level; /* error, warning, notice, debug */
} wg_config_t;

/* Reads and checks the whole file. WG_E_CONFIG with file, line, key and reason. *out is NULL on failure.
 * The caller destroys. */
WG_MUST_CHECK wg_status_t wg_config_load(wg_config_t **out, const char *path, wg_error_t *error);
void wg_config_destroy(wg_config_t **config); /* accepts NULL, clears *config */

/* The frontend of that name, or NULL. Belongs to the config. */
const config_frontend_t *wg_config_frontend(const wg_config_t *config, const char *name);

/* Prints the effective configuration in the file's own syntax: read back, it has the same values. */
void wg_config_print(const wg_config_t *config, FILE *stream);

/* Prints the table of keys as Markdown, as it stands in the README: key, type, default, help. */
void wg_config_print_keys(FILE *stream);

/* A number that differs where two files would give the engines different addresses or client indexes. */
uint64_t wg_config_fingerprint(const wg_config_t *config);

#endif
