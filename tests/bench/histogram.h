/* histogram.h: times in a fixed amount of memory, however many there are: 64 buckets for each power of two,
 * so a quantile is within 1 % of the truth, and the maximum is exact. Plain value, all zero is empty; any
 * thread. Tests: tests/integration/test_bench.py */
#ifndef WG_TESTS_BENCH_HISTOGRAM_H
#define WG_TESTS_BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_SUB_BITS 6
#define HISTOGRAM_VALUE_BITS 40 /* 12 days in microseconds */
#define HISTOGRAM_BUCKETS ((HISTOGRAM_VALUE_BITS - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

typedef struct {
    uint64_t buckets[HISTOGRAM_BUCKETS];
    uint64_t count;
    int64_t max_us;
} histogram_t;

void histogram_add(histogram_t *histogram, int64_t value_us); /* below zero counts as zero */

/* The value that `fraction` (0..1) of all do not exceed. 0 if there are none. */
double histogram_quantile_us(const histogram_t *histogram, double fraction);

#endif
