/* random.h: numbers that follow from a seed alone, so that a run can be repeated. Plain value; any thread.
 * Tests: tests/integration/test_bench.py */
#ifndef WG_TESTS_BENCH_RANDOM_H
#define WG_TESTS_BENCH_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t state;
} random_t;

/* Unrelated sequences for each pair of seed and number. */
random_t random_seeded(uint64_t seed, uint64_t number);

uint64_t random_next(random_t *random);
uint64_t random_below(random_t *random, uint64_t bound); /* bound > 0 */
double random_unit(random_t *random);                    /* 0 <= x < 1 */
bool random_chance(random_t *random, double fraction);

#endif
