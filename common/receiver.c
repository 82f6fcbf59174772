#include "common/receiver.h"

enum { MESSAGES_PER_TURN = 64 };

struct receiver {
    zloop_t *loop;
    zsock_t *socket;
    receiver_fn *on_message;
    void *context;
    message_t message;
};

size_t receiver_drain(receiver_t *receiver, size_t most)
{
    size_t count = 0;
    while (count < most && message_receive(&receiver->message, receiver->socket)) {
        receiver->on_message(receiver->context, &receiver->message);
        count++;
    }
    return count;
}

static int on_readable(zloop_t *loop, zsock_t *socket, void *context)
{
    (void)loop;
    (void)socket;
    receiver_drain(context, MESSAGES_PER_TURN);
    return 0;
}

/* Takes the socket, also where it fails. */
static wg_status_t receiver_new(receiver_t **out, zloop_t *loop, zsock_t *socket, receiver_fn *on_message,
                                void *context, wg_error_t *error)
{
    receiver_t *self = malloc(sizeof *self);
    if (self)
        *self = (receiver_t){.loop = loop, .socket = socket, .on_message = on_message, .context = context};
    if (!self || zloop_reader(loop, socket, on_readable, self) != 0) {
        zsock_destroy(&socket);
        free(self);
        return WG_FAIL(error, SYSTEM, "receiver", "out of memory");
    }
    *out = self;
    return WG_OK;
}

wg_status_t receiver_bind(receiver_t **out, zloop_t *loop, const socket_options_t *options,
                          const config_endpoint_t *endpoint, receiver_fn *on_message, void *context,
                          wg_error_t *error)
{
    zsock_t *socket;
    *out = NULL;
    wg_status_t status = socket_bind(&socket, options, endpoint, error);
    return status == WG_OK ? receiver_new(out, loop, socket, on_message, context, error) : status;
}

wg_status_t receiver_connect(receiver_t **out, zloop_t *loop, const socket_options_t *options,
                             const char *address, receiver_fn *on_message, void *context, wg_error_t *error)
{
    zsock_t *socket;
    *out = NULL;
    wg_status_t status = socket_connect(&socket, options, address, error);
    return status == WG_OK ? receiver_new(out, loop, socket, on_message, context, error) : status;
}

void receiver_destroy(receiver_t **receiver)
{
    receiver_t *self = *receiver;
    if (!self)
        return;
    zloop_reader_end(self->loop, self->socket);
    zsock_destroy(&self->socket);
    message_free(&self->message);
    free(self);
    *receiver = NULL;
}

zsock_t *receiver_socket(const receiver_t *receiver)
{
    return receiver->socket;
}
