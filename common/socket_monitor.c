#include "common/socket_monitor.h"

#include <errno.h>
#include <stdlib.h>

struct socket_monitor {
    zloop_t *loop;
    const receiver_t *receiver;
    zsock_t *events; /* a PAIR */
    socket_monitor_fn *on_event;
    void *context;
    message_t message;
};

void socket_monitor_read(socket_monitor_t *monitor)
{
    while (message_receive(&monitor->message, monitor->events)) {
        uint16_t event;
        uint32_t value;
        const wire_bytes_t frame =
            monitor->message.count > 0 ? monitor->message.frames[0] : (wire_bytes_t){NULL, 0};
        if (frame.size < sizeof event + sizeof value)
            continue;
        memcpy(&event, frame.data, sizeof event);
        memcpy(&value, frame.data + sizeof event, sizeof value);
        monitor->on_event(monitor->context, event, (int)value);
    }
}

static int on_readable(zloop_t *loop, zsock_t *socket, void *context)
{
    (void)loop;
    (void)socket;
    socket_monitor_read(context);
    return 0;
}

static bool open_pair(socket_monitor_t *self, int events)
{
    static unsigned monitors; /* libzmq frees the name of an endpoint some time after it was closed */
    char address[64];
    snprintf(address, sizeof address, "inproc://monitor-%u", ++monitors);
    if (zmq_socket_monitor(zsock_resolve(receiver_socket(self->receiver)), address, events) != 0)
        return false;
    self->events = zsock_new(ZMQ_PAIR);
    return self->events && zmq_connect(zsock_resolve(self->events), address) == 0 &&
           zloop_reader(self->loop, self->events, on_readable, self) == 0;
}

wg_status_t socket_monitor_new(socket_monitor_t **out, zloop_t *loop, const receiver_t *receiver, int events,
                               socket_monitor_fn *on_event, void *context, wg_error_t *error)
{
    socket_monitor_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return WG_FAIL(error, SYSTEM, "socket monitor", "out of memory");
    *self = (socket_monitor_t){.loop = loop, .receiver = receiver, .on_event = on_event, .context = context};
    if (!open_pair(self, events)) {
        wg_status_t status = WG_FAIL(error, SYSTEM, "socket monitor", zmq_strerror(errno));
        socket_monitor_destroy(&self);
        return status;
    }
    *out = self;
    return WG_OK;
}

void socket_monitor_destroy(socket_monitor_t **monitor)
{
    socket_monitor_t *self = *monitor;
    if (!self)
        return;
    zmq_socket_monitor(zsock_resolve(receiver_socket(self->receiver)), NULL, 0);
    if (self->events) {
        zloop_reader_end(self->loop, self->events);
        zsock_destroy(&self->events);
    }
    message_free(&self->message);
    free(self);
    *monitor = NULL;
}
