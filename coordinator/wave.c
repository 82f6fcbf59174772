#include "coordinator/wave.h"

enum { CHANGED = WAVE_SAVE | WAVE_PUBLISH };

wave_actions_t wave_restore(wave_t *wave, int64_t saved_wave)
{
    *wave = (wave_t){.current_wave = saved_wave, .running = true, .assumed = true};
    return CHANGED | WAVE_START;
}

wave_actions_t wave_group_started(wave_t *wave)
{
    *wave = (wave_t){.current_wave = wave->current_wave};
    return CHANGED;
}

static wave_actions_t run(wave_t *wave, int64_t at_wave, bool observed)
{
    wave->current_wave = at_wave;
    wave->running = true;
    wave->observed = observed;
    return CHANGED | WAVE_START;
}

/* A frontend's knowledge of a wave comes from what engines reported to an earlier life of the coordinator. */
wave_actions_t wave_on_notice(wave_t *wave, int64_t known_wave)
{
    if (known_wave > wave->current_wave)
        return run(wave, known_wave, false);
    return wave->running ? 0 : run(wave, wave->current_wave, false);
}

wave_actions_t wave_on_join(wave_t *wave, int64_t known_wave)
{
    if (known_wave <= wave->current_wave)
        return 0;
    wave->current_wave = known_wave;
    return wave->running ? CHANGED | WAVE_START : CHANGED;
}

wave_actions_t wave_on_complete(wave_t *wave, int64_t completed)
{
    if (completed < wave->current_wave || completed == INT64_MAX)
        return 0;
    bool perhaps_old = wave->assumed;
    *wave = (wave_t){.current_wave = completed + 1, .running = perhaps_old};
    return perhaps_old ? CHANGED | WAVE_START : CHANGED;
}

wave_actions_t wave_on_start(wave_t *wave, int64_t started)
{
    if (started < wave->current_wave)
        return 0;
    if (started > wave->current_wave || !wave->running)
        return run(wave, started, true);
    wave->observed = true;
    return 0;
}

wave_actions_t wave_on_report(wave_t *wave, int64_t at_wave, int64_t waiting, int64_t running)
{
    bool steps = running > 0;
    if (at_wave < wave->current_wave || (waiting == 0 && !steps))
        return 0;
    if (at_wave > wave->current_wave || !wave->running)
        return run(wave, at_wave, steps);
    wave->observed = wave->observed || steps;
    return 0;
}

wave_actions_t wave_on_repeat(const wave_t *wave)
{
    return wave->running ? WAVE_START : 0;
}

wave_actions_t wave_raise(wave_t *wave)
{
    return wave->current_wave < INT64_MAX ? run(wave, wave->current_wave + 1, false) : 0;
}
