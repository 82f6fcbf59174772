/* One timer for all, for zloop keeps its timers in a list: one per request would cost the loop a walk over
 * all of them each turn. */
#include "frontend/generation_parts.h"

enum { TICK_MS = 50 };

static void look_at(generation_t *generation, int64_t now_ms)
{
    int64_t keep_alive_ms = generation->all->config->timeouts.keep_alive_ms;
    if (generation->due_ms > 0 && now_ms >= generation->due_ms)
        generation_expire(generation);
    else if (keep_alive_ms > 0 && generation->stream && now_ms - generation->written_ms >= keep_alive_ms)
        generation_keep_alive(generation, now_ms);
}

static int on_tick(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    generations_t *self = context;
    if (timer != self->timer)
        return 0; /* ended in this turn: zloop runs it all the same */
    int64_t now_ms = zclock_mono();
    generation_t *next;
    for (generation_t *each = LIST_FIRST(&self->timed); each; each = next) {
        next = LIST_NEXT(each, timed);
        look_at(each, now_ms);
    }
    return 0;
}

void generation_clock_add(generation_t *generation)
{
    generations_t *all = generation->all;
    bool keeps_alive = generation->stream && all->config->timeouts.keep_alive_ms > 0;
    if (generation->due_ms == 0 && !keeps_alive)
        return;
    generation->is_timed = true;
    LIST_INSERT_HEAD(&all->timed, generation, timed);
    if (all->timer == -1)
        all->timer = zloop_timer(all->loop, TICK_MS, 0, on_tick, all);
}

void generation_clock_remove(generation_t *generation)
{
    generations_t *all = generation->all;
    if (!generation->is_timed)
        return;
    generation->is_timed = false;
    LIST_REMOVE(generation, timed);
    if (!LIST_EMPTY(&all->timed))
        return;
    zloop_timer_end(all->loop, all->timer);
    all->timer = -1;
}

generations_t *generations_new(zloop_t *loop, client_t *client, const wg_config_t *config)
{
    generations_t *self = calloc(1, sizeof *self);
    if (self)
        *self = (generations_t){.loop = loop, .client = client, .config = config, .timer = -1};
    return self;
}

void generations_destroy(generations_t **generations)
{
    free(*generations);
    *generations = NULL;
}
