#include "coordinator/engine_publisher.h"

#include "common/receiver.h"
#include "common/wire_request.h"

enum { MESSAGE_MAX = 1 << 16 };

struct engine_publisher {
    const wg_config_t *config;
    const rank_table_t *ranks;
    faults_t *faults;
    engine_publisher_started_fn *on_group_started;
    void *context;
    receiver_t *receiver;
    uint64_t subscriptions;
    bool waiting; /* somebody has subscribed since the last READY */
};

/* Subscriptions carry no identity, so who is there is known from the client slot, to which an engine connects
 * before it subscribes. Counting the subscriptions on top keeps READY from being sent between the two. */
static bool gate_is_open(const engine_publisher_t *self)
{
    if (!self->config->ranks.lockstep)
        return true;
    return self->subscriptions >= self->config->ranks.count &&
           rank_table_connected(self->ranks) == self->config->ranks.count;
}

static void release(engine_publisher_t *self)
{
    static const wire_bytes_t ready = {(const uint8_t *)"READY", 5};
    if (!self->waiting || !gate_is_open(self))
        return;
    if (message_send(receiver_socket(self->receiver), &ready, 1) != 0)
        return;
    self->waiting = false;
    if (self->config->ranks.lockstep &&
        rank_table_count_in(self->ranks, WG_RANK_HELLO) == self->config->ranks.count)
        self->on_group_started(self->context);
}

void engine_publisher_start(engine_publisher_t *publisher, int64_t wave)
{
    static const uint8_t type = WIRE_REQUEST_START_DP_WAVE;
    msgpack_sbuffer payload;
    msgpack_sbuffer_init(&payload);
    if (wire_start_encode(&payload, wave, NULL) == WG_OK) {
        const wire_bytes_t frames[] = {{&type, 1}, {(const uint8_t *)payload.data, payload.size}};
        (void)!message_send(receiver_socket(publisher->receiver), frames,
                            2); /* repeated while the group runs */
    }
    msgpack_sbuffer_destroy(&payload);
}

void engine_publisher_ranks_changed(engine_publisher_t *publisher)
{
    release(publisher);
}

uint64_t engine_publisher_subscriptions(const engine_publisher_t *publisher)
{
    return publisher->subscriptions;
}

static void on_message(void *context, const message_t *message)
{
    engine_publisher_t *self = context;
    wire_bytes_t frame = message->count == 1 ? message->frames[0] : (wire_bytes_t){NULL, 0};
    if (frame.size == 1 && frame.data[0] == 1) {
        self->subscriptions++;
        self->waiting = true;
        release(self);
    } else if (frame.size == 0 || frame.data[0] != 0) { /* 00: a subscription ended, as they do */
        wg_error_t error;
        WG_FAIL(&error, DECODE, "subscription", (size_t)0,
                "engines subscribe to everything and send nothing else");
        faults_report(self->faults, FAULTS_ENGINE_PUBLISH, "engine_publish", &error);
    }
}

wg_status_t engine_publisher_new(engine_publisher_t **out, zloop_t *loop, const wg_config_t *config,
                                 const rank_table_t *ranks, faults_t *faults,
                                 engine_publisher_started_fn *on_group_started, void *context,
                                 wg_error_t *error)
{
    engine_publisher_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return WG_FAIL(error, SYSTEM, "engine publisher", "out of memory");
    self->config = config;
    self->ranks = ranks;
    self->faults = faults;
    self->on_group_started = on_group_started;
    self->context = context;
    const socket_options_t xpub = {
        .type = ZMQ_XPUB,
        .verbose =
            true, /* else the second engine's subscription is swallowed as a duplicate (protocol.md 2) */
        .heartbeat_interval_ms = config->timeouts.heartbeat_interval_ms,
        .heartbeat_timeout_ms = config->timeouts.heartbeat_timeout_ms,
        .max_message_bytes = MESSAGE_MAX,
    };
    wg_status_t status = receiver_bind(&self->receiver, loop, &xpub, &config->coordinator.engine_publish,
                                       on_message, self, error);
    if (status == WG_OK)
        *out = self;
    else
        engine_publisher_destroy(&self);
    return status;
}

void engine_publisher_destroy(engine_publisher_t **publisher)
{
    engine_publisher_t *self = *publisher;
    if (!self)
        return;
    receiver_destroy(&self->receiver);
    free(self);
    *publisher = NULL;
}
