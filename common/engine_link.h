/* engine_link.h: one client's two sockets towards its ranks: the input ROUTER, on which engines register and
 * requests go down, and the output PULL. Frontends have one, and so has the coordinator (its client slot).
 *
 * It also knows which ranks can be reached. A route is up when a registration came over it or a probe went
 * out on it, and is lost when a probe finds nobody: PULL has no sender and monitor events carry no identity,
 * so both only trigger a sweep that asks the ROUTER about each rank (design.md 2). A rank that is watched is
 * probed until its route is up, which is how a restarted client finds engines that will never register again.
 *
 * Owned by the loop. Callbacks come from the loop only, never from inside a call of this module, and may call
 * it. Tests: tests/unit/engine_link_test.c */
#ifndef WG_COMMON_ENGINE_LINK_H
#define WG_COMMON_ENGINE_LINK_H

#include "common/config.h"
#include "common/faults.h"
#include "common/wire_request.h"

#include <czmq.h>

typedef struct engine_link engine_link_t;

typedef struct {
    /* A registration (protocol.md 4), not yet decoded. The route of the rank is up. */
    void (*on_registration)(void *context, uint32_t rank, wire_bytes_t payload);
    /* An EngineCoreOutputs message: frame 0, then the auxiliary frames. Valid during the call. False where it
     * could not be read, so that its outputs are lost: a cut of the rank whose connection it came over, if
     * that is known. */
    bool (*on_outputs)(void *context, const wire_bytes_t *frames, size_t count);
    /* The rank that such a message is from, or -1 where that cannot be told. Asked of the first over a
     * connection. */
    int64_t (*sender_of)(void *context, const wire_bytes_t *frames, size_t count);
    /* The rank lives, but what was on its way from or to it may be lost. Comes before anything that its next
     * connection brings. This and sender_of are NULL where nobody waits for outputs. */
    void (*on_cut)(void *context, uint32_t rank);
    /* The route of the rank came up or was lost. Before a loss all outputs that had arrived were delivered.
     */
    void (*on_route)(void *context, uint32_t rank, bool up);
} engine_link_events_t;

typedef struct {
    const config_endpoint_t *input;
    const config_endpoint_t *output;
    const uint32_t *ranks; /* ascending; must outlive the link */
    uint32_t rank_count;
    int64_t heartbeat_interval_ms;
    int64_t heartbeat_timeout_ms;
    int64_t max_output_bytes; /* of one frame; a larger one costs its sender the connection. 0: no limit */
    int send_hwm;             /* messages queued for one rank before engine_link_send refuses */
    faults_t *faults;
    const engine_link_events_t *events; /* must outlive the link */
    void *context;                      /* given to every callback */
} engine_link_options_t;

/* Binds both sockets. WG_E_SYSTEM names the address that could not be bound. */
WG_MUST_CHECK wg_status_t engine_link_new(engine_link_t **out, zloop_t *loop,
                                          const engine_link_options_t *options, wg_error_t *error);
void engine_link_destroy(engine_link_t **link); /* accepts NULL, clears */

/* Probe this rank in every sweep, although nothing was heard from it: somebody says that it is there. */
void engine_link_watch(engine_link_t *link, uint32_t rank);

/* WG_E_DISPATCHER_CLOSED where the rank has no route, or its queue is full. The payload is copied. */
WG_MUST_CHECK wg_status_t engine_link_send(engine_link_t *link, uint32_t rank, wire_request_type_t type,
                                           const void *payload, size_t size, wg_error_t *error);

/* Has an engine said within the last second that it is dying? A loss now is then very likely its. */
bool engine_link_death_reported(const engine_link_t *link);
uint64_t engine_link_sentinels(
    const engine_link_t *link); /* how many such words have come; anybody may send one */

bool engine_link_route_up(const engine_link_t *link, uint32_t rank);

/* Probes every route now and reports what changed by on_route. Not from inside a callback. */
void engine_link_sweep(engine_link_t *link);

#endif
