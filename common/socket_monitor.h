/* socket_monitor.h: connections that come to a bound socket, and go. Told in the loop, by libzmq's I/O
 * thread, which is often ahead of the socket itself: what an event says may not be true of the socket yet.
 * Owned by the loop. */
#ifndef WG_COMMON_SOCKET_MONITOR_H
#define WG_COMMON_SOCKET_MONITOR_H

#include "common/receiver.h"

typedef struct socket_monitor socket_monitor_t;

/* event: one of ZMQ_EVENT_*. value: what libzmq says with it, of most the descriptor of the connection. */
typedef void socket_monitor_fn(void *context, int event, int value);

/* events: ZMQ_EVENT_*, or-ed. WG_E_SYSTEM. The receiver must outlive the monitor. */
WG_MUST_CHECK wg_status_t socket_monitor_new(socket_monitor_t **out, zloop_t *loop,
                                             const receiver_t *receiver, int events,
                                             socket_monitor_fn *on_event, void *context, wg_error_t *error);
/* Tells the events that are there now, and need not wait for their turn in the loop. */
void socket_monitor_read(socket_monitor_t *monitor);
void socket_monitor_destroy(socket_monitor_t **monitor); /* accepts NULL, clears */

#endif
