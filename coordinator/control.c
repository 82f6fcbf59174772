#include "coordinator/control.h"

#include "common/log.h"
#include "common/rank_map.h"
#include "common/receiver.h"

#include <string.h>

enum { MESSAGE_MAX = 1 << 26, LOOK_MS = 1000 };

typedef struct {
    const config_frontend_t *config;
    bool joined;
    int64_t last_beat_ms;
    int64_t ranks_sent; /* RANKS messages since the start, delivered or not */
    int64_t *in_flight; /* beside config->ranks */
} peer_t;

struct control {
    const wg_config_t *config;
    const rank_table_t *ranks;
    faults_t *faults;
    const control_events_t *events;
    void *context;
    receiver_t *receiver;
    msgpack_sbuffer frame;
    peer_t *peers; /* beside config->frontends */
    zloop_t *loop;
    int timer;
    int64_t looked_ms;
};

static bool is_connected(const peer_t *peer, int64_t now_ms)
{
    return peer->joined && now_ms - peer->last_beat_ms <= CONTROL_SILENCE_MS;
}

/* Sends self->frame. A frontend that is gone or does not read learns the state when it joins again. */
static void send_frame(control_t *self, wire_bytes_t identity)
{
    const wire_bytes_t frames[] = {identity, {(const uint8_t *)self->frame.data, self->frame.size}};
    (void)!message_send(receiver_socket(self->receiver), frames, 2);
}

static void send_word(control_t *self, wire_bytes_t identity, wire_control_kind_t kind, const char *why)
{
    msgpack_sbuffer_clear(&self->frame);
    if (wire_control_encode_word(&self->frame, kind, why, NULL) == WG_OK)
        send_frame(self, identity);
}

static wire_control_entry_t entry_of(const control_t *self, uint32_t rank)
{
    const rank_table_rank_t *state = rank_table_get(self->ranks, rank);
    return (wire_control_entry_t){
        .rank = rank,
        .number = state->state,
        .has_response = state->registered,
        .response = state->response,
    };
}

static void send_ranks(control_t *self, peer_t *peer, const wire_control_entry_t *entries, uint32_t count)
{
    const char *name = peer->config->name;
    msgpack_sbuffer_clear(&self->frame);
    if (wire_control_encode_ranks(&self->frame, ++peer->ranks_sent, entries, count, NULL) == WG_OK)
        send_frame(self, (wire_bytes_t){(const uint8_t *)name, strlen(name)});
}

/* A lockstep group fails as one, so each frontend must know of every rank. */
static bool concerns(const control_t *self, const peer_t *peer, uint32_t rank)
{
    return self->config->ranks.lockstep || rank_map_serves(peer->config, rank);
}

static void send_all_ranks(control_t *self, peer_t *peer)
{
    uint32_t count = 0;
    wire_control_entry_t *entries = calloc(self->config->ranks.count, sizeof *entries);
    if (!entries)
        return;
    for (uint32_t rank = 0; rank < self->config->ranks.count; rank++) {
        if (concerns(self, peer, rank))
            entries[count++] = entry_of(self, rank);
    }
    send_ranks(self, peer, entries, count);
    free(entries);
}

void control_rank_changed(control_t *control, uint32_t rank)
{
    wire_control_entry_t entry = entry_of(control, rank);
    for (uint32_t i = 0; i < control->config->frontend_count; i++) {
        peer_t *peer = &control->peers[i];
        if (peer->joined && concerns(control, peer, rank))
            send_ranks(control, peer, &entry, 1);
    }
}

static peer_t *peer_of(const control_t *self, wire_bytes_t identity)
{
    for (uint32_t i = 0; i < self->config->frontend_count; i++) {
        const char *name = self->config->frontends[i].name;
        if (identity.size > 0 && strlen(name) == identity.size &&
            memcmp(name, identity.data, identity.size) == 0)
            return &self->peers[i];
    }
    return NULL;
}

static wg_status_t handle_join(control_t *self, wire_bytes_t identity, peer_t *peer, wire_control_t *join,
                               wg_error_t *error)
{
    wire_control_entry_t entry;
    const char *refusal = NULL;
    if (join->version != WIRE_CONTROL_VERSION)
        refusal = "the frontend is of another version than the coordinator";
    else if ((uint64_t)join->fingerprint != wg_config_fingerprint(self->config))
        refusal =
            "the frontend's configuration file differs from the coordinator's; use the same file everywhere";
    if (refusal) {
        send_word(self, identity, WIRE_CONTROL_REFUSED, refusal);
        return WG_FAIL(error, CONTROL_CLOSED, refusal);
    }
    if (!peer->joined)
        log_notice("frontend joined name=%s", peer->config->name);
    peer->joined = true;
    peer->last_beat_ms = zclock_mono();
    for (uint32_t i = 0; i < join->count; i++) {
        wire_control_next(join, &entry);
        if (rank_map_serves(peer->config, entry.rank))
            self->events->on_learned_rank(self->context, &entry);
    }
    self->events->on_learned_wave(self->context, join->wave);
    send_all_ranks(self, peer);
    return WG_OK;
}

static wg_status_t handle_beat(control_t *self, wire_bytes_t identity, peer_t *peer, wire_control_t *beat)
{
    wire_control_entry_t entry;
    if (!peer->joined) { /* we were restarted, or it was */
        send_word(self, identity, WIRE_CONTROL_REJOIN, NULL);
        return WG_OK;
    }
    peer->last_beat_ms = zclock_mono();
    for (uint32_t i = 0; i < beat->count; i++) {
        wire_control_next(beat, &entry);
        int64_t place = rank_map_find(peer->config->ranks, peer->config->rank_count, entry.rank);
        if (place >= 0)
            peer->in_flight[place] = entry.number;
    }
    msgpack_sbuffer_clear(&self->frame);
    if (wire_control_encode_heard(&self->frame, peer->ranks_sent, NULL) == WG_OK)
        send_frame(self, identity);
    return WG_OK;
}

