/* tokens.h: which tokens the fake engine answers with: a pure function of the prompt and the position, so
 * that a test can tell every missing, repeated or foreign token. This is the only place that defines it in C.
 *
 *   h        = FNV-1a 64 (offset basis 14695981039346656037, prime 1099511628211) over the prompt's ids,
 *              each as 4 little-endian bytes
 *   token(i) = splitmix64(h + i) mod vocab_size, where i is 0 for the first new token and h + i wraps at 2^64
 *
 *   splitmix64(x): x += 0x9e3779b97f4a7c15; x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
 *                  x = (x ^ x >> 27) * 0x94d049bb133111eb; the result is x ^ x >> 31
 *
 * No state; any thread. Tests: tests/integration, against the same function in Python. */
#ifndef WG_TESTS_FAKE_ENGINE_TOKENS_H
#define WG_TESTS_FAKE_ENGINE_TOKENS_H

#include <stdint.h>

#define TOKENS_EMPTY_PROMPT UINT64_C(14695981039346656037)

/* h of a prompt with one more id. Start with TOKENS_EMPTY_PROMPT. */
uint64_t tokens_prompt(uint64_t h, uint32_t id);

/* vocab_size > 0. */
int64_t tokens_at(uint64_t h, uint64_t position, uint32_t vocab_size);

#endif
