/* rank_choice.h: which of the ready ranks gets the next request (protocol.md 9). Pure. Owned by its client.
 * Tests: tests/unit/rank_choice_test.c */
#ifndef WG_FRONTEND_RANK_CHOICE_H
#define WG_FRONTEND_RANK_CHOICE_H

#include "common/wire_publish.h"

#include <stddef.h>

/* What is known of one rank. */
typedef struct {
    bool ready;
    uint32_t client_count; /* frontends that serve it, this one included */
    size_t in_flight;      /* this frontend's own */
    bool has_load;         /* the coordinator's numbers are fresh enough to be believed */
    wire_load_t load;
} rank_choice_candidate_t;

/* Smallest is best. Without a load only the own requests count, so that an unknown rank is as good as an idle
 * one. A rank at which the only frontend has nothing in flight is idle, whatever its last report says. */
double rank_choice_score(const rank_choice_candidate_t *candidate);

/* The index of the best ready candidate, or -1 where none is ready. *turn rotates, so that ties spread; it
 * starts anywhere. */
int64_t rank_choice_pick(const rank_choice_candidate_t *candidates, uint32_t count, uint32_t *turn);

#endif
