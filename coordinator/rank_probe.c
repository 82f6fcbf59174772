#include "coordinator/rank_probe.h"

#include "common/rank_map.h"

#include <stdlib.h>

/* Any method would do: one that the engine does not know is answered, too. */
#define METHOD "is_scheduler_paused"

/* An engine at the gate reads all of them when it opens, and may stand there for as long as another loads its
 * model. */
enum { FIRST_MS = 1000, LAST_MS = 60000 };

typedef struct {
    int64_t due_ms;
    int64_t wait_ms;
} schedule_t;

struct rank_probe {
    zloop_t *loop;
    const rank_table_t *ranks;
    engine_link_t *slot;
    schedule_t *schedules; /* by rank */
    msgpack_sbuffer call;  /* the same for all */
    int timer;
};

static void ask(rank_probe_t *self, uint32_t rank)
{
    schedule_t *schedule = &self->schedules[rank];
    schedule->due_ms = zclock_mono() + schedule->wait_ms;
    schedule->wait_ms = schedule->wait_ms * 2 < LAST_MS ? schedule->wait_ms * 2 : LAST_MS;
    (void)!engine_link_send(self->slot, rank, WIRE_REQUEST_UTILITY, self->call.data, self->call.size,
                            NULL); /* if the route is gone it comes back, or the rank is lost */
}

static bool is_unknown(const rank_probe_t *self, uint32_t rank)
{
    const rank_table_rank_t *state = rank_table_get(self->ranks, rank);
    return state->route_up && state->state != WG_RANK_READY;
}

void rank_probe_route_up(rank_probe_t *probe, uint32_t rank)
{
    probe->schedules[rank].wait_ms = FIRST_MS;
    if (is_unknown(probe, rank))
        ask(probe, rank);
}

static int on_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    rank_probe_t *self = context;
    for (uint32_t rank = 0; rank < rank_table_count(self->ranks); rank++) {
        if (is_unknown(self, rank) && zclock_mono() >= self->schedules[rank].due_ms)
            ask(self, rank);
    }
    return 0;
}

wg_status_t rank_probe_new(rank_probe_t **out, zloop_t *loop, const rank_table_t *ranks, engine_link_t *slot,
                           wg_error_t *error)
{
    wg_status_t status = WG_FAIL(error, SYSTEM, "rank probe", "out of memory");
    rank_probe_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return status;
    *self = (rank_probe_t){.loop = loop, .ranks = ranks, .slot = slot, .timer = -1};
    msgpack_sbuffer_init(&self->call);
    self->schedules = calloc(rank_table_count(ranks), sizeof *self->schedules);
    if (self->schedules)
        status = wire_utility_encode(&self->call, RANK_MAP_SLOT_INDEX, RANK_PROBE_CALL_ID, METHOD, error);
    if (status != WG_OK) {
        rank_probe_destroy(&self);
        return status;
    }
    self->timer = zloop_timer(loop, FIRST_MS, 0, on_timer, self);
    *out = self;
    return WG_OK;
}

void rank_probe_destroy(rank_probe_t **probe)
{
    rank_probe_t *self = *probe;
    if (!self)
        return;
    if (self->timer != -1)
        zloop_timer_end(self->loop, self->timer);
    msgpack_sbuffer_destroy(&self->call);
    free(self->schedules);
    free(self);
    *probe = NULL;
}
