#include "tests/fake_engine/rank_lockstep.h"

#include "tests/fake_engine/collective.h"
#include "tests/fake_engine/lockstep.h"

#include <errno.h>

#define PAUSE_CALLS_MAX 16 /* that wait for their answers at once, on one rank */

struct rank_lockstep {
    rank_host_t *host;
    uint32_t rank;
    engine_t *engine;
    rank_output_t *output;
    rank_sockets_t sockets;
    collective_seat_t *seat;
    lockstep_t state;
    bool stepping;  /* since wave_start; it reads its sockets only between steps */
    bool scheduled; /* the engine had a reason for the present step, which is no mere dummy batch */
    struct {
        uint32_t client_index;
        int64_t call_id;
    } pause_calls[PAUSE_CALLS_MAX];
    size_t pause_call_count;
};

static void tell(rank_lockstep_t *self, const char *event)
{
    events_wave(&self->host->events, event, self->rank, self->state.wave, self->state.step);
}

static wg_status_t send_start_wave(rank_lockstep_t *self, wg_error_t *error)
{
    tell(self, "start_wave");
    return rank_output_send_wave(self->output, ENGINE_START_WAVE, self->state.wave, error);
}

/* --- messages --- */

wg_status_t rank_lockstep_add(rank_lockstep_t *lockstep, int64_t request_wave, wg_error_t *error)
{
    return lockstep_add(&lockstep->state, request_wave) ? send_start_wave(lockstep, error) : WG_OK;
}

void rank_lockstep_start(rank_lockstep_t *lockstep, const engine_wave_t *start)
{
    lockstep_start(&lockstep->state, lockstep->rank, start);
}

static void abort_all(rank_lockstep_t *self)
{
    size_t count;
    engine_abort_all(self->engine);
    const engine_output_t *outputs = engine_outputs(self->engine, &count);
    for (size_t i = 0; i < count; i++)
        events_finish(&self->host->events, self->rank, &outputs[i]);
    if (self->host->options->pause_silent)
        engine_clear_outputs(self->engine);
}

/* NULL, or why not. */
static const char *begin_pause(rank_lockstep_t *self, const engine_call_t *call)
{
    engine_pause_mode_t mode;
    wg_error_t error;
    if (engine_decode_pause(&mode, call->args, &error) != WG_OK)
        return "Call to pause_scheduler method failed: wrong arguments";
    if (self->pause_call_count == PAUSE_CALLS_MAX)
        return "Call to pause_scheduler method failed: too many of them wait already";
    if (mode == ENGINE_PAUSE_ABORT)
        abort_all(self);
    engine_hold(self->engine, mode == ENGINE_PAUSE_KEEP ? ENGINE_HOLD_ALL : ENGINE_HOLD_WAITING);
    lockstep_pause(&self->state);
    self->pause_calls[self->pause_call_count].client_index = call->client_index;
    self->pause_calls[self->pause_call_count].call_id = call->call_id;
    self->pause_call_count++;
    return NULL;
}

static wg_status_t resume(rank_lockstep_t *self, const char **failure, wg_error_t *error)
{
    bool was_held = self->state.pause == LOCKSTEP_HELD;
    if (!lockstep_resume(&self->state)) {
        *failure = "Call to resume_scheduler method failed: a pause is still in flight";
        return WG_OK;
    }
    if (!was_held)
        return WG_OK;
    tell(self, "resumed");
    engine_hold(self->engine, ENGINE_HOLD_NONE);
    if (!engine_unfinished(self->engine))
        return WG_OK;
    self->state.running = true;
    return send_start_wave(self, error);
}

wg_status_t rank_lockstep_call(rank_lockstep_t *lockstep, const engine_call_t *call, wg_error_t *error)
{
    wg_status_t status = WG_OK;
    engine_reply_t reply = {.call_id = call->call_id, .method = call->method};
    if (wire_text_is(call->method, "pause_scheduler")) {
        reply.failure = begin_pause(lockstep, call);
        if (!reply.failure)
            return WG_OK; /* answer_pauses does */
    } else if (wire_text_is(call->method, "resume_scheduler")) {
        status = resume(lockstep, &reply.failure, error);
    }
    reply.paused = lockstep->state.pause != LOCKSTEP_OPEN;
    return status == WG_OK ? rank_output_reply(lockstep->output, call->client_index, &reply, error) : status;
}

static wg_status_t answer_pauses(rank_lockstep_t *self, wg_error_t *error)
{
    static const char method[] = "pause_scheduler";
    wg_status_t status = WG_OK;
    for (size_t i = 0; status == WG_OK && i < self->pause_call_count; i++) {
        const engine_reply_t reply = {.call_id = self->pause_calls[i].call_id,
                                      .method = {method, sizeof method - 1}};
        status = rank_output_reply(self->output, self->pause_calls[i].client_index, &reply, error);
    }
    self->pause_call_count = 0;
    return status;
}

/* --- steps --- */

static bool wants_step(const rank_lockstep_t *self)
{
    return self->state.running || engine_unfinished(self->engine);
}

