/* receiver.h: a socket in the loop, with one callback a message. Per loop turn it handles a bounded number of
 * messages: one that read until its socket is empty would starve the timers (design.md 8). Owned by the loop.
 */
#ifndef WG_COMMON_RECEIVER_H
#define WG_COMMON_RECEIVER_H

#include "common/message.h"
#include "common/socket.h"

typedef struct receiver receiver_t;

/* The message is valid during the call. It has no frames where there were too many (message.h). */
typedef void receiver_fn(void *context, const message_t *message);

/* socket_bind and socket_connect say how they fail. *out is NULL then. */
WG_MUST_CHECK wg_status_t receiver_bind(receiver_t **out, zloop_t *loop, const socket_options_t *options,
                                        const config_endpoint_t *endpoint, receiver_fn *on_message,
                                        void *context, wg_error_t *error);
WG_MUST_CHECK wg_status_t receiver_connect(receiver_t **out, zloop_t *loop, const socket_options_t *options,
                                           const char *address, receiver_fn *on_message, void *context,
                                           wg_error_t *error);
void receiver_destroy(receiver_t **receiver); /* closes the socket; accepts NULL, clears */

zsock_t *receiver_socket(const receiver_t *receiver); /* to send on; belongs to the receiver */

/* Handles what is waiting now, at most so many. Returns how many. Not from inside its own callback. */
size_t receiver_drain(receiver_t *receiver, size_t most);

#endif
