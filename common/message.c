#include "common/message.h"

static void close_parts(message_t *message)
{
    for (size_t i = 0; i < message->count; i++)
        zmq_msg_close(&message->parts[i]);
    message->count = 0;
}

static bool grow(message_t *message)
{
    size_t capacity = message->capacity ? 2 * message->capacity : 8;
    if (capacity > MESSAGE_FRAMES_MAX)
        return false;
    /* zmq_msg_t may hold its content inline, but nothing points into it before all parts are here */
    zmq_msg_t *parts = realloc(message->parts, capacity * sizeof *parts);
    if (!parts)
        return false;
    message->parts = parts;
    wire_bytes_t *frames = realloc(message->frames, capacity * sizeof *frames);
    if (!frames)
        return false;
    message->frames = frames;
    message->capacity = capacity;
    return true;
}

/* Keeps the part, or drops it and all later ones. */
static bool keep(message_t *message, zmq_msg_t *part)
{
    if (message->count == message->capacity && !grow(message))
        return false;
    zmq_msg_init(&message->parts[message->count]);
    zmq_msg_move(&message->parts[message->count], part);
    message->count++;
    return true;
}

bool message_receive(message_t *message, zsock_t *socket)
{
    void *handle = zsock_resolve(socket);
    bool kept = true;
    int more;
    close_parts(message);
    do {
        zmq_msg_t part;
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, handle, ZMQ_DONTWAIT) == -1) {
            zmq_msg_close(&part);
            close_parts(message);
            return false;
        }
        more = zmq_msg_more(&part);
        if (!more) /* a ROUTER makes the first frame itself */
            message->source = zmq_msg_get(&part, ZMQ_SRCFD);
        kept = kept && keep(message, &part);
        zmq_msg_close(&part);
    } while (more);
    if (!kept)
        close_parts(message);
    for (size_t i = 0; i < message->count; i++)
        message->frames[i] =
            (wire_bytes_t){zmq_msg_data(&message->parts[i]), zmq_msg_size(&message->parts[i])};
    return true;
}

void message_free(message_t *message)
{
    close_parts(message);
    free(message->parts);
    free(message->frames);
    *message = (message_t){0};
}

int message_send(zsock_t *socket, const wire_bytes_t *frames, size_t count)
{
    void *handle = zsock_resolve(socket);
    for (size_t i = 0; i < count; i++) {
        int flags = ZMQ_DONTWAIT | (i + 1 < count ? ZMQ_SNDMORE : 0);
        if (zmq_send(handle, frames[i].data, frames[i].size, flags) == -1)
            return -1; /* only the first frame can fail: the rest of a message follows its pipe */
    }
    return 0;
}
