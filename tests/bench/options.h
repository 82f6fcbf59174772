/* options.h: the command line of wavegate-bench. Read once; any thread. Tests:
 * tests/integration/test_bench.py */
#ifndef WG_TESTS_BENCH_OPTIONS_H
#define WG_TESTS_BENCH_OPTIONS_H

#include "common/status.h"
#include "tests/bench/target.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
    target_t *targets; /* at least one */
    size_t target_count;
    int64_t streams;  /* closed loop; 0: open loop, */
    double rate;      /* with so many requests per second */
    int64_t requests; /* how many; 0: no limit but the time */
    double seconds;   /* how long requests are begun; 0: no limit but their number */
    int64_t prompt_tokens;
    int64_t max_tokens;
    int64_t vocab_size;
    bool no_stream;
    double drop; /* fractions of all requests, 0..1 */
    double slow;
    double stall_s;
    int64_t seed;
    bool check;
    bool json;
    bool help;    /* then nothing else is set or checked, */
    bool version; /* as here */
} options_t;

/* WG_E_INVALID_REQUEST names the option and its fault. The caller frees *out, also after a failure. */
WG_MUST_CHECK wg_status_t options_parse(options_t *out, int argc, char **argv, wg_error_t *error);
void options_free(options_t *options);

void options_print_help(FILE *stream);

#endif
