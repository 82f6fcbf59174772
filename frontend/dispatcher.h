/* dispatcher.h: one rank, as a frontend sees it (design.md 2 and 3): its state, its load and the requests in
 * flight there. Pure: no sockets, no clock. Owned by its client. Tests: tests/unit/dispatcher_test.c
 *
 * A rank is READY when its route is up and the coordinator has said so, for an engine that has registered may
 * still wait at the startup gate. While the coordinator is silent the registration must do. Once READY, only
 * the loss of the route ends it; but while it has not answered over the connections of now it is in HELLO,
 * and where nothing comes over them any more it is SILENT until something does. */
#ifndef WG_FRONTEND_DISPATCHER_H
#define WG_FRONTEND_DISPATCHER_H

#include "common/wire_control.h"
#include "common/wire_publish.h"
#include "common/wire_registration.h"
#include "frontend/in_flight.h"

typedef struct dispatcher dispatcher_t;

WG_MUST_CHECK dispatcher_t *dispatcher_new(uint32_t rank); /* NULL without memory. The caller destroys. */
void dispatcher_destroy(dispatcher_t **dispatcher);        /* frees what is in flight; accepts NULL, clears */

/* --- what is known of the rank; dispatcher_settle draws the conclusion --- */

/* Down also forgets that the engine has registered: the next one on this route must. */
void dispatcher_set_route(dispatcher_t *dispatcher, bool up);
void dispatcher_set_registered(dispatcher_t *dispatcher);
/* What the coordinator says, and whether it has been silent for so long that nothing more is expected. */
void dispatcher_set_told(dispatcher_t *dispatcher, wg_rank_state_t state);
void dispatcher_set_silent(dispatcher_t *dispatcher, bool silent);
/* Whether the engine has answered over the connections that are there now. */
void dispatcher_set_answered(dispatcher_t *dispatcher, bool answered);
bool dispatcher_answered(const dispatcher_t *dispatcher);
/* Whether the rank itself has given no sign of life for too long (rank_silence.h). Not on the next route. */
void dispatcher_set_rank_silent(dispatcher_t *dispatcher, bool silent);
/* The engine's ready response, from itself or by way of the coordinator. WG_E_DECODE where it is malformed.
 */
WG_MUST_CHECK wg_status_t dispatcher_set_response(dispatcher_t *dispatcher, wire_bytes_t response,
                                                  wg_error_t *error);

/* True where the state has changed. The caller then ends what is in flight at a rank that is not READY any
 * more. */
WG_MUST_CHECK bool dispatcher_settle(dispatcher_t *dispatcher, int64_t now_ms);

uint32_t dispatcher_rank(const dispatcher_t *dispatcher);
wg_rank_state_t dispatcher_state(const dispatcher_t *dispatcher);
int64_t dispatcher_since_ms(const dispatcher_t *dispatcher); /* when the state began; 0: at the start */
const wire_registration_t *dispatcher_registration(const dispatcher_t *dispatcher);
wire_bytes_t dispatcher_response(const dispatcher_t *dispatcher); /* as it came; empty where unknown */

/* --- load --- */

/* What the coordinator publishes of the rank, changed or not. True where the engine must have reported anew:
 * the numbers differ, and are not the zeros that also stand for an engine that has reported nothing. */
bool dispatcher_set_load(dispatcher_t *dispatcher, const wire_load_t *load, int64_t now_ms);
/* The coordinator's last numbers, and when they came (0: never). */
const wire_load_t *dispatcher_load(const dispatcher_t *dispatcher, int64_t *at_ms);
/* When they were last seen to be new; 0: never. */
int64_t dispatcher_reported_ms(const dispatcher_t *dispatcher);

#define DISPATCHER_LOAD_FRESH_MS 10000
/* The same numbers for the choice of a rank, or NULL where they are older than that, however often they were
 * repeated: an engine whose requests were all dropped may never report again, and must not be shunned for
 * ever. If they are still true after all, the next request that goes there makes it report. */
const wire_load_t *dispatcher_fresh_load(const dispatcher_t *dispatcher, int64_t now_ms);

/* --- the in-flight set: entries by wire id --- */

/* Takes the entry. WG_E_SYSTEM without memory, and then the entry stays the caller's. */
WG_MUST_CHECK wg_status_t dispatcher_insert(dispatcher_t *dispatcher, in_flight_t *entry, wg_error_t *error);
in_flight_t *dispatcher_find(const dispatcher_t *dispatcher, wire_text_t wire_id); /* NULL where unknown */
void dispatcher_remove(dispatcher_t *dispatcher, in_flight_t *entry);              /* gives the entry back */
in_flight_t *dispatcher_first(const dispatcher_t *dispatcher); /* any, or NULL where nothing is in flight */
size_t dispatcher_in_flight(const dispatcher_t *dispatcher);

#endif
