/* link_cuts.h: what tells that messages of a place may have been lost although its route is up: an output
 * connection that ended or was replaced, and connections that ended while this process was stopped. An engine
 * that dies loses its route, too, so all of it is judged after a sweep, when the losses that explain the ends
 * are known.
 *
 * Owned by its engine_link; places are those of its ranks. Tests: tests/unit/link_cuts_test.c,
 * engine_link_test.c */
#ifndef WG_COMMON_LINK_CUTS_H
#define WG_COMMON_LINK_CUTS_H

#include "common/status.h"

#include <stdint.h>

typedef struct link_cuts link_cuts_t;

/* stop_ms: how long we may be stopped before an engine may have given up our connection. NULL without memory.
 * The caller destroys. */
WG_MUST_CHECK link_cuts_t *link_cuts_new(uint32_t count, int64_t stop_ms, int64_t now_ms);
void link_cuts_destroy(link_cuts_t **cuts); /* accepts NULL, clears */

/* To be called regularly: if it was not for stop_ms, we were stopped. */
void link_cuts_awake(link_cuts_t *cuts, int64_t now_ms);

/* The place from which messages over this connection come. -1: nobody's yet, and if it is a place's,
 * link_cuts_moved is due. */
int64_t link_cuts_find(const link_cuts_t *cuts, int fd, bool *is_over); /* as output_paths_find */
/* A place's outputs come over this connection now. True where they came over another before: what was on its
 * way there is lost, though we may learn of that one's end much later. */
WG_MUST_CHECK bool link_cuts_moved(link_cuts_t *cuts, uint32_t place, int fd);

/* A connection of the input or the output socket has ended, as libzmq tells. An output connection whose
 * handshake failed was no engine's. */
void link_cuts_output_accepted(link_cuts_t *cuts, int fd); /* it has begun */
void link_cuts_input_ended(link_cuts_t *cuts, int64_t now_ms);
void link_cuts_output_ended(link_cuts_t *cuts, int fd, int64_t now_ms);
/* A route was lost: that explains the end of a connection of each kind. Of the output's we may learn some
 * time after it. */
void link_cuts_lost(link_cuts_t *cuts, uint32_t place, int64_t now_ms);

/* Why messages of a place whose route is up may be lost, or NULL: they are not. To be asked once for every
 * place, after all that has arrived was read; then link_cuts_settled. */
WG_MUST_CHECK const char *link_cuts_take(link_cuts_t *cuts, uint32_t place);
void link_cuts_settled(link_cuts_t *cuts);

#endif
