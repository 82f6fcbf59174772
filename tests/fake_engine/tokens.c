#include "tests/fake_engine/tokens.h"

#define FNV_PRIME UINT64_C(1099511628211)

uint64_t tokens_prompt(uint64_t h, uint32_t id)
{
    for (unsigned shift = 0; shift < 32; shift += 8)
        h = (h ^ (id >> shift & 0xff)) * FNV_PRIME;
    return h;
}

static uint64_t splitmix64(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

int64_t tokens_at(uint64_t h, uint64_t position, uint32_t vocab_size)
{
    return (int64_t)(splitmix64(h + position) % vocab_size);
}
