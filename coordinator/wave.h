/* wave.h: does the lockstep group run, and at which wave: protocol.md 7 with the five rules of design.md 4.
 * coordinator/WAVES.md says why each rule is there, and what breaks without it.
 *
 * Pure: messages and the repeat timer in, actions out. It owns no socket, no file, no clock. The caller
 * carries out the actions in the order of their bits: the file is written before anything is said that
 * depends on it. Owned by the coordinator's loop. Tests: tests/unit/wave_test.c, tests/explorer/ (every
 * interleaving) */
#ifndef WG_COORDINATOR_WAVE_H
#define WG_COORDINATOR_WAVE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t current_wave; /* never ahead of what an engine has reported */
    bool running;         /* believed: a wake was sent, or an engine said so, and no wave_complete since */
    bool observed; /* running, and an engine's own message says so; without it `running` is a prediction */
    bool assumed;  /* running because the coordinator was restarted, and no wave has ended since */
} wave_t;          /* all zero: a group that has never run */

enum {
    WAVE_SAVE = 1,    /* write current_wave and running to the state file */
    WAVE_START = 2,   /* broadcast START_DP_WAVE [current_wave, nil] */
    WAVE_PUBLISH = 4, /* tell the frontends current_wave and running */
};
typedef unsigned wave_actions_t;

/* After a restart: what the file says, or wave 0 where it says nothing. Running is assumed, until a wave ends that was woken
 * after the restart: the first wave_complete may be old, and what woke the group behind it may have died unread with us. */
wave_actions_t wave_restore(wave_t *wave, int64_t saved_wave);
/* Every rank has just been started through us: nothing runs. */
wave_actions_t wave_group_started(wave_t *wave);

/* A frontend's first-request notice, at the wave it knows. */
wave_actions_t wave_on_notice(wave_t *wave, int64_t known_wave);
/* A frontend has joined, and knows of this wave. */
wave_actions_t wave_on_join(wave_t *wave, int64_t known_wave);

/* Engines' messages. */
wave_actions_t wave_on_complete(wave_t *wave, int64_t completed);
wave_actions_t wave_on_start(wave_t *wave, int64_t started);
/* Queue counts of a rank at that wave. Anything above zero is a reason to wake, but only running requests show that the rank steps: one
 * that a pause call holds reports what waits, too. */
wave_actions_t wave_on_report(wave_t *wave, int64_t at_wave, int64_t waiting, int64_t running);

/* Every wave_repeat_ms. */
wave_actions_t wave_on_repeat(const wave_t *wave);

/* Only for a group that is known to be stuck, some ranks in a collective and some paused at a later wave than
 * ours. */
wave_actions_t wave_raise(wave_t *wave);

#endif
