/* options.h: the command line of wavegate-fake-engine. Read once; any thread. Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_OPTIONS_H
#define WG_TESTS_FAKE_ENGINE_OPTIONS_H

#include "common/status.h"
#include "tests/fake_engine/engine.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The imagined KV cache. */
#define OPTIONS_BLOCK_SIZE 16
#define OPTIONS_NUM_GPU_BLOCKS 8192
#define OPTIONS_KV_CACHE_TOKENS 131072

typedef struct {
    const char *handshake; /* belongs to argv */
    uint32_t *ranks;       /* ascending, no duplicate */
    size_t rank_count;
    size_t step_ms;
    size_t load_ms;
    engine_options_t engine;
    size_t collective_timeout_ms;
    bool pause_silent;
    bool dead_on_term;
    bool events;
    bool help;    /* then nothing else is set or checked, */
    bool version; /* as here */
} options_t;

/* WG_E_INVALID_REQUEST names the option and its fault. The caller frees *out, also after a failure. */
WG_MUST_CHECK wg_status_t options_parse(options_t *out, int argc, char **argv, wg_error_t *error);
void options_free(options_t *options);

void options_print_help(FILE *stream);

#endif
