#include "common/log.h"
#include "frontend/frontend_parts.h"

enum { TICK_MS = 10 };

/* Every response has been handed to the system. */
static bool is_idle(const frontend_t *self)
{
    http_server_stats_t stats;
    http_server_stats(self->http, &stats);
    return client_in_flight(self->client) == 0 && stats.exchanges == 0 && stats.buffered_bytes == 0;
}

static void finish(frontend_t *self)
{
    frontend_drained_fn *drained = self->drain.drained;
    if (client_in_flight(self->client) > 0)
        log_notice("drain is over in_flight=%zu", client_in_flight(self->client));
    client_drain(self->client);
    self->drain.drained = NULL;
    drained(self->drain.context);
}

static void step(frontend_t *self)
{
    int64_t now_ms = zclock_mono();
    if (!self->drain.is_refusing && now_ms >= self->drain.serve_until_ms) {
        self->drain.is_refusing = true;
        http_server_close_listener(self->http);
        client_refuse(self->client);
    }
    if (self->drain.is_refusing && (is_idle(self) || now_ms >= self->drain.end_by_ms))
        finish(self);
}

/* It ends with the loop. */
static int on_tick(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    frontend_t *self = context;
    if (self->drain.drained)
        step(self);
    return 0;
}

void frontend_drain(frontend_t *frontend, frontend_drained_fn *drained, void *context)
{
    frontend->drain.drained = drained;
    frontend->drain.context = context;
    frontend->drain.serve_until_ms = zclock_mono() + frontend->config->timeouts.lame_duck_ms;
    frontend->drain.end_by_ms = frontend->drain.serve_until_ms + frontend->config->timeouts.drain_ms;
    client_leave(frontend->client);
    zloop_timer(frontend->loop, TICK_MS, 0, on_tick, frontend);
    step(frontend);
}
