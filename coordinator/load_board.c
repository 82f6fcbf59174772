#include "coordinator/load_board.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t wave;
    int64_t step;
} stamp_t;

struct load_board {
    wire_load_t *loads;
    int64_t *reported_ms; /* 0: never */
    uint32_t count;
    bool changed; /* since the last publish */
    int64_t published_ms;
    bool lockstep;         /* and what follows is only for it */
    stamp_t *stamps;       /* of each rank's last report */
    stamp_t newest;        /* of all */
    int64_t newest_ms;     /* when the first report of that step came */
    wire_load_t *snapshot; /* the table as it stood before that */
    bool has_snapshot;     /* not yet published */
};

load_board_t *load_board_new(uint32_t count, bool lockstep)
{
    load_board_t *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->count = count;
    self->lockstep = lockstep;
    self->loads = calloc(count, sizeof *self->loads);
    self->reported_ms = calloc(count, sizeof *self->reported_ms);
    self->stamps = calloc(count, sizeof *self->stamps);
    self->snapshot = calloc(count, sizeof *self->snapshot);
    if (!self->loads || !self->reported_ms || !self->stamps || !self->snapshot)
        load_board_destroy(&self);
    return self;
}

void load_board_destroy(load_board_t **board)
{
    load_board_t *self = *board;
    if (!self)
        return;
    free(self->loads);
    free(self->reported_ms);
    free(self->stamps);
    free(self->snapshot);
    free(self);
    *board = NULL;
}

static void set_load(load_board_t *self, uint32_t rank, wire_load_t load)
{
    wire_load_t *kept = &self->loads[rank];
    bool same_usage =
        !(kept->kv_cache_usage < load.kv_cache_usage || kept->kv_cache_usage > load.kv_cache_usage);
    if (kept->waiting != load.waiting || kept->running != load.running || !same_usage)
        self->changed = true;
    *kept = load;
}

static int compare_stamps(stamp_t left, stamp_t right)
{
    if (left.wave != right.wave)
        return left.wave < right.wave ? -1 : 1;
    return (left.step > right.step) - (left.step < right.step);
}

/* False where the report is stale. The first report of a new step closes the table of the step before. */
static bool take_stamp(load_board_t *self, uint32_t rank, stamp_t stamp, int64_t now_ms)
{
    if (compare_stamps(stamp, self->stamps[rank]) < 0)
        return false;
    self->stamps[rank] = stamp;
    if (compare_stamps(stamp, self->newest) <= 0)
        return true;
    if (self->changed) {
        memcpy(self->snapshot, self->loads, self->count * sizeof *self->snapshot);
        self->has_snapshot = true;
    }
    self->newest = stamp;
    self->newest_ms = now_ms;
    return true;
}

bool load_board_report(load_board_t *board, uint32_t rank, const wire_stats_t *stats, int64_t now_ms)
{
    stamp_t stamp = {stats->current_wave, stats->step_counter};
    if (board->lockstep && !take_stamp(board, rank, stamp, now_ms))
        return false;
    set_load(board, rank,
             (wire_load_t){.waiting = stats->waiting,
                           .running = stats->running,
                           .kv_cache_usage = stats->kv_cache_usage});
    board->reported_ms[rank] = now_ms;
    return true;
}

void load_board_clear(load_board_t *board, uint32_t rank)
{
    set_load(board, rank, (wire_load_t){0});
    board->reported_ms[rank] = 0;
    board->stamps[rank] = (stamp_t){0}; /* its successor counts from the start, and with it the group */
    board->newest = (stamp_t){0};
}

uint32_t load_board_count(const load_board_t *board)
{
    return board->count;
}

const wire_load_t *load_board_loads(const load_board_t *board)
{
    return board->loads;
}

int64_t load_board_age_ms(const load_board_t *board, uint32_t rank, int64_t now_ms)
{
    return board->reported_ms[rank] > 0 ? now_ms - board->reported_ms[rank] : -1;
}

int64_t load_board_due_ms(const load_board_t *board, int64_t now_ms)
{
    int64_t period_ms = board->changed ? LOAD_BOARD_CHANGED_MS : LOAD_BOARD_REFRESH_MS;
    int64_t left_ms = board->published_ms + period_ms - now_ms;
    int64_t settled_ms = board->newest_ms + LOAD_BOARD_SETTLE_MS - now_ms;
    if (board->lockstep && board->changed && !board->has_snapshot && left_ms < settled_ms)
        left_ms = settled_ms;
    return left_ms > 0 ? left_ms : 0;
}

const wire_load_t *load_board_publish(load_board_t *board, int64_t now_ms)
{
    board->published_ms = now_ms;
    if (board->has_snapshot) {
        board->has_snapshot = false; /* the step that has begun is still to be told: `changed` stays */
        return board->snapshot;
    }
    board->changed = false;
    return board->loads;
}
