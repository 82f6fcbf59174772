#include "tests/bench/random.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* splitmix64 */
uint64_t random_next(random_t *random)
{
    uint64_t x = random->state += GOLDEN;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The state of splitmix64 is a counter, so neighbouring numbers used as states would give the same sequence
 * shifted by one. Hence both go through it first. */
random_t random_seeded(uint64_t seed, uint64_t number)
{
    random_t by_seed = {seed};
    random_t by_both = {random_next(&by_seed) ^ number};
    return (random_t){random_next(&by_both)};
}

uint64_t random_below(random_t *random, uint64_t bound)
{
    return random_next(random) % bound;
}

double random_unit(random_t *random)
{
    return (double)(random_next(random) >> 11) * 0x1p-53;
}

bool random_chance(random_t *random, double fraction)
{
    return random_unit(random) < fraction;
}
