/* The silence limit (rank_silence.h) of every rank: its timer, the questions, and what counts as a sign of
 * life. */
#include "frontend/client_parts.h"

void client_silence_heard(client_t *client, uint32_t place)
{
    if (client->silence.timer == -1)
        return;
    rank_silence_heard(&client->ranks[place].silence, zclock_mono());
    if (dispatcher_state(client->ranks[place].dispatcher) == WG_RANK_SILENT)
        client_set_rank_silent(client, place, false);
}

static int on_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    client_t *self = context;
    int64_t now_ms = zclock_mono();
    for (uint32_t place = 0; place < self->frontend->rank_count; place++) {
        client_rank_t *rank = &self->ranks[place];
        wg_rank_state_t state = dispatcher_state(rank->dispatcher);
        bool has_work = state == WG_RANK_READY && dispatcher_in_flight(rank->dispatcher) > 0;
        rank_silence_verdict_t verdict =
            rank_silence_check(&rank->silence, self->config->timeouts.rank_silence_ms,
                               has_work || state == WG_RANK_SILENT, now_ms);
        if (verdict.ask)
            client_ask(self, place);
        if (verdict.silent && state == WG_RANK_READY)
            client_set_rank_silent(self, place, true);
    }
    return 0;
}

void client_silence_open(client_t *client)
{
    int64_t limit_ms = client->config->timeouts.rank_silence_ms;
    client->silence.timer = -1;
    if (limit_ms > 0)
        client->silence.timer =
            zloop_timer(client->loop, (size_t)rank_silence_period_ms(limit_ms), 0, on_timer, client);
}

void client_silence_close(client_t *client)
{
    if (client->silence.timer != -1)
        zloop_timer_end(client->loop, client->silence.timer);
}
