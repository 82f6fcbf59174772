#include "frontend/control_link.h"

#include "common/log.h"
#include "common/rank_map.h"
#include "common/receiver.h"

enum { MESSAGE_MAX = 1 << 26 };

struct control_link {
    zloop_t *loop;
    const wg_config_t *config;
    const config_frontend_t *frontend;
    faults_t *faults;
    const control_link_events_t *events;
    void *context;
    receiver_t *receiver;
    msgpack_sbuffer frame;
    wire_control_entry_t *entries; /* room for every rank of the frontend */
    int timer;
    bool joined;
    bool silent;
    char refusal[192];  /* why the coordinator will not have this frontend; empty: it will */
    int64_t ranks_seen; /* the number of the last RANKS */
    int64_t beat_ms;    /* when the timer was last here */
    int64_t heard_ms;
};

const char *control_link_refusal(const control_link_t *link)
{
    return link->refusal[0] ? link->refusal : NULL;
}

bool control_link_joined(const control_link_t *link)
{
    return link->joined;
}

static void set_joined(control_link_t *self, bool joined)
{
    if (joined == self->joined)
        return;
    self->joined = joined;
    log_notice("coordinator %s", joined ? "joined" : "lost");
}

static void set_silent(control_link_t *self, bool silent)
{
    if (silent == self->silent)
        return;
    self->silent = silent;
    self->events->on_silent(self->context, silent);
}

void control_link_heard(control_link_t *link)
{
    link->heard_ms = zclock_mono();
    set_silent(link, false);
}

static void report(control_link_t *self, bool join)
{
    uint32_t count = self->events->fill(self->context, join, self->entries);
    wg_status_t status;
    msgpack_sbuffer_clear(&self->frame);
    if (join)
        status = wire_control_encode_join(&self->frame, wg_config_fingerprint(self->config),
                                          self->events->wave(self->context), self->entries, count, NULL);
    else
        status = wire_control_encode_beat(&self->frame, self->entries, count, NULL);
    const wire_bytes_t frame = {(const uint8_t *)self->frame.data, self->frame.size};
    if (status == WG_OK)
        (void)!message_send(receiver_socket(self->receiver), &frame,
                            1); /* nobody there: the next beat will tell */
}

static int on_beat_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    control_link_t *self = context;
    int64_t now_ms = zclock_mono();
    if (now_ms - self->beat_ms > INT64_C(2) * CONTROL_LINK_BEAT_MS)
        self->heard_ms =
            now_ms; /* it is we who were stopped: what the coordinator said meanwhile is unread */
    self->beat_ms = now_ms;
    if (now_ms - self->heard_ms > CONTROL_LINK_SILENCE_MS) {
        set_joined(self, false);
        set_silent(self, self->refusal[0] == '\0'); /* who was refused is not to serve when nobody looks */
    }
    report(self, !self->joined);
    return 0;
}

static void handle_ranks(control_link_t *self, wire_control_t *control)
{
    wire_control_entry_t entry;
    set_joined(self, true);
    self->refusal[0] = '\0';
    self->ranks_seen = control->number;
    for (uint32_t i = 0; i < control->count; i++) {
        wire_control_next(control, &entry);
        if (entry.rank < self->config->ranks.count)
            self->events->on_rank(self->context, &entry);
    }
}

static void on_message(void *context, const message_t *message)
{
    control_link_t *self = context;
    wire_control_t control = {0};
    wg_error_t error;
    wg_status_t status;
    control_link_heard(self);
    if (message->count != 1)
        status = WG_FAIL(&error, DECODE, "control message", (size_t)0, "not one frame");
    else
        status = wire_control_decode(&control, message->frames[0].data, message->frames[0].size, &error);
    if (status == WG_OK && control.kind == WIRE_CONTROL_RANKS) {
        handle_ranks(self, &control);
    } else if (status == WG_OK && control.kind == WIRE_CONTROL_REJOIN) {
        report(self, true);
    } else if (status == WG_OK && control.kind == WIRE_CONTROL_HEARD && control.number != self->ranks_seen) {
        report(self, true); /* a RANKS was lost with a connection */
    } else if (status == WG_OK && control.kind == WIRE_CONTROL_REFUSED) {
        snprintf(self->refusal, sizeof self->refusal, "%.*s", (int)control.why.size, control.why.data);
        status = WG_FAIL(&error, CONTROL_CLOSED, self->refusal);
        set_joined(self, false);
    }
    if (status != WG_OK)
        faults_report(self->faults, FAULTS_CONTROL, "coordinator", &error);
}

wg_status_t control_link_new(control_link_t **out, zloop_t *loop, const wg_config_t *config,
                             const config_frontend_t *frontend, faults_t *faults,
                             const control_link_events_t *events, void *context, wg_error_t *error)
{
    wg_status_t status = WG_FAIL(error, SYSTEM, "control link", "out of memory");
    control_link_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return status;
    *self = (control_link_t){
        .loop = loop,
        .config = config,
        .frontend = frontend,
        .faults = faults,
        .events = events,
        .context = context,
        .timer = -1,
        .beat_ms = zclock_mono(),
        .heard_ms = zclock_mono(), /* a coordinator that starts together with us is not silent yet */
    };
    msgpack_sbuffer_init(&self->frame);
    const socket_options_t dealer = {
        .type = ZMQ_DEALER,
        .routing_id = frontend->name,
        .heartbeat_interval_ms = config->timeouts.heartbeat_interval_ms,
        .heartbeat_timeout_ms = config->timeouts.heartbeat_timeout_ms,
        .max_message_bytes = MESSAGE_MAX,
        .send_hwm = 2, /* while nobody is there, beats need not pile up */
    };
    self->entries = calloc(frontend->rank_count, sizeof *self->entries);
    if (self->entries)
        status = receiver_connect(&self->receiver, loop, &dealer, config->coordinator.control.address,
                                  on_message, self, error);
    if (status != WG_OK) {
        control_link_destroy(&self);
        return status;
    }
    self->timer = zloop_timer(loop, CONTROL_LINK_BEAT_MS, 0, on_beat_timer, self);
    report(self, true);
    *out = self;
    return WG_OK;
}

void control_link_destroy(control_link_t **link)
{
    control_link_t *self = *link;
    if (!self)
        return;
    if (self->timer != -1)
        zloop_timer_end(self->loop, self->timer);
    receiver_destroy(&self->receiver);
    msgpack_sbuffer_destroy(&self->frame);
    free(self->entries);
    free(self);
    *link = NULL;
}
