#include "frontend/lockstep.h"

#include "common/log.h"
#include "common/wire_request.h"

#include <stdlib.h>

struct lockstep {
    const wg_config_t *config;
    const config_frontend_t *frontend;
    engine_link_t *link;
    load_feed_t *feed;
    wg_rank_state_t *ranks; /* of the whole group */
    wave_view_t view;
};

lockstep_t *lockstep_new(const wg_config_t *config, const config_frontend_t *frontend, engine_link_t *link,
                         load_feed_t *feed)
{
    lockstep_t *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    *self = (lockstep_t){.config = config, .frontend = frontend, .link = link, .feed = feed};
    self->ranks = calloc(config->ranks.count, sizeof *self->ranks);
    if (!self->ranks)
        lockstep_destroy(&self);
    return self;
}

void lockstep_destroy(lockstep_t **lockstep)
{
    lockstep_t *self = *lockstep;
    if (!self)
        return;
    free(self->ranks);
    free(self);
    *lockstep = NULL;
}

void lockstep_set_rank(lockstep_t *lockstep, uint32_t rank, wg_rank_state_t state)
{
    bool unknown = state == WG_RANK_ABSENT; /* a restarted coordinator has yet to learn of it */
    if (!unknown || lockstep->ranks[rank] != WG_RANK_READY)
        lockstep->ranks[rank] = state;
}

int64_t lockstep_missing_rank(const lockstep_t *lockstep)
{
    for (uint32_t rank = 0; rank < lockstep->config->ranks.count; rank++) {
        if (lockstep->ranks[rank] != WG_RANK_READY)
            return rank;
    }
    return -1;
}

const wave_view_t *lockstep_view(const lockstep_t *lockstep)
{
    return &lockstep->view;
}

void lockstep_on_publish(lockstep_t *lockstep, int64_t wave, bool running)
{
    wave_view_on_publish(&lockstep->view, wave, running);
}

static bool reaches_all(const lockstep_t *self)
{
    if (self->frontend->rank_count != self->config->ranks.count)
        return false;
    for (uint32_t rank = 0; rank < self->config->ranks.count; rank++) {
        if (!engine_link_route_up(self->link, rank))
            return false;
    }
    return true;
}

/* START_DP_WAVE on the request sockets, where engines take it, too (protocol.md 5). */
static void wake_all(lockstep_t *self)
{
    msgpack_sbuffer payload;
    msgpack_sbuffer_init(&payload);
    if (wire_start_encode(&payload, self->view.wave, NULL) == WG_OK) {
        for (uint32_t rank = 0; rank < self->config->ranks.count; rank++)
            (void)!engine_link_send(self->link, rank, WIRE_REQUEST_START_DP_WAVE, payload.data, payload.size,
                                    NULL); /* repeated; a rank that is gone ends the group anyway */
    }
    msgpack_sbuffer_destroy(&payload);
}

bool lockstep_would_send(const lockstep_t *lockstep, size_t in_flight)
{
    wave_view_t copy = lockstep->view;
    return wave_view_on_request(&copy, reaches_all(lockstep), in_flight) != WAVE_VIEW_REFUSE;
}

wg_status_t lockstep_before_add(lockstep_t *lockstep, size_t in_flight, wave_view_step_t *step,
                                wave_view_t *undo, wg_error_t *error)
{
    *undo = lockstep->view;
    *step = wave_view_on_request(&lockstep->view, reaches_all(lockstep), in_flight);
    if (*step == WAVE_VIEW_REFUSE)
        return WG_FAIL(error, CONTROL_CLOSED,
                       "the coordinator is silent, so nobody would wake the lockstep group");
    return WG_OK;
}

void lockstep_after_add(lockstep_t *lockstep, uint32_t rank, wave_view_step_t step)
{
    if (step == WAVE_VIEW_WAKE)
        wake_all(lockstep);
    else if (step == WAVE_VIEW_ANNOUNCE && !load_feed_notice(lockstep->feed, rank, lockstep->view.wave))
        log_warning("first-request notice was not sent rank=%u",
                    rank); /* the engine's own report wakes the group */
}

void lockstep_not_sent(lockstep_t *lockstep, const wave_view_t *undo)
{
    lockstep->view = *undo;
}

bool lockstep_on_silent(lockstep_t *lockstep, bool silent)
{
    if (!silent) {
        wave_view_on_heard(&lockstep->view);
        return true;
    }
    wave_view_step_t step = wave_view_on_silence(&lockstep->view, reaches_all(lockstep));
    if (step == WAVE_VIEW_WAKE)
        wake_all(lockstep);
    return step != WAVE_VIEW_REFUSE;
}

void lockstep_on_repeat(lockstep_t *lockstep, size_t in_flight)
{
    if (wave_view_on_repeat(&lockstep->view, in_flight))
        wake_all(lockstep);
}
