/* load.h: the loop: begins requests when they are due, and waits for all of them to end. Tests:
 * tests/integration/test_bench.py */
#ifndef WG_TESTS_BENCH_LOAD_H
#define WG_TESTS_BENCH_LOAD_H

#include "tests/bench/options.h"
#include "tests/bench/statistics.h"

/* Blocks SIGINT and SIGTERM while it runs, until one has come. Blocks until the last request has ended.
 * *seconds: from the first to the last. */
WG_MUST_CHECK wg_status_t load_run(const options_t *options, statistics_t *statistics, double *seconds,
                                   wg_error_t *error);

#endif
