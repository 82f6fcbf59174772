#include "frontend/client_parts.h"

#include "common/log.h"
#include "common/rank_map.h"

#include <stdlib.h>
#include <sys/random.h>

enum { LOADS_BELIEVED_MS = 10000 }; /* two of the coordinator's refreshes */

int64_t client_place(const client_t *client, uint32_t rank)
{
    return rank_map_find(client->frontend->ranks, client->frontend->rank_count, rank);
}

/* --- the state of the ranks --- */

/* A lockstep group fails as one: its collectives would hang. */
static void end_after_loss(client_t *self, uint32_t place, const wg_error_t *error)
{
    if (!self->lockstep) {
        client_end_rank(self, place, CLIENT_RANK_LOST, error);
        return;
    }
    for (uint32_t i = 0; i < self->frontend->rank_count; i++)
        client_end_rank(self, i, CLIENT_RANK_LOST, error);
}

void client_settle(client_t *client, uint32_t place)
{
    client_t *self = client;
    dispatcher_t *dispatcher = self->ranks[place].dispatcher;
    wg_rank_state_t before = dispatcher_state(dispatcher);
    if (!dispatcher_settle(dispatcher, zclock_mono()))
        return;
    uint32_t rank = dispatcher_rank(dispatcher);
    log_notice("rank changed rank=%u state=%s was=%s in_flight=%zu", rank,
               wg_rank_state_name(dispatcher_state(dispatcher)), wg_rank_state_name(before),
               dispatcher_in_flight(dispatcher));
    bool only_cut = dispatcher_state(dispatcher) == WG_RANK_HELLO && engine_link_route_up(self->link, rank);
    if (before != WG_RANK_READY || only_cut) /* what a cut concerns has ended already */
        return;
    wg_error_t error;
    char silence[96];
    snprintf(silence, sizeof silence, "nothing has come from it for %lld ms",
             (long long)self->config->timeouts.rank_silence_ms);
    if (dispatcher_state(dispatcher) == WG_RANK_SILENT)
        WG_FAIL(&error, DISPATCHER_CLOSED, rank, silence);
    else if (engine_link_death_reported(self->link))
        WG_FAIL(&error, ENGINE_CORE_DEAD, rank);
    else
        WG_FAIL(&error, DISPATCHER_CLOSED, rank, "its connection was lost");
    end_after_loss(self, place, &error);
}

void client_set_rank_silent(client_t *client, uint32_t place, bool silent)
{
    dispatcher_set_rank_silent(client->ranks[place].dispatcher, silent);
    client_settle(client, place);
}

static void learn_response(client_t *self, uint32_t place, wire_bytes_t response, faults_socket_t socket)
{
    wg_error_t error;
    dispatcher_t *dispatcher = self->ranks[place].dispatcher;
    if (dispatcher_set_response(dispatcher, response, &error) != WG_OK)
        faults_report_rank(self->faults, socket, dispatcher_rank(dispatcher), &error);
}

static void on_registration(void *context, uint32_t rank, wire_bytes_t payload)
{
    client_t *self = context;
    uint32_t place = (uint32_t)client_place(self, rank); /* the link knows no other ranks */
    learn_response(self, place, payload, FAULTS_INPUT);
    dispatcher_set_registered(self->ranks[place].dispatcher);
    client_silence_heard(self, place);
    client_settle(self, place);
}

static void on_route(void *context, uint32_t rank, bool up)
{
    client_t *self = context;
    uint32_t place = (uint32_t)client_place(self, rank);
    dispatcher_set_route(self->ranks[place].dispatcher, up);
    if (up)
        client_prove(self, place);
    client_settle(self, place);
}

static const engine_link_events_t link_events = {
    .on_registration = on_registration,
    .on_outputs = client_on_outputs,
    .sender_of = client_sender_of,
    .on_cut = client_on_cut,
    .on_route = on_route,
};

static void on_group_rank(client_t *self, uint32_t rank, wg_rank_state_t state)
{
    wg_error_t error;
    lockstep_set_rank(self->lockstep, rank, state);
    if (state != WG_RANK_LOST)
        return;
    WG_FAIL(&error, DISPATCHER_CLOSED, rank, "its lockstep group has lost it");
    end_after_loss(self, 0, &error);
}

static void on_rank(void *context, const wire_control_entry_t *entry)
{
    client_t *self = context;
    int64_t served = client_place(self, entry->rank);
    if (self->lockstep)
        on_group_rank(self, entry->rank, (wg_rank_state_t)entry->number);
    if (served < 0)
        return;
    uint32_t place = (uint32_t)served;
    dispatcher_t *dispatcher = self->ranks[place].dispatcher;
    dispatcher_set_told(dispatcher, (wg_rank_state_t)entry->number);
    if (entry->has_response)
        learn_response(self, place, entry->response, FAULTS_CONTROL);
    if (entry->number == WG_RANK_READY)
        client_hurry(self, place);
    if (entry->number == WG_RANK_READY)
        engine_link_watch(self->link, entry->rank);
    client_settle(self, place);
}