static wg_status_t handle_message(control_t *self, wire_bytes_t identity, const message_t *message,
                                  wg_error_t *error)
{
    wire_control_t control = {0};
    peer_t *peer = peer_of(self, identity);
    if (!peer)
        return WG_FAIL(error, CONTROL_CLOSED, "no frontend of that name is in the configuration");
    if (message->count != 2)
        return WG_FAIL(error, DECODE, "control message", (size_t)0, "not one frame");
    wg_status_t status =
        wire_control_decode(&control, message->frames[1].data, message->frames[1].size, error);
    if (status != WG_OK)
        return status;
    if (control.kind == WIRE_CONTROL_JOIN)
        return handle_join(self, identity, peer, &control, error);
    if (control.kind == WIRE_CONTROL_BEAT)
        return handle_beat(self, identity, peer, &control);
    return WG_FAIL(error, DECODE, "control message", (size_t)0, "a message for frontends");
}

static void on_message(void *context, const message_t *message)
{
    control_t *self = context;
    wg_error_t error;
    wire_bytes_t identity = message->count > 0 ? message->frames[0] : (wire_bytes_t){NULL, 0};
    if (handle_message(self, identity, message, &error) != WG_OK) {
        char text[LOG_TEXT_SIZE];
        faults_report(self->faults, FAULTS_CONTROL,
                      log_text(text, (const char *)identity.data, identity.size), &error);
    }
}

/* A frontend that died says nothing; one that was only stopped joins again with its next beat. */
static int on_look_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    control_t *self = context;
    int64_t now_ms = zclock_mono();
    bool stopped = now_ms - self->looked_ms > INT64_C(2) * LOOK_MS; /* it was we, and the beats are unread */
    self->looked_ms = now_ms;
    for (uint32_t i = 0; !stopped && i < self->config->frontend_count; i++) {
        peer_t *peer = &self->peers[i];
        if (!peer->joined || is_connected(peer, now_ms))
            continue;
        peer->joined = false;
        log_warning("frontend gone name=%s silent_ms=%lld", peer->config->name,
                    (long long)(now_ms - peer->last_beat_ms));
    }
    return 0;
}

int64_t control_in_flight(const control_t *control, uint32_t rank, int64_t now_ms)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < control->config->frontend_count; i++) {
        const peer_t *peer = &control->peers[i];
        int64_t place = rank_map_find(peer->config->ranks, peer->config->rank_count, rank);
        if (place >= 0 && is_connected(peer, now_ms))
            sum += peer->in_flight[place];
    }
    return sum;
}

control_frontend_t control_frontend(const control_t *control, uint32_t index, int64_t now_ms)
{
    const peer_t *peer = &control->peers[index];
    return (control_frontend_t){.connected = is_connected(peer, now_ms), .last_beat_ms = peer->last_beat_ms};
}

static bool new_peers(control_t *self)
{
    const wg_config_t *config = self->config;
    self->peers = calloc(config->frontend_count, sizeof *self->peers);
    for (uint32_t i = 0; self->peers && i < config->frontend_count; i++) {
        self->peers[i].config = &config->frontends[i];
        self->peers[i].in_flight = calloc(config->frontends[i].rank_count, sizeof(int64_t));
        if (!self->peers[i].in_flight)
            return false;
    }
    return self->peers != NULL;
}

wg_status_t control_new(control_t **out, zloop_t *loop, const wg_config_t *config, const rank_table_t *ranks,
                        faults_t *faults, const control_events_t *events, void *context, wg_error_t *error)
{
    control_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return WG_FAIL(error, SYSTEM, "control link", "out of memory");
    *self = (control_t){
        .config = config,
        .ranks = ranks,
        .faults = faults,
        .events = events,
        .context = context,
        .loop = loop,
        .timer = -1,
        .looked_ms = zclock_mono(),
    };
    msgpack_sbuffer_init(&self->frame);
    const socket_options_t router = {
        .type = ZMQ_ROUTER,
        .mandatory = true,
        .handover = true, /* a restarted frontend has the same name */
        .heartbeat_interval_ms = config->timeouts.heartbeat_interval_ms,
        .heartbeat_timeout_ms = config->timeouts.heartbeat_timeout_ms,
        .max_message_bytes = MESSAGE_MAX,
        .send_hwm = 100000,
    };
    wg_status_t status = WG_FAIL(error, SYSTEM, "control link", "out of memory");
    if (new_peers(self))
        status = receiver_bind(&self->receiver, loop, &router, &config->coordinator.control, on_message, self,
                               error);
    if (status != WG_OK) {
        control_destroy(&self);
        return status;
    }
    self->timer = zloop_timer(loop, LOOK_MS, 0, on_look_timer, self);
    *out = self;
    return WG_OK;
}

void control_destroy(control_t **control)
{
    control_t *self = *control;
    if (!self)
        return;
    if (self->timer != -1)
        zloop_timer_end(self->loop, self->timer);
    receiver_destroy(&self->receiver);
    for (uint32_t i = 0; self->peers && i < self->config->frontend_count; i++)
        free(self->peers[i].in_flight);
    free(self->peers);
    msgpack_sbuffer_destroy(&self->frame);
    free(self);
    *control = NULL;
}
