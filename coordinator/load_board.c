#include "coordinator/load_board.h"

#include <stdlib.h>

struct load_board {
    wire_load_t *loads;
    int64_t *reported_ms; /* 0: never */
    uint32_t count;
    bool changed; /* since the last publish */
    int64_t published_ms;
};

load_board_t *load_board_new(uint32_t count)
{
    load_board_t *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->count = count;
    self->loads = calloc(count, sizeof *self->loads);
    self->reported_ms = calloc(count, sizeof *self->reported_ms);
    if (!self->loads || !self->reported_ms)
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

void load_board_report(load_board_t *board, uint32_t rank, const wire_stats_t *stats, int64_t now_ms)
{
    set_load(board, rank,
             (wire_load_t){.waiting = stats->waiting,
                           .running = stats->running,
                           .kv_cache_usage = stats->kv_cache_usage});
    board->reported_ms[rank] = now_ms;
}

void load_board_clear(load_board_t *board, uint32_t rank)
{
    set_load(board, rank, (wire_load_t){0});
    board->reported_ms[rank] = 0;
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
    return left_ms > 0 ? left_ms : 0;
}

void load_board_published(load_board_t *board, int64_t now_ms)
{
    board->changed = false;
    board->published_ms = now_ms;
}
