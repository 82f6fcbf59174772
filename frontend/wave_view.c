#include "frontend/wave_view.h"

void wave_view_on_publish(wave_view_t *view, int64_t wave, bool running)
{
    bool later = !view->known || wave > view->wave;
    view->known = true;
    view->silent = false;
    if (wave < view->wave)
        return; /* a coordinator that has not caught up yet: our next notice tells it */
    if (later)
        view->announced = false;
    if (later || running)
        view->woken = false;
    view->wave = wave;
    view->running = running;
}

/* Without the coordinator nobody tells when a wave is complete, and a wake at a completed wave is ignored. So
 * the group is woken once, at the wave at which it was last known to pause; it certainly runs while requests
 * are in flight there. */
static wave_view_step_t wake_alone(wave_view_t *view, bool all_routes, size_t in_flight)
{
    if (!all_routes || view->running || (view->woken && in_flight == 0))
        return WAVE_VIEW_REFUSE;
    if (view->woken)
        return WAVE_VIEW_SEND;
    view->woken = true;
    return WAVE_VIEW_WAKE;
}

wave_view_step_t wave_view_on_request(wave_view_t *view, bool all_routes, size_t in_flight)
{
    if (!view->known)
        return WAVE_VIEW_REFUSE;
    if (view->silent)
        return wake_alone(view, all_routes, in_flight);
    if (view->running || view->announced)
        return WAVE_VIEW_SEND;
    view->announced = true;
    return WAVE_VIEW_ANNOUNCE;
}

wave_view_step_t wave_view_on_silence(wave_view_t *view, bool all_routes)
{
    view->silent = true;
    if (view->running || !view->announced)
        return WAVE_VIEW_SEND;
    return wake_alone(view, all_routes, 1);
}

void wave_view_on_heard(wave_view_t *view)
{
    view->silent = false;
}

bool wave_view_on_repeat(const wave_view_t *view, size_t in_flight)
{
    return view->silent && view->woken && in_flight > 0;
}