static void on_silent(void *context, bool silent)
{
    client_t *self = context;
    for (uint32_t place = 0; place < self->frontend->rank_count; place++) {
        dispatcher_set_silent(self->ranks[place].dispatcher, silent);
        client_settle(self, place);
    }
    if (!self->lockstep || lockstep_on_silent(self->lockstep, silent))
        return;
    wg_error_t error;
    WG_FAIL(&error, CONTROL_CLOSED, "the coordinator fell silent before it could wake the lockstep group");
    for (uint32_t place = 0; place < self->frontend->rank_count; place++)
        client_end_rank(self, place, CLIENT_UNANNOUNCED, &error);
}

static int64_t known_wave(void *context)
{
    const client_t *self = context;
    return self->lockstep ? lockstep_view(self->lockstep)->wave : 0;
}

static int on_repeat_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    client_t *self = context;
    lockstep_on_repeat(self->lockstep, client_in_flight(self));
    return 0;
}

static uint32_t fill(void *context, bool join, wire_control_entry_t *entries)
{
    const client_t *self = context;
    uint32_t count = 0;
    for (uint32_t place = 0; place < self->frontend->rank_count; place++) {
        const dispatcher_t *dispatcher = self->ranks[place].dispatcher;
        wire_bytes_t response = dispatcher_response(dispatcher);
        wg_rank_state_t state = dispatcher_state(dispatcher);
        if (state == WG_RANK_SILENT)
            state = WG_RANK_READY; /* the coordinator judges by the route */
        entries[count++] = (wire_control_entry_t){
            .rank = dispatcher_rank(dispatcher),
            .number = join ? (int64_t)state : (int64_t)dispatcher_in_flight(dispatcher),
            .has_response = join && response.data != NULL,
            .response = response,
        };
    }
    return count;
}

static const control_link_events_t control_events = {
    .on_rank = on_rank,
    .on_silent = on_silent,
    .fill = fill,
    .wave = known_wave,
};

static void on_publish(void *context, wire_publish_t *publish)
{
    client_t *self = context;
    int64_t now_ms = zclock_mono();
    uint32_t place = 0;
    self->published_ms = now_ms;
    control_link_heard(self->control);
    if (self->lockstep)
        lockstep_on_publish(self->lockstep, publish->current_wave, publish->engines_running);
    if (!publish->has_counts)
        return;
    for (uint32_t rank = 0; rank < publish->count && place < self->frontend->rank_count; rank++) {
        wire_load_t load;
        wire_publish_next(publish, &load);
        if (self->frontend->ranks[place] != rank)
            continue;
        if (dispatcher_set_load(self->ranks[place].dispatcher, &load, now_ms))
            client_silence_heard(self, place);
        place++;
    }
}

/* --- what others may ask --- */

const wire_load_t *client_load(const client_t *client, uint32_t index, int64_t now_ms)
{
    int64_t at_ms;
    const wire_load_t *load = dispatcher_load(client->ranks[index].dispatcher, &at_ms);
    return at_ms > 0 && now_ms - at_ms <= LOADS_BELIEVED_MS ? load : NULL;
}

const dispatcher_t *client_dispatcher(const client_t *client, uint32_t index)
{
    return client->ranks[index].dispatcher;
}

int64_t client_publish_age_ms(const client_t *client, int64_t now_ms)
{
    return client->published_ms > 0 ? now_ms - client->published_ms : -1;
}

const wave_view_t *client_wave_view(const client_t *client)
{
    return client->lockstep ? lockstep_view(client->lockstep) : NULL;
}

bool client_joined(const client_t *client)
{
    return control_link_joined(client->control);
}

bool client_is_degraded(const client_t *client, int64_t now_ms)
{
    int64_t age_ms = client_publish_age_ms(client, now_ms);
    return !client_joined(client) || (client->feed && (age_ms < 0 || age_ms > LOADS_BELIEVED_MS));
}

int64_t client_max_model_len(const client_t *client)
{
    int64_t smallest = WIRE_UNKNOWN;
    for (uint32_t place = 0; place < client->frontend->rank_count; place++) {
        const dispatcher_t *dispatcher = client->ranks[place].dispatcher;
        int64_t length = dispatcher_registration(dispatcher)->max_model_len;
        if (dispatcher_state(dispatcher) != WG_RANK_READY || length == WIRE_UNKNOWN)
            continue;
        if (smallest == WIRE_UNKNOWN || length < smallest)
            smallest = length;
    }
    return smallest;
}

size_t client_in_flight(const client_t *client)
{
    return client->in_flight;
}

client_counters_t client_counters(const client_t *client)
{
    client_counters_t counters = client->counters;
    counters.death_sentinels = engine_link_sentinels(client->link);
    return counters;
}

