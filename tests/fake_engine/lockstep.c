#include "tests/fake_engine/lockstep.h"

bool lockstep_add(lockstep_t *lockstep, int64_t request_wave)
{
    if (request_wave > lockstep->wave)
        lockstep->wave = request_wave;
    if (request_wave == lockstep->wave || lockstep->running || lockstep->pause != LOCKSTEP_OPEN)
        return false;
    lockstep->running = true;
    return true;
}

void lockstep_start(lockstep_t *lockstep, uint32_t rank, const engine_wave_t *start)
{
    if (lockstep->pause == LOCKSTEP_HELD || start->exclude == rank || start->wave < lockstep->wave)
        return;
    lockstep->wave = start->wave;
    lockstep->running = true;
}

void lockstep_pause(lockstep_t *lockstep)
{
    lockstep->pause = LOCKSTEP_PAUSING;
    lockstep->running = true;
}

bool lockstep_resume(lockstep_t *lockstep)
{
    bool in_flight =
        lockstep->pause == LOCKSTEP_PAUSING || (lockstep->pause == LOCKSTEP_HELD && lockstep->running);
    if (in_flight)
        return false;
    lockstep->pause = LOCKSTEP_OPEN;
    return true;
}

bool lockstep_stepped(lockstep_t *lockstep, lockstep_vote_t result)
{
    lockstep->step++;
    lockstep->running = true;
    if (lockstep->step % LOCKSTEP_STEPS != 0)
        return false;
    if (result.pausing)
        lockstep->pause = LOCKSTEP_HELD;
    if (result.unfinished)
        return false;
    if (lockstep->wave < INT64_MAX) /* a peer may have raised it that far */
        lockstep->wave++;
    lockstep->running = false;
    return true;
}
