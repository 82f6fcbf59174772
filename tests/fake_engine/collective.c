#include "tests/fake_engine/collective.h"

#include "common/log.h"
#include "common/text_buffer.h"
#include "tests/fake_engine/collective_hub.h"

#include <errno.h>

#define NO_TIMER (-1)
#define BLOCKED_MS 200 /* a block that lasts longer is worth an event */

struct collective_seat {
    collective_t *collective;
    uint32_t rank;
    collective_release_fn *on_release;
    void *context;
    bool entered;
    bool told; /* that it is blocked in this step */
    int64_t entered_ms;
    int64_t wave;
};

struct collective {
    rank_host_t *host;
    uint64_t config_hash;
    collective_hub_t *hub; /* or else */
    collective_member_t *member;
    uint64_t step;
    lockstep_vote_t vote; /* of the seats that entered */
    uint32_t entered;
    int64_t entered_ms;   /* when the first of them did */
    bool asked;           /* the hub, in this step, and it has not answered */
    bool hub_is_silent;   /* it never has in this step */
    text_buffer_t missed; /* of this step: who is missing, as a list, or nobody so far */
    size_t watch_ms;
    int watch_timer; /* runs while a seat is in a step */
    uint32_t *missing;
    uint32_t seat_count;
    collective_seat_t seats[];
};

static const lockstep_vote_t no_votes = {.unfinished = false, .pausing = true};

/* --- a step that takes long --- */

static void append_rank(text_buffer_t *list, uint32_t rank)
{
    text_buffer_format(list, "%s%u", list->size > 0 ? "," : "", rank);
}

static void report(const collective_t *self)
{
    text_buffer_t ranks = {0};
    int64_t wave = 0;
    for (uint32_t i = 0; i < self->seat_count; i++) {
        if (!self->seats[i].entered)
            continue;
        append_rank(&ranks, self->seats[i].rank);
        wave = self->seats[i].wave;
    }
    log_error("collective_timeout wave=%lld step=%llu waited_ms=%zu ranks=[%.*s] waited_for=[%.*s]%s",
              (long long)wave, (unsigned long long)self->step, self->host->options->collective_timeout_ms,
              (int)ranks.size, ranks.data, (int)self->missed.size, self->missed.data,
              self->hub_is_silent ? " reason=\"the process of rank 0 does not answer\"" : "");
    text_buffer_free(&ranks);
}

/* Somebody is missing. */
static bool on_blocked(collective_t *self)
{
    int64_t now_ms = zclock_mono();
    for (uint32_t i = 0; i < self->seat_count; i++) {
        collective_seat_t *seat = &self->seats[i];
        if (!seat->entered || seat->told || now_ms - seat->entered_ms < BLOCKED_MS)
            continue;
        seat->told = true;
        events_wave(&self->host->events, "blocked", seat->rank, seat->wave, self->step);
    }
    if (now_ms - self->entered_ms < (int64_t)self->host->options->collective_timeout_ms)
        return true;
    report(self);
    self->host->exit_status = RANK_EXIT_COLLECTIVE;
    return false;
}

/* Nobody is missing where a step only takes its time (--step-ms). */
static bool on_missing(void *context, const uint32_t *ranks, uint32_t count)
{
    collective_t *self = context;
    self->asked = false;
    self->hub_is_silent = false;
    text_buffer_clear(&self->missed);
    for (uint32_t i = 0; i < count; i++)
        append_rank(&self->missed, ranks[i]);
    return self->entered == 0 || count == 0 || on_blocked(self);
}

/* An answer that it gave before still holds: its process may have come to the end of its own wait. */
static bool on_silence(collective_t *self, uint32_t own_missing)
{
    if (self->missed.size == 0) {
        self->hub_is_silent = true;
        for (uint32_t i = 0; i < own_missing; i++)
            append_rank(&self->missed, self->missing[i]);
        append_rank(&self->missed, 0);
    }
    return on_blocked(self);
}

static bool watch(collective_t *self)
{
    uint32_t count = 0;
    wg_error_t error;
    for (uint32_t i = 0; i < self->seat_count; i++) {
        if (!self->seats[i].entered)
            self->missing[count++] = self->seats[i].rank;
    }
    if (self->hub)
        return collective_hub_ask(self->hub, self->missing, count);
    if (self->asked && !on_silence(self, count))
        return false;
    self->asked = true;
    wg_status_t status = collective_member_ask(self->member, self->missing, count, &error);
    return rank_host_passed(self->host, self->seats[0].rank, status, &error);
}

static int on_watch(zloop_t *loop, int timer, void *argument)
{
    collective_t *self = argument;
    if (self->entered == 0) {
        zloop_timer_end(loop, timer);
        self->watch_timer = NO_TIMER;
        return 0;
    }
    bool is_long = zclock_mono() - self->entered_ms >= (int64_t)self->watch_ms;
    return !is_long || watch(self) ? 0 : -1;
}

/* --- a step --- */

