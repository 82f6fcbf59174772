/* wave_watchdog.h: is a group that should run stuck, some of its ranks in a collective and the others paused?
 * (design.md 4: what the five rules leave.) A group that shows no sign for a while is pinged by a utility
 * call: paused ranks answer, a rank in a collective cannot. In a group that runs either all come to answer,
 * or none while a long step lasts; so it is stuck where the same ranks, some but not all, answer two pings in
 * a row. Pure. Owned by the coordinator's loop. Tests: tests/unit/wave_watchdog_test.c */
#ifndef WG_COORDINATOR_WAVE_WATCHDOG_H
#define WG_COORDINATOR_WAVE_WATCHDOG_H

#include "common/status.h"

#include <stdint.h>

typedef struct wave_watchdog wave_watchdog_t;

typedef enum {
    WAVE_WATCHDOG_REST,  /* nothing to do */
    WAVE_WATCHDOG_PING,  /* send wave_watchdog_call_id to every rank */
    WAVE_WATCHDOG_STUCK, /* the group is known to be stuck: raise its wave */
} wave_watchdog_step_t;

WG_MUST_CHECK wave_watchdog_t *wave_watchdog_new(uint32_t rank_count, int64_t quiet_ms, int64_t now_ms);
void wave_watchdog_destroy(wave_watchdog_t **watchdog); /* accepts NULL, clears */

/* Any engine has stepped or changed its wave. */
void wave_watchdog_sign(wave_watchdog_t *watchdog, int64_t now_ms);
void wave_watchdog_pong(wave_watchdog_t *watchdog, uint32_t rank, int64_t call_id);

/* To be called often, e.g. every wave_repeat_ms. running: the group is believed to. */
wave_watchdog_step_t wave_watchdog_check(wave_watchdog_t *watchdog, bool running, int64_t now_ms);

int64_t wave_watchdog_call_id(const wave_watchdog_t *watchdog); /* of the last ping; never reused */

#endif