const char *client_cause_name(client_cause_t cause)
{
    static const char *const names[CLIENT_CAUSE_COUNT] = {
        [CLIENT_STOP] = "stop",
        [CLIENT_LENGTH] = "length",
        [CLIENT_REPETITION] = "repetition",
        [CLIENT_ABORT] = "abort",
        [CLIENT_ERROR] = "error",
        [CLIENT_STREAM_CLOSED] = "stream_closed",
        [CLIENT_DECODE] = "decode",
        [CLIENT_RANK_LOST] = "rank_lost",
        [CLIENT_UNANNOUNCED] = "unannounced",
        [CLIENT_DRAINING] = "draining",
        [CLIENT_GONE] = "client_gone",
        [CLIENT_SLOW_CONSUMER] = "slow_consumer",
        [CLIENT_DEADLINE] = "deadline",
    };
    return names[cause];
}

/* --- birth and death --- */

static bool new_ranks(client_t *self)
{
    const config_frontend_t *frontend = self->frontend;
    self->ranks = calloc(frontend->rank_count, sizeof *self->ranks);
    self->candidates = calloc(frontend->rank_count, sizeof *self->candidates);
    if (!self->ranks || !self->candidates)
        return false;
    for (uint32_t place = 0; place < frontend->rank_count; place++) {
        client_rank_t *rank = &self->ranks[place];
        rank->dispatcher = dispatcher_new(frontend->ranks[place]);
        rank->client_count =
            rank_map_client_count(self->config, frontend->ranks[place]) - 1; /* but the slot */
        if (!rank->dispatcher ||
            !rank_map_client_index(self->config, frontend, frontend->ranks[place], &rank->client_index))
            return false;
    }
    return true;
}

static wg_status_t open_lockstep(client_t *self, wg_error_t *error)
{
    self->lockstep = lockstep_new(self->config, self->frontend, self->link, self->feed);
    if (!self->lockstep)
        return WG_FAIL(error, SYSTEM, "lockstep group", "out of memory");
    self->repeat_timer =
        zloop_timer(self->loop, (size_t)self->config->timeouts.wave_repeat_ms, 0, on_repeat_timer, self);
    return WG_OK;
}

static wg_status_t open_links(client_t *self, wg_error_t *error)
{
    const wg_config_t *config = self->config;
    const engine_link_options_t options = {
        .input = &self->frontend->input,
        .output = &self->frontend->output,
        .ranks = self->frontend->ranks,
        .rank_count = self->frontend->rank_count,
        .heartbeat_interval_ms = config->timeouts.heartbeat_interval_ms,
        .heartbeat_timeout_ms = config->timeouts.heartbeat_timeout_ms,
        .max_output_bytes = config->limits.max_output_bytes,
        /* an ADD, and later an ABORT, for each request that may be in flight, of three frames each */
        .send_hwm = (int)(6 * config->limits.max_in_flight + 1000),
        .faults = self->faults,
        .events = &link_events,
        .context = self,
    };
    wg_status_t status = engine_link_new(&self->link, self->loop, &options, error);
    if (status == WG_OK && config->coordinator.frontend_publish.address[0])
        status = load_feed_new(&self->feed, self->loop, config, self->faults, on_publish, self, error);
    if (status == WG_OK && config->ranks.lockstep)
        status = open_lockstep(self, error);
    if (status == WG_OK)
        status = control_link_new(&self->control, self->loop, config, self->frontend, self->faults,
                                  &control_events, self, error);
    return status;
}

wg_status_t client_new(client_t **out, zloop_t *loop, const wg_config_t *config,
                       const config_frontend_t *frontend, faults_t *faults, wg_error_t *error)
{
    wg_status_t status = WG_FAIL(error, SYSTEM, "engine client", "out of memory");
    client_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return status;
    self->loop = loop;
    self->config = config;
    self->frontend = frontend;
    self->faults = faults;
    self->repeat_timer = -1;
    msgpack_sbuffer_init(&self->payload);
    self->by_id = in_flight_set_new();
    self->turn = turn_new(loop, client_end_turn, self);
    /* ranks that several frontends serve would all get each frontend's first request, began they all at 0 */
    if (getrandom(&self->choice_turn, sizeof self->choice_turn, 0) != sizeof self->choice_turn)
        self->choice_turn = 0;
    self->proof.timer = -1;
    client_silence_open(self);
    client_proof_open(self);
    if (self->by_id && self->turn && new_ranks(self))
        status = open_links(self, error);
    if (status == WG_OK)
        *out = self;
    else
        client_destroy(&self);
    return status;
}

void client_destroy(client_t **client)
{
    client_t *self = *client;
    if (!self)
        return;
    if (self->repeat_timer != -1)
        zloop_timer_end(self->loop, self->repeat_timer);
    client_silence_close(self);
    client_proof_close(self);
    control_link_destroy(&self->control);
    lockstep_destroy(&self->lockstep);
    load_feed_destroy(&self->feed);
    if (self->link)
        client_end_turn(self); /* ABORTs that are still due */
    engine_link_destroy(&self->link);
    turn_destroy(&self->turn);
    client_forget_requests(self);
    for (uint32_t place = 0; self->ranks && place < self->frontend->rank_count; place++)
        dispatcher_destroy(&self->ranks[place].dispatcher);
    zhashx_destroy(&self->by_id);
    msgpack_sbuffer_destroy(&self->payload);
    free(self->ranks);
    free(self->candidates);
    free(self);
    *client = NULL;
}
