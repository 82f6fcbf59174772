/* engine_socket.h: ZMQ sockets as an engine opens them (protocol.md 2): no high water marks, no security, no
 * heartbeats, ZMQ's own reconnects. Plain libzmq handles of czmq's context, for zsock_new asserts where the
 * descriptors run out. Owned by the loop. Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_ENGINE_SOCKET_H
#define WG_TESTS_FAKE_ENGINE_ENGINE_SOCKET_H

#include "common/engine_id.h"
#include "common/status.h"

#include <zmq.h>

/* Connects a socket of that ZMQ type. id: its routing identity, or NULL for none. linger_ms: how long it may
 * still try, once closed, to hand over what was sent on it. WG_E_SYSTEM names the address and the reason;
 * *out is then NULL. The caller closes. */
WG_MUST_CHECK wg_status_t engine_socket_open(void **out, int type, const wg_engine_id_t *id,
                                             const char *address, int linger_ms, wg_error_t *error);
/* The same, but binds, and has no identity and no linger. */
WG_MUST_CHECK wg_status_t engine_socket_listen(void **out, int type, const char *address, wg_error_t *error);
void engine_socket_close(void **socket); /* accepts NULL, clears *socket */

void engine_socket_set_linger(void *socket, int linger_ms);

/* One frame, copied. Never blocks, for there is no high water mark. */
WG_MUST_CHECK wg_status_t engine_socket_send(void *socket, const void *data, size_t size, wg_error_t *error);

typedef struct {
    zmq_msg_t frames[2]; /* the first two; empty where there are fewer */
    size_t count;        /* of all frames */
} engine_message_t;

/* False where no message is there. Else the caller closes it. Never blocks. */
WG_MUST_CHECK bool engine_socket_receive(void *socket, engine_message_t *out);
void engine_message_close(engine_message_t *message);

/* Does that frame hold exactly these bytes? */
bool engine_frame_is(zmq_msg_t *frame, const void *data, size_t size);

#endif
