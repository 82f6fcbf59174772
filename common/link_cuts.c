#include "common/link_cuts.h"

#include "common/output_paths.h"

#include <stdlib.h>

enum {
    WAKING_MS = 2000, /* after a stop the ends of connections are learned within this time */
    LATE_MS =
        5000, /* after a loss the same: both are told by the same thread, but read as the machine allows */
};

struct link_cuts {
    output_paths_t *outputs;
    int64_t stop_ms;
    int64_t awake_ms; /* link_cuts_awake was last called */
    int64_t woken_ms; /* we went on after a stop; 0: there was none */
    /* since the last settling: */
    uint32_t inputs_ended;  /* when just woken, and no loss found for them */
    uint32_t unknown_ended; /* output connections of which nobody knows whose they were */
    /* since the last loss but LATE_MS: */
    uint32_t ends_expected; /* of output connections of lost places, of which nobody knows which they are */
    int64_t lost_ms;
};

link_cuts_t *link_cuts_new(uint32_t count, int64_t stop_ms, int64_t now_ms)
{
    link_cuts_t *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    *self = (link_cuts_t){.outputs = output_paths_new(count), .stop_ms = stop_ms, .awake_ms = now_ms};
    if (!self->outputs)
        link_cuts_destroy(&self);
    return self;
}

void link_cuts_destroy(link_cuts_t **cuts)
{
    link_cuts_t *self = *cuts;
    if (!self)
        return;
    output_paths_destroy(&self->outputs);
    free(self);
    *cuts = NULL;
}

void link_cuts_awake(link_cuts_t *cuts, int64_t now_ms)
{
    if (now_ms - cuts->awake_ms >= cuts->stop_ms)
        cuts->woken_ms = now_ms;
    cuts->awake_ms = now_ms;
}

int64_t link_cuts_find(const link_cuts_t *cuts, int fd, bool *is_over)
{
    return output_paths_find(cuts->outputs, fd, is_over);
}

bool link_cuts_moved(link_cuts_t *cuts, uint32_t place, int fd)
{
    return output_paths_move(cuts->outputs, place, fd);
}

/* The engines that gave us up dial again at once, so that a sweep finds their routes, and what was sent into
 * the connections before is lost unnoticed. Nothing tells whose they were. */
void link_cuts_input_ended(link_cuts_t *cuts, int64_t now_ms)
{
    if (cuts->woken_ms > 0 && now_ms - cuts->woken_ms <= WAKING_MS)
        cuts->inputs_ended++;
}

void link_cuts_output_accepted(link_cuts_t *cuts, int fd)
{
    output_paths_accepted(cuts->outputs, fd);
}

static void forget_late_ends(link_cuts_t *self, int64_t now_ms)
{
    if (now_ms - self->lost_ms > LATE_MS)
        self->ends_expected = 0;
}

void link_cuts_output_ended(link_cuts_t *cuts, int fd, int64_t now_ms)
{
    if (output_paths_knows(cuts->outputs, fd))
        return;
    forget_late_ends(cuts, now_ms);
    if (cuts->ends_expected > 0)
        cuts->ends_expected--;
    else
        cuts->unknown_ended++;
}

void link_cuts_lost(link_cuts_t *cuts, uint32_t place, int64_t now_ms)
{
    bool unknown = output_paths_is_unknown(cuts->outputs, place);
    if (cuts->inputs_ended > 0)
        cuts->inputs_ended--;
    forget_late_ends(cuts, now_ms);
    if (unknown && cuts->unknown_ended > 0)
        cuts->unknown_ended--;
    else if (unknown)
        cuts->ends_expected++;
    cuts->lost_ms = now_ms;
    output_paths_forget(cuts->outputs, place);
}

const char *link_cuts_take(link_cuts_t *cuts, uint32_t place)
{
    bool unknown = output_paths_is_unknown(cuts->outputs, place);
    if (output_paths_take_broken(cuts->outputs, place))
        return "the connection of its outputs ended";
    if (cuts->unknown_ended > 0 && unknown)
        return "a connection ended that may have been that of its outputs";
    return cuts->inputs_ended > 0 ? "connections ended while this process was stopped" : NULL;
}

void link_cuts_settled(link_cuts_t *cuts)
{
    cuts->inputs_ended = 0;
    cuts->unknown_ended = 0;
}
