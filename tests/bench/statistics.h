/* statistics.h: what a run has seen. Owned by the loop. Tests: tests/integration/test_bench.py */
#ifndef WG_TESTS_BENCH_STATISTICS_H
#define WG_TESTS_BENCH_STATISTICS_H

#include "common/status.h"
#include "tests/bench/histogram.h"
#include "tests/bench/options.h"
#include "tests/bench/outcome.h"

#include <jansson.h>
#include <stdio.h>

typedef struct {
    json_t *ends; /* how many requests ended in each way; by detail, where there is any */
    int64_t requests;
    int64_t most_in_flight;
    int64_t connections;
    int64_t tokens;
    int64_t wrong_tokens;
    int64_t failures;    /* requests that stalled or whose answer was malformed */
    int64_t stray_bytes; /* on connections without a request */
    int64_t complaints;  /* lines about single requests */
    histogram_t first_token;
    histogram_t gap; /* between events with tokens */
    histogram_t whole;
} statistics_t;

WG_MUST_CHECK wg_status_t statistics_new(statistics_t **out, wg_error_t *error); /* caller destroys */
void statistics_destroy(statistics_t **statistics); /* accepts NULL, clears *statistics */

void statistics_end(statistics_t *statistics, const outcome_t *outcome);

/* A line on standard error about request `number`; of the first few only. */
void statistics_complain(statistics_t *statistics, uint64_t number, const char *format, ...) WG_PRINTF(3, 4);

/* No token was wrong, and every answer whole. */
bool statistics_are_good(const statistics_t *statistics);

/* On standard output. seconds: how long the run took. */
void statistics_print(const statistics_t *statistics, const options_t *options, double seconds);

#endif
