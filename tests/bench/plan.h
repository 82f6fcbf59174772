/* plan.h: what becomes of request number N: its prompt, and whether it is to be dropped or read slowly.
 * Follows from the options alone, so that a run with the same seed sends the same requests, whatever their
 * order. Pure; any thread. Tests: tests/integration/test_bench.py */
#ifndef WG_TESTS_BENCH_PLAN_H
#define WG_TESTS_BENCH_PLAN_H

#include "common/text_buffer.h"
#include "tests/bench/options.h"
#include "tests/bench/random.h"

typedef enum {
    PLAN_KEEP,
    PLAN_DROP_CONNECTING,
    PLAN_DROP_AFTER_REQUEST,
    PLAN_DROP_AFTER_FIRST_EVENT, /* only of a stream, */
    PLAN_DROP_IN_THE_MIDDLE,     /* and this only with a middle */
} plan_fate_t;

typedef struct {
    uint64_t number;
    plan_fate_t fate;
    int64_t drop_tokens; /* in the middle: so many have come */
    bool resets;         /* a dropped connection is reset, not closed */
    bool is_slow;
    random_t prompt;
} plan_t;

plan_t plan_make(const options_t *options, uint64_t number);

const char *plan_fate_name(plan_fate_t fate); /* static */

/* Appends the JSON body and returns the h of its prompt (tests/fake_engine/tokens.h). */
uint64_t plan_write_body(const plan_t *plan, const options_t *options, text_buffer_t *out);

#endif
