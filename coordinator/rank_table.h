/* rank_table.h: every engine rank the cluster expects, and the state of each (design.md 2, protocol.md 3).
 *
 *   ABSENT --hello--> HELLO --ready--> READY --route lost--> LOST --hello--> HELLO
 *                       |                 ^                    |
 *                       +--route lost--> LOST                  +--route back, no hello since: READY again
 *   ABSENT --the route is up, and a frontend says so or it answers a call--> READY (after a restart of ours)
 *
 * Pure: no sockets, no clock. Owned by the coordinator's loop. Tests: tests/unit/rank_table_test.c */
#ifndef WG_COORDINATOR_RANK_TABLE_H
#define WG_COORDINATOR_RANK_TABLE_H

#include "common/engine_id.h"
#include "common/status.h"
#include "common/wire_control.h"
#include "common/wire_registration.h"

typedef struct rank_table rank_table_t;

typedef struct {
    wg_rank_state_t state;
    int64_t since_ms; /* when the state began, monotonic */
    bool registered;  /* its ready response has come, to the client slot or by way of a frontend */
    bool route_up;    /* the client slot reaches it */
    wire_registration_t registration;
    wire_bytes_t response; /* the ready response as it came; belongs to the table */
} rank_table_rank_t;

/* Called after each change of a rank's state. May read the table, not change it. */
typedef void rank_table_changed_fn(void *context, uint32_t rank, wg_rank_state_t before);

/* Every rank in [0, count) starts ABSENT. lockstep: parallel_config_hash must agree. *out is NULL on failure
 * (WG_E_SYSTEM, without memory). The caller destroys. */
WG_MUST_CHECK wg_status_t rank_table_new(rank_table_t **out, uint32_t count, bool lockstep,
                                         rank_table_changed_fn *on_changed, void *context, wg_error_t *error);
void rank_table_destroy(rank_table_t **table); /* accepts NULL, clears *table */

uint32_t rank_table_count(const rank_table_t *table);
uint32_t rank_table_count_in(const rank_table_t *table, wg_rank_state_t state);
/* Ranks whose engine is connected: it has registered, with us or with an earlier life of this coordinator. */
uint32_t rank_table_connected(const rank_table_t *table);
const rank_table_rank_t *rank_table_get(const rank_table_t *table, uint32_t rank); /* NULL outside */

/* The rank of an identity. WG_E_UNSUPPORTED_COORDINATOR_ENGINE_ID unless it has two bytes,
 * WG_E_UNEXPECTED_HANDSHAKE_IDENTITY outside [0, count). */
WG_MUST_CHECK wg_status_t rank_table_identify(const rank_table_t *table, wire_bytes_t identity,
                                              uint32_t *rank, wg_error_t *error);

/* WG_OK: the engine is to get its INIT. WG_E_UNEXPECTED_HANDSHAKE_MESSAGE where the rank's route is up: the
 * first engine stays, and the second is remembered, should the first turn out to be gone
 * (rank_table_waiting_hello). A HELLO in state HELLO is taken as a restart: libzmq lets nobody else use the
 * identity of a live connection. */
WG_MUST_CHECK wg_status_t rank_table_hello(rank_table_t *table, uint32_t rank, int64_t now_ms,
                                           wg_error_t *error);
/* An INIT was sent to an engine that is connected and whose HELLO has not come: it is in HELLO, too. */
void rank_table_offered(rank_table_t *table, uint32_t rank, int64_t now_ms);
/* Says whether a HELLO was refused while the rank was READY, and forgets it. */
WG_MUST_CHECK bool rank_table_waiting_hello(rank_table_t *table, uint32_t rank);

/* The engine's own READY. WG_E_UNEXPECTED_HANDSHAKE_MESSAGE unless the rank is in HELLO, or connected since
 * an earlier life of ours; or where its hash differs from that of the lockstep group's other ranks: then it
 * stays as it is. */
WG_MUST_CHECK wg_status_t rank_table_ready(rank_table_t *table, uint32_t rank, wire_text_t hash,
                                           int64_t now_ms, wg_error_t *error);

/* The engine's ready response came to the client slot. WG_E_DECODE where it is malformed, and then nothing
 * changes. A rank that was ABSENT is in HELLO now: it got its INIT from an earlier life of this coordinator.
 * If its READY has already come, which was refused then, it is READY. */
WG_MUST_CHECK wg_status_t rank_table_register(rank_table_t *table, uint32_t rank, wire_bytes_t response,
                                              int64_t now_ms, wg_error_t *error);

/* A frontend knows this of the rank. News are: READY for a rank that is ABSENT, and a response where there is
 * none. True where anything was. */
WG_MUST_CHECK bool rank_table_learn(rank_table_t *table, const wire_control_entry_t *known, int64_t now_ms);

/* The engine has answered a utility call, which none does before it is through the startup gate. Where its
 * route is up it is READY now, unless its own READY was refused, or is to come, since we have its HELLO. */
void rank_table_answered(rank_table_t *table, uint32_t rank, int64_t now_ms);

/* The connection that the HELLO came over has ended, and all that came over it was read. If the engine has
 * sent its READY, that is lost: an answer to a utility call must do then, unless it is the hash of a READY
 * before that was wrong. */
void rank_table_ready_lost(rank_table_t *table, uint32_t rank);

/* The client slot's route came up or was lost. */
void rank_table_route(rank_table_t *table, uint32_t rank, bool up, int64_t now_ms);
/* An engine in HELLO left before it had its INIT, or while it loaded. */
void rank_table_left(rank_table_t *table, uint32_t rank, int64_t now_ms);

#endif
