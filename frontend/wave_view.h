/* wave_view.h: what a frontend knows of its lockstep group's waves, and what follows for a new request
 * (protocol.md 7). Pure. Owned by its client. Tests: tests/unit/wave_view_test.c, tests/explorer/ */
#ifndef WG_FRONTEND_WAVE_VIEW_H
#define WG_FRONTEND_WAVE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t wave; /* stamped into each ADD */
    bool known;   /* the coordinator has published at least once */
    bool running;
    bool announced; /* this paused interval's notice has gone out */
    bool silent;    /* the coordinator has been silent for long */
    bool woken;     /* silent, and this frontend has woken the group itself at this wave */
} wave_view_t;      /* all zero at the start */

typedef enum {
    WAVE_VIEW_SEND,     /* the group runs or is being woken: just send the ADD */
    WAVE_VIEW_ANNOUNCE, /* send it, and the first-request notice [rank, wave] in the same turn */
    WAVE_VIEW_WAKE,     /* send it, and START_DP_WAVE [wave, nil] to every rank */
    WAVE_VIEW_REFUSE,   /* nobody would wake the group */
} wave_view_step_t;

/* The coordinator's publish, which also ends its silence. */
void wave_view_on_publish(wave_view_t *view, int64_t wave, bool running);

/* A request is to be sent. all_routes: this frontend reaches every rank of the group. in_flight: its requests
 * there now. */
wave_view_step_t wave_view_on_request(wave_view_t *view, bool all_routes, size_t in_flight);

/* The coordinator has fallen silent. What was announced in this paused interval may never have been heard, so
 * the requests in flight are to be handled like new ones: WAVE_VIEW_SEND (the group runs), WAVE_VIEW_WAKE, or
 * WAVE_VIEW_REFUSE (abort them). */
wave_view_step_t wave_view_on_silence(wave_view_t *view, bool all_routes);
void wave_view_on_heard(wave_view_t *view);

/* Every wave_repeat_ms: is START_DP_WAVE to be repeated by this frontend? */
bool wave_view_on_repeat(const wave_view_t *view, size_t in_flight);

#endif
