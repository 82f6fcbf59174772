/* socket_set.h: many ZMQ sockets as one poller of the zloop. A zloop looks at each of its readers on every
 * turn (design.md 8: about 1 us each), and a thousand ranks have some thousands of sockets; here their
 * descriptors are in one epoll, so that a turn costs what is ready. Owned by the loop. Tests:
 * tests/integration
 *
 * A ZMQ descriptor tells of a change, not of messages that are left: after a socket was read until it is
 * empty, the descriptor becomes readable with the next message. So a handler that stops earlier must say so,
 * and is called again on the next turn; and a socket must not be sent on between being watched and being
 * read. */
#ifndef WG_TESTS_FAKE_ENGINE_SOCKET_SET_H
#define WG_TESTS_FAKE_ENGINE_SOCKET_SET_H

#include "common/status.h"

#include <czmq.h>

typedef struct socket_set socket_set_t;

typedef enum {
    SOCKET_EMPTY, /* read until nothing was left */
    SOCKET_MORE,  /* stopped earlier, so that others get their turn */
    SOCKET_STOP   /* ends the loop */
} socket_result_t;

/* Lives in its user, at a fixed address, until the set is destroyed. All zero: not watched. */
typedef struct socket_watch {
    void *socket; /* a ZMQ handle, or NULL: not watched */
    socket_result_t (*on_ready)(void *context);
    void *context;
    bool queued;
    struct socket_watch *next_queued;
} socket_watch_t;

/* *out is NULL on failure. The caller destroys, before the loop and the watched sockets. */
WG_MUST_CHECK wg_status_t socket_set_new(socket_set_t **out, zloop_t *loop, wg_error_t *error);
void socket_set_destroy(socket_set_t **set); /* accepts NULL, clears *set */

/* Also looks once for messages that came before. Fill in on_ready and context first. */
WG_MUST_CHECK wg_status_t socket_set_add(socket_set_t *set, socket_watch_t *watch, void *socket,
                                         wg_error_t *error);
/* Accepts one that is not watched; may be called from any handler. */
void socket_set_remove(socket_set_t *set, socket_watch_t *watch);

#endif
