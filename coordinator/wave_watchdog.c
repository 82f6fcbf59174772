#include "coordinator/wave_watchdog.h"

#include <stdlib.h>
#include <string.h>

struct wave_watchdog {
    uint32_t rank_count;
    int64_t quiet_ms;
    int64_t sign_ms; /* the last sign of life, or the last ping's end */
    int64_t call_id;
    bool pinging;
    bool partial; /* `before` holds the answers of a ping that only some answered */
    bool *answered;
    bool *before;
};

wave_watchdog_t *wave_watchdog_new(uint32_t rank_count, int64_t quiet_ms, int64_t now_ms)
{
    wave_watchdog_t *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->rank_count = rank_count;
    self->quiet_ms = quiet_ms;
    self->sign_ms = now_ms;
    self->answered = calloc(rank_count, sizeof *self->answered);
    self->before = calloc(rank_count, sizeof *self->before);
    if (!self->answered || !self->before)
        wave_watchdog_destroy(&self);
    return self;
}

void wave_watchdog_destroy(wave_watchdog_t **watchdog)
{
    wave_watchdog_t *self = *watchdog;
    if (!self)
        return;
    free(self->answered);
    free(self->before);
    free(self);
    *watchdog = NULL;
}

void wave_watchdog_sign(wave_watchdog_t *watchdog, int64_t now_ms)
{
    watchdog->sign_ms = now_ms;
    watchdog->pinging = false;
    watchdog->partial = false;
}

void wave_watchdog_pong(wave_watchdog_t *watchdog, uint32_t rank, int64_t call_id)
{
    if (watchdog->pinging && call_id == watchdog->call_id && rank < watchdog->rank_count)
        watchdog->answered[rank] = true;
}

static wave_watchdog_step_t ping(wave_watchdog_t *self, int64_t now_ms)
{
    memset(self->answered, 0, self->rank_count * sizeof *self->answered);
    self->pinging = true;
    self->sign_ms = now_ms;
    self->call_id++;
    return WAVE_WATCHDOG_PING;
}

/* A ping's time is over. */
static wave_watchdog_step_t judge(wave_watchdog_t *self, int64_t now_ms)
{
    size_t size = self->rank_count * sizeof *self->answered;
    uint32_t answers = 0;
    for (uint32_t rank = 0; rank < self->rank_count; rank++)
        answers += self->answered[rank];
    bool partial = answers > 0 && answers < self->rank_count;
    bool again = partial && self->partial && memcmp(self->answered, self->before, size) == 0;
    if (again) {
        wave_watchdog_sign(self, now_ms);
        return WAVE_WATCHDOG_STUCK;
    }
    self->partial = partial;
    memcpy(self->before, self->answered, size);
    return ping(self, now_ms);
}

wave_watchdog_step_t wave_watchdog_check(wave_watchdog_t *watchdog, bool running, int64_t now_ms)
{
    if (!running) {
        wave_watchdog_sign(watchdog, now_ms);
        return WAVE_WATCHDOG_REST;
    }
    if (now_ms - watchdog->sign_ms < watchdog->quiet_ms)
        return WAVE_WATCHDOG_REST;
    return watchdog->pinging ? judge(watchdog, now_ms) : ping(watchdog, now_ms);
}

int64_t wave_watchdog_call_id(const wave_watchdog_t *watchdog)
{
    return watchdog->call_id;
}
