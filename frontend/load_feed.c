#include "frontend/load_feed.h"

#include "common/receiver.h"
#include "common/wire_pack.h"

enum { MESSAGE_MAX = 1 << 24 };

struct load_feed {
    faults_t *faults;
    load_feed_fn *on_publish;
    void *context;
    receiver_t *receiver;
};

static void on_message(void *context, const message_t *message)
{
    load_feed_t *self = context;
    wire_publish_t publish;
    wg_error_t error;
    wg_status_t status;
    if (message->count != 1)
        status = WG_FAIL(&error, DECODE, "publish", (size_t)0, "not one frame");
    else
        status = wire_publish_decode(&publish, message->frames[0].data, message->frames[0].size, &error);
    if (status == WG_OK)
        self->on_publish(self->context, &publish);
    else
        faults_report(self->faults, FAULTS_FRONTEND_PUBLISH, "coordinator", &error);
}

wg_status_t load_feed_new(load_feed_t **out, zloop_t *loop, const wg_config_t *config, faults_t *faults,
                          load_feed_fn *on_publish, void *context, wg_error_t *error)
{
    static const wire_bytes_t everything = {(const uint8_t *)"\x01", 1};
    load_feed_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return WG_FAIL(error, SYSTEM, "load feed", "out of memory");
    *self = (load_feed_t){.faults = faults, .on_publish = on_publish, .context = context};
    const socket_options_t xsub = {
        .type = ZMQ_XSUB,
        .heartbeat_interval_ms = config->timeouts.heartbeat_interval_ms,
        .heartbeat_timeout_ms = config->timeouts.heartbeat_timeout_ms,
        .max_message_bytes = MESSAGE_MAX,
        .send_hwm = 1000,
    };
    wg_status_t status = receiver_connect(
        &self->receiver, loop, &xsub, config->coordinator.frontend_publish.address, on_message, self, error);
    if (status == WG_OK && message_send(receiver_socket(self->receiver), &everything, 1) != 0)
        status = WG_FAIL(error, SYSTEM, "subscription", zmq_strerror(zmq_errno()));
    if (status == WG_OK)
        *out = self;
    else
        load_feed_destroy(&self);
    return status;
}

void load_feed_destroy(load_feed_t **feed)
{
    load_feed_t *self = *feed;
    if (!self)
        return;
    receiver_destroy(&self->receiver);
    free(self);
    *feed = NULL;
}

bool load_feed_notice(load_feed_t *feed, uint32_t rank, int64_t wave)
{
    msgpack_sbuffer buffer;
    wire_pack_t pack;
    msgpack_sbuffer_init(&buffer);
    wire_pack_init(&pack, &buffer);
    wire_pack_array(&pack, 2);
    wire_pack_int(&pack, rank);
    wire_pack_int(&pack, wave);
    const wire_bytes_t frame = {(const uint8_t *)buffer.data, buffer.size};
    bool sent = wire_pack_finish(&pack, "first-request notice", NULL) == WG_OK &&
                message_send(receiver_socket(feed->receiver), &frame, 1) == 0;
    msgpack_sbuffer_destroy(&buffer);
    return sent;
}
