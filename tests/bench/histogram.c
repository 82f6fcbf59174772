#include "tests/bench/histogram.h"

#include <math.h>

#define SUB_BUCKETS (1u << HISTOGRAM_SUB_BITS)
#define LARGEST ((INT64_C(1) << HISTOGRAM_VALUE_BITS) - 1)

/* Buckets are one unit wide up to twice SUB_BUCKETS, then twice as wide for each power of two. */
static unsigned shift_of(uint64_t value)
{
    unsigned bits = value ? 64u - (unsigned)__builtin_clzll(value) : 0;
    return bits > HISTOGRAM_SUB_BITS + 1 ? bits - HISTOGRAM_SUB_BITS - 1 : 0;
}

static unsigned bucket_of(uint64_t value)
{
    unsigned shift = shift_of(value);
    return shift * SUB_BUCKETS + (unsigned)(value >> shift);
}

static double middle_of(unsigned bucket)
{
    if (bucket < 2 * SUB_BUCKETS)
        return bucket;
    unsigned shift = bucket / SUB_BUCKETS - 1;
    uint64_t first = (uint64_t)(bucket - shift * SUB_BUCKETS) << shift;
    return (double)first + (double)(UINT64_C(1) << shift) / 2;
}

void histogram_add(histogram_t *histogram, int64_t value_us)
{
    int64_t value = value_us < 0 ? 0 : value_us > LARGEST ? LARGEST : value_us;
    histogram->buckets[bucket_of((uint64_t)value)]++;
    histogram->count++;
    if (value > histogram->max_us)
        histogram->max_us = value;
}

double histogram_quantile_us(const histogram_t *histogram, double fraction)
{
    uint64_t wanted = (uint64_t)ceil(fraction * (double)histogram->count);
    uint64_t seen = 0;
    for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        seen += histogram->buckets[bucket];
        if (seen > 0 && seen >= wanted)
            return fmin(middle_of(bucket), (double)histogram->max_us);
    }
    return 0;
}
