#include "coordinator/startup_deadline.h"

#include "common/rank_map.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS_TEXT_SIZE = 160, DETAIL_SIZE = 200 };

struct startup_deadline {
    const wg_config_t *config;
    const rank_table_t *ranks;
    int64_t began_ms;
    bool *started;    /* by rank */
    uint32_t missing; /* how many have not */
    bool resumed;     /* ranks were running before this coordinator was */
    uint32_t *named;  /* room for the ranks of one error */
};

startup_deadline_t *startup_deadline_new(const wg_config_t *config, const rank_table_t *ranks, int64_t now_ms)
{
    startup_deadline_t *self = calloc(1, sizeof *self);
    uint32_t count = rank_table_count(ranks);
    if (!self)
        return NULL;
    *self = (startup_deadline_t){.config = config, .ranks = ranks, .began_ms = now_ms, .missing = count};
    self->started = calloc(count, sizeof *self->started);
    self->named = calloc(count, sizeof *self->named);
    if (!self->started || !self->named)
        startup_deadline_destroy(&self);
    return self;
}

void startup_deadline_destroy(startup_deadline_t **deadline)
{
    startup_deadline_t *self = *deadline;
    if (!self)
        return;
    free(self->started);
    free(self->named);
    free(self);
    *deadline = NULL;
}

static bool set_started(startup_deadline_t *self, uint32_t rank)
{
    if (self->started[rank])
        return false;
    self->started[rank] = true;
    return --self->missing == 0;
}

bool startup_deadline_rank_changed(startup_deadline_t *deadline, uint32_t rank, wg_rank_state_t before)
{
    if (rank_table_get(deadline->ranks, rank)->state != WG_RANK_READY)
        return false;
    if (before == WG_RANK_ABSENT)
        deadline->resumed = true;
    return set_started(deadline, rank);
}

void startup_deadline_learned(startup_deadline_t *deadline, uint32_t rank, int64_t state)
{
    bool ran = state == WG_RANK_READY || state == WG_RANK_LOST;
    if (!ran || rank_table_get(deadline->ranks, rank)->state != WG_RANK_ABSENT)
        return;
    deadline->resumed = true;
    set_started(deadline, rank);
}

uint32_t startup_deadline_missing(const startup_deadline_t *deadline)
{
    return deadline->missing;
}

bool startup_deadline_passed(const startup_deadline_t *deadline, int64_t now_ms)
{
    int64_t limit_ms = deadline->config->timeouts.startup_ms;
    return deadline->missing > 0 && limit_ms > 0 && now_ms - deadline->began_ms >= limit_ms;
}

bool startup_deadline_ends(const startup_deadline_t *deadline, int64_t now_ms)
{
    return startup_deadline_passed(deadline, now_ms) && !deadline->resumed &&
           deadline->config->timeouts.on_startup_timeout == CONFIG_STARTUP_EXIT;
}

/* --- how far they have come --- */

/* STARTUP_REGISTERED stands for whatever comes after a registration. */
static startup_phase_t own_phase(const rank_table_rank_t *rank)
{
    if (rank->state == WG_RANK_LOST)
        return STARTUP_LEFT;
    if (rank->state == WG_RANK_ABSENT)
        return rank->route_up ? STARTUP_FROM_BEFORE : STARTUP_NOT_SEEN;
    return rank->registered ? STARTUP_REGISTERED : STARTUP_LOADING;
}

/* Subscriptions carry no identity, so of ranks at the gate it is only known how many are. */
static startup_phase_t after_registration(const startup_deadline_t *self, uint64_t subscriptions)
{
    uint32_t count = rank_table_count(self->ranks);
    if (!self->config->ranks.lockstep)
        return STARTUP_REGISTERED;
    for (uint32_t rank = 0; rank < count; rank++) {
        if (!self->started[rank] && own_phase(rank_table_get(self->ranks, rank)) != STARTUP_REGISTERED)
            return STARTUP_AT_GATE;
    }
    return subscriptions < count ? STARTUP_SUBSCRIBING : STARTUP_REGISTERED;
}

typedef struct {
    uint32_t count;
    int64_t youngest_ms; /* since when the ranks are in their state */
    int64_t oldest_ms;
} found_t;

