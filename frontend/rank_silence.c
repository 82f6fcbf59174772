#include "frontend/rank_silence.h"

enum {
    CHECKS = 8,    /* within the limit */
    QUESTIONS = 4, /* the same: several, so that a step may take most of the limit */
    PERIOD_MAX_MS = 1000,
};

int64_t rank_silence_period_ms(int64_t limit_ms)
{
    return limit_ms / CHECKS < PERIOD_MAX_MS ? limit_ms / CHECKS : PERIOD_MAX_MS;
}

void rank_silence_heard(rank_silence_t *silence, int64_t now_ms)
{
    silence->since_ms = now_ms;
}

rank_silence_verdict_t rank_silence_check(rank_silence_t *silence, int64_t limit_ms, bool awaited,
                                          int64_t now_ms)
{
    bool stopped = now_ms - silence->checked_ms > 2 * rank_silence_period_ms(limit_ms);
    if (stopped || !awaited || !silence->awaited)
        silence->since_ms = now_ms;
    silence->checked_ms = now_ms;
    silence->awaited = awaited;
    int64_t quiet_from_ms = silence->asked_ms > silence->since_ms ? silence->asked_ms : silence->since_ms;
    bool ask = awaited && now_ms - quiet_from_ms >= limit_ms / QUESTIONS;
    if (ask)
        silence->asked_ms = now_ms;
    return (rank_silence_verdict_t){.silent = now_ms - silence->since_ms >= limit_ms, .ask = ask};
}