static wg_status_t send_counts(rank_lockstep_t *self, wg_error_t *error)
{
    rank_output_stamp(self->output, self->state.wave, self->state.step);
    return rank_output_send_counts(self->output, self->engine, error);
}

static wg_status_t send_step(rank_lockstep_t *self, wg_error_t *error)
{
    rank_output_stamp(self->output, self->state.wave, self->state.step);
    wg_status_t status =
        rank_output_send_step(self->output, self->engine, self->host->options->engine.vocab_size, error);
    events_finished(&self->host->events, self->rank, self->engine);
    engine_clear_outputs(self->engine);
    return status;
}

static wg_status_t enter(rank_lockstep_t *self, wg_error_t *error)
{
    if (!self->stepping)
        tell(self, "wave_start");
    self->stepping = true;
    self->scheduled = engine_busy(self->engine);
    engine_step(self->engine);
    const lockstep_vote_t vote = {.unfinished = engine_unfinished(self->engine),
                                  .pausing = self->state.pause == LOCKSTEP_PAUSING};
    return collective_enter(self->seat, self->state.wave, vote, error);
}

/* What is left to do once there is no reason for a step with the others: a real scheduler that has seen a
 * request end does one more step for it, with nothing in it. */
static wg_status_t settle(rank_lockstep_t *self, wg_error_t *error)
{
    wg_status_t status = WG_OK;
    if (engine_busy(self->engine)) {
        engine_step(self->engine);
        status = send_step(self, error);
    }
    return status == WG_OK ? answer_pauses(self, error) : status;
}

/* The sockets are not watched. */
static bool between_steps(rank_lockstep_t *self)
{
    wg_error_t error;
    if (!self->sockets.read(self->sockets.context))
        return false;
    wg_status_t status = send_counts(self, &error);
    if (status == WG_OK && wants_step(self)) {
        status = enter(self, &error);
    } else if (status == WG_OK) {
        self->stepping = false;
        status = settle(self, &error);
        if (status == WG_OK)
            status = self->sockets.watch(self->sockets.context, &error);
    }
    return rank_host_passed(self->host, self->rank, status, &error);
}

bool rank_lockstep_served(rank_lockstep_t *lockstep)
{
    wg_error_t error;
    if (!wants_step(lockstep)) {
        wg_status_t status = send_counts(lockstep, &error);
        if (status == WG_OK)
            status = settle(lockstep, &error);
        return rank_host_passed(lockstep->host, lockstep->rank, status, &error);
    }
    lockstep->sockets.ignore(lockstep->sockets.context);
    return between_steps(lockstep);
}

static wg_status_t end_wave(rank_lockstep_t *self, int64_t wave, wg_error_t *error)
{
    wg_status_t status = WG_OK;
    if (self->rank == 0) {
        status = rank_output_send_wave(self->output, ENGINE_WAVE_COMPLETE, wave, error);
        events_wave(&self->host->events, "wave_complete", self->rank, wave, self->state.step);
    }
    events_wave(&self->host->events, "paused", self->rank, wave, self->state.step);
    self->stepping = false;
    return status;
}

static bool on_release(void *context, lockstep_vote_t result)
{
    rank_lockstep_t *self = context;
    wg_error_t error;
    wg_status_t status = self->scheduled ? send_step(self, &error) : WG_OK;
    if (status == WG_OK)
        status = send_counts(self, &error); /* still with the number of the step that is just done */
    int64_t wave = self->state.wave;
    bool was_held = self->state.pause == LOCKSTEP_HELD;
    bool ended = lockstep_stepped(&self->state, result);
    if (self->state.pause == LOCKSTEP_HELD && !was_held)
        tell(self, "held");
    if (status == WG_OK && ended)
        status = end_wave(self, wave, &error);
    return rank_host_passed(self->host, self->rank, status, &error) && between_steps(self);
}

/* --- from beginning to end --- */

wg_status_t rank_lockstep_new(rank_lockstep_t **out, rank_host_t *host, uint32_t rank,
                              const engine_init_t *init, engine_t *engine, rank_output_t *output,
                              const rank_sockets_t *sockets, wg_error_t *error)
{
    *out = NULL;
    rank_lockstep_t *self = calloc(1, sizeof *self);
    if (!self)
        return WG_FAIL(error, SYSTEM, "joining the group", strerror(errno));
    self->host = host;
    self->rank = rank;
    self->engine = engine;
    self->output = output;
    self->sockets = *sockets;
    rank_output_stamp(output, 0, 0);
    wg_status_t status = WG_OK;
    if (!host->collective)
        status = collective_new(&host->collective, host, init, error);
    if (status == WG_OK)
        status = collective_take_seat(host->collective, &self->seat, rank, init, on_release, self, error);
    if (status != WG_OK)
        rank_lockstep_destroy(&self);
    *out = self;
    return status;
}

void rank_lockstep_destroy(rank_lockstep_t **lockstep)
{
    free(*lockstep);
    *lockstep = NULL;
}
