/* rank_host.h: what all ranks of the process share, and how each reads a socket and fails.
 * Owned by the loop. Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_RANK_HOST_H
#define WG_TESTS_FAKE_ENGINE_RANK_HOST_H

#include "common/status.h"
#include "tests/fake_engine/engine_socket.h"
#include "tests/fake_engine/events.h"
#include "tests/fake_engine/options.h"
#include "tests/fake_engine/rank_output.h"
#include "tests/fake_engine/socket_set.h"

#define RANK_EXIT_SYSTEM 1
#define RANK_EXIT_FRAME 3 /* a frame came that a real rank would not survive */

typedef struct {
    const options_t *options;
    zloop_t *loop;
    socket_set_t *sockets;
    events_t events;
    rank_output_buffers_t buffers;
    struct collective *collective;  /* NULL until a rank turns out to be one of a lockstep group */
    void (*on_work)(void *context); /* some independent rank has a reason for a step */
    void *context;
    int exit_status; /* 0 until a failure ends the loop */
} rank_host_t;

/* Yields whether to go on: a failure is logged and sets the exit status. */
WG_MUST_CHECK bool rank_host_passed(rank_host_t *host, uint32_t rank, wg_status_t status,
                                    const wg_error_t *error);

typedef wg_status_t rank_message_fn(void *context, engine_message_t *message, wg_error_t *error);

/* Gives on_message one message after the other, until the socket is empty or others must get their turn, or
 * until one fails. on_message may close the socket and clear *socket. */
socket_result_t rank_host_read(rank_host_t *host, uint32_t rank, void **socket, rank_message_fn *on_message,
                               void *context);
/* The same until the socket is empty, or a flood has had its share; yields whether to go on. */
WG_MUST_CHECK bool rank_host_drain(rank_host_t *host, uint32_t rank, void **socket,
                                   rank_message_fn *on_message, void *context);

#endif