/* Fills self->named. */
static found_t find(const startup_deadline_t *self, startup_phase_t phase, uint64_t subscriptions)
{
    found_t found = {0, INT64_MIN, INT64_MAX};
    startup_phase_t registered = after_registration(self, subscriptions);
    for (uint32_t rank = 0; rank < rank_table_count(self->ranks); rank++) {
        const rank_table_rank_t *state = rank_table_get(self->ranks, rank);
        startup_phase_t own = own_phase(state);
        if (self->started[rank] || (own == STARTUP_REGISTERED ? registered : own) != phase)
            continue;
        self->named[found.count++] = rank;
        found.youngest_ms = state->since_ms > found.youngest_ms ? state->since_ms : found.youngest_ms;
        found.oldest_ms = state->since_ms < found.oldest_ms ? state->since_ms : found.oldest_ms;
    }
    return found;
}

/* "3 s", or "1 to 3 s" where several ranks differ. */
static const char *ages(char text[48], const found_t *found, int64_t now_ms)
{
    long long least = (long long)(now_ms - found->youngest_ms) / 1000;
    long long most = (long long)(now_ms - found->oldest_ms) / 1000;
    if (least == most)
        snprintf(text, 48, "%lld s", least);
    else
        snprintf(text, 48, "%lld to %lld s", least, most);
    return text;
}

static void write_detail(char out[DETAIL_SIZE], const startup_deadline_t *self, startup_phase_t phase,
                         const found_t *found, uint64_t subscriptions, int64_t now_ms)
{
    char text[48];
    const char *ago = ages(text, found, now_ms);
    uint32_t count = rank_table_count(self->ranks);
    switch (phase) {
    case STARTUP_NOT_SEEN:
        snprintf(out, DETAIL_SIZE, "nobody has dialled %.*s for them", (int)WG_ADDRESS_SIZE,
                 self->config->coordinator.handshake.address);
        break;
    case STARTUP_FROM_BEFORE:
        snprintf(out, DETAIL_SIZE,
                 "their engines were connected before this coordinator started, and do not answer: they are "
                 "at the startup gate, or stuck");
        break;
    case STARTUP_LEFT:
        snprintf(out, DETAIL_SIZE, "their engines were lost %s ago, before they were ready", ago);
        break;
    case STARTUP_LOADING:
        snprintf(out, DETAIL_SIZE, "their HELLO came %s ago: they load, or are stuck", ago);
        break;
    case STARTUP_AT_GATE:
        snprintf(out, DETAIL_SIZE, "they have registered and wait at the startup gate for the other ranks");
        break;
    case STARTUP_SUBSCRIBING:
        snprintf(out, DETAIL_SIZE, "all have registered, but only %llu of %u have subscribed",
                 (unsigned long long)subscriptions, count);
        break;
    case STARTUP_REGISTERED:
    case STARTUP_PHASE_COUNT:
        snprintf(out, DETAIL_SIZE, "they have registered; their HELLO came %s ago", ago);
        break;
    }
}

static wg_status_t write_fault(const startup_deadline_t *self, startup_phase_t phase, uint32_t count,
                               int64_t now_ms, wg_error_t *out)
{
    char ranks[RANKS_TEXT_SIZE];
    long long seconds = (long long)(now_ms - self->began_ms) / 1000;
    rank_map_ranges(ranks, sizeof ranks, self->named, count);
    if (phase == STARTUP_LOADING)
        return WG_FAIL(out, INPUT_REGISTRATION_TIMEOUT, ranks, seconds);
    if (phase == STARTUP_SUBSCRIBING)
        return WG_FAIL(out, HANDSHAKE_TIMEOUT, "subscriptions", ranks, seconds);
    return WG_FAIL(out, HANDSHAKE_TIMEOUT, phase < STARTUP_LOADING ? "HELLO" : "READY", ranks, seconds);
}

bool startup_deadline_fault(const startup_deadline_t *deadline, startup_phase_t phase, uint64_t subscriptions,
                            int64_t now_ms, wg_error_t *out)
{
    char detail[DETAIL_SIZE];
    found_t found = find(deadline, phase, subscriptions);
    if (found.count == 0)
        return false;
    write_fault(deadline, phase, found.count, now_ms, out);
    write_detail(detail, deadline, phase, &found, subscriptions, now_ms);
    size_t used = strlen(out->message);
    snprintf(out->message + used, sizeof out->message - used, "; %s", detail);
    return true;
}
