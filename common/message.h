/* message.h: one multipart ZMQ message as it came, without copies. Owned by whoever receives; reused for
 * one message after the other, so that receiving does not allocate in the long run. */
#ifndef WG_COMMON_MESSAGE_H
#define WG_COMMON_MESSAGE_H

#include "common/wire_reader.h"

#include <czmq.h>

/* A step of 1,024 requests with both kinds of logprobs has about 6,000 tensor frames; beyond this a sender
 * is not an engine, and the rest of its message is dropped as it comes. */
#define MESSAGE_FRAMES_MAX 65536u

typedef struct {
    wire_bytes_t *frames; /* valid until the next receive or message_free */
    size_t count;         /* 0 where the message had too many frames or there was no memory for them */
    int source;           /* the descriptor of the connection that it came over; -1 where there is none */
    zmq_msg_t *parts;
    size_t capacity;
} message_t; /* all zero is an empty one */

/* Takes the next message without blocking. False where there is none. */
WG_MUST_CHECK bool message_receive(message_t *message, zsock_t *socket);
void message_free(message_t *message);

/* Sends the frames as one message without blocking. 0, or -1 with errno: EAGAIN, EHOSTUNREACH (ROUTER). */
WG_MUST_CHECK int message_send(zsock_t *socket, const wire_bytes_t *frames, size_t count);

#endif
