#include "common/turn.h"

struct turn {
    zloop_t *loop;
    turn_fn *work;
    void *context;
    int timer; /* -1: not scheduled */
};

static int on_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    turn_t *self = context;
    if (timer != self->timer)
        return 0;     /* ended in this turn by another timer: zloop runs it all the same */
    self->timer = -1; /* first, so that the work may schedule the next turn */
    self->work(self->context);
    return 0;
}

turn_t *turn_new(zloop_t *loop, turn_fn *work, void *context)
{
    turn_t *self = malloc(sizeof *self);
    if (self)
        *self = (turn_t){.loop = loop, .work = work, .context = context, .timer = -1};
    return self;
}

void turn_destroy(turn_t **turn)
{
    turn_t *self = *turn;
    if (!self)
        return;
    if (self->timer != -1)
        zloop_timer_end(self->loop, self->timer);
    free(self);
    *turn = NULL;
}

void turn_schedule(turn_t *turn)
{
    if (turn->timer == -1)
        turn->timer = zloop_timer(turn->loop, 0, 1, on_timer, turn);
}