static bool on_release(void *context, lockstep_vote_t result)
{
    collective_t *self = context;
    self->step++;
    self->entered = 0;
    self->vote = no_votes;
    self->asked = false;
    self->hub_is_silent = false;
    text_buffer_clear(&self->missed);
    for (uint32_t i = 0; i < self->seat_count; i++) {
        self->seats[i].entered = false;
        self->seats[i].told = false;
    }
    for (uint32_t i = 0; i < self->seat_count; i++) {
        if (!self->seats[i].on_release(self->seats[i].context, result))
            return false;
    }
    return true;
}

wg_status_t collective_enter(collective_seat_t *seat, int64_t wave, lockstep_vote_t vote, wg_error_t *error)
{
    collective_t *self = seat->collective;
    seat->entered = true;
    seat->entered_ms = zclock_mono();
    seat->wave = wave;
    if (self->entered++ == 0)
        self->entered_ms = seat->entered_ms;
    self->vote.unfinished = self->vote.unfinished || vote.unfinished;
    self->vote.pausing = self->vote.pausing && vote.pausing;
    if (self->watch_timer == NO_TIMER)
        self->watch_timer = zloop_timer(self->host->loop, self->watch_ms, 0, on_watch, self);
    if (self->entered < self->seat_count)
        return WG_OK;
    return self->hub ? collective_hub_enter(self->hub, self->vote, error)
                     : collective_member_enter(self->member, self->vote, error);
}

/* --- the group --- */

wg_status_t collective_take_seat(collective_t *collective, collective_seat_t **out, uint32_t rank,
                                 const engine_init_t *init, collective_release_fn *release, void *context,
                                 wg_error_t *error)
{
    *out = NULL;
    if (init->config_hash != collective->config_hash)
        return WG_FAIL(error, DECODE, "INIT", (size_t)0, "another rank here has a different parallel_config");
    for (uint32_t i = 0; i < collective->seat_count; i++) {
        collective_seat_t *seat = &collective->seats[i];
        if (seat->rank != rank)
            continue;
        seat->on_release = release;
        seat->context = context;
        *out = seat;
    }
    return *out ? WG_OK : WG_FAIL(error, SYSTEM, "joining the group", "not a rank of this process");
}

static size_t watch_interval(size_t timeout_ms)
{
    if (timeout_ms / 4 > BLOCKED_MS)
        return BLOCKED_MS;
    return timeout_ms > 4 ? timeout_ms / 4 : 1;
}

static wg_status_t meet(collective_t *self, const engine_init_t *init, wg_error_t *error)
{
    const options_t *options = self->host->options;
    const collective_handlers_t handlers = {on_release, on_missing, self};
    char address[128];
    const char *format = strchr(init->master_ip, ':') ? "tcp://[%s]:%lld" : "tcp://%s:%lld";
    int length = snprintf(address, sizeof address, format, init->master_ip, (long long)init->master_port);
    if (length < 0 || (size_t)length >= sizeof address)
        return WG_FAIL(error, DECODE, "INIT", (size_t)0, "data_parallel_master_ip is too long");
    if (options->ranks[options->rank_count - 1] >= init->data_parallel_size)
        return WG_FAIL(error, DECODE, "INIT", (size_t)0, "a rank of this process is not in the group");
    if (options->ranks[0] > 0)
        return collective_member_new(&self->member, self->host, address, &handlers, error);
    return collective_hub_new(&self->hub, self->host, address, (uint32_t)init->data_parallel_size, &handlers,
                              error);
}

wg_status_t collective_new(collective_t **out, rank_host_t *host, const engine_init_t *init,
                           wg_error_t *error)
{
    *out = NULL;
    uint32_t count = (uint32_t)host->options->rank_count;
    collective_t *self = calloc(1, sizeof *self + count * sizeof *self->seats);
    if (!self)
        return WG_FAIL(error, SYSTEM, "joining the group", strerror(errno));
    self->host = host;
    self->config_hash = init->config_hash;
    self->vote = no_votes;
    self->watch_ms = watch_interval(host->options->collective_timeout_ms);
    self->watch_timer = NO_TIMER;
    self->seat_count = count;
    for (uint32_t i = 0; i < count; i++)
        self->seats[i] = (collective_seat_t){.collective = self, .rank = host->options->ranks[i]};
    self->missing = calloc(count > 0 ? count : 1, sizeof *self->missing);
    wg_status_t status = WG_OK;
    if (!self->missing)
        status = WG_FAIL(error, SYSTEM, "joining the group", strerror(errno));
    if (status == WG_OK)
        status = meet(self, init, error);
    if (status != WG_OK)
        collective_destroy(&self);
    *out = self;
    return status;
}

void collective_destroy(collective_t **collective)
{
    collective_t *self = *collective;
    if (!self)
        return;
    collective_hub_destroy(&self->hub);
    collective_member_destroy(&self->member);
    text_buffer_free(&self->missed);
    free(self->missing);
    free(self);
    *collective = NULL;
}
