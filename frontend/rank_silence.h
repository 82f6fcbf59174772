/* rank_silence.h: how long a rank with work of ours has given no sign of life (design.md 2): a wedged engine
 * keeps its connections, so silence is the only sign. Pure: time is a parameter. Owned by its client
 * (client_silence.c). Tests: tests/unit/rank_silence_test.c, tests/integration/test_silence.py
 *
 * Silence alone is no proof: a long prefill has no output, its stats go to one client only, and queue counts
 * are published as they change. So before the limit is over the engine is asked some times; it answers
 * between two steps, and any answer will do. */
#ifndef WG_FRONTEND_RANK_SILENCE_H
#define WG_FRONTEND_RANK_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t since_ms; /* the last sign of life, or when the waiting for one began */
    int64_t asked_ms;
    int64_t checked_ms;
    bool awaited;
} rank_silence_t; /* all zero at the start */

typedef struct {
    bool silent; /* for the whole limit */
    bool ask;    /* a call that the engine answers is to be sent to it now */
} rank_silence_verdict_t;

/* How often to check, for a limit above 0. */
int64_t rank_silence_period_ms(int64_t limit_ms);

/* Anything came from the rank. */
void rank_silence_heard(rank_silence_t *silence, int64_t now_ms);

/* Once per period. awaited: a sign of life is owed, for there is work of ours, or the rank was found silent.
 * A check that is late by more than a period means that it is we who were stopped: what came meanwhile is
 * unread, so the silence begins anew. */
rank_silence_verdict_t rank_silence_check(rank_silence_t *silence, int64_t limit_ms, bool awaited,
                                          int64_t now_ms);

#endif
