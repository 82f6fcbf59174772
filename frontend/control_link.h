/* control_link.h: the frontend's end of the control link (wire_control.h): joins, beats once a second, and
 * passes on what the coordinator says of the ranks. Owned by its client. Tests:
 * tests/integration/test_failure.py */
#ifndef WG_FRONTEND_CONTROL_LINK_H
#define WG_FRONTEND_CONTROL_LINK_H

#include "common/config.h"
#include "common/faults.h"
#include "common/wire_control.h"

#include <czmq.h>

typedef struct control_link control_link_t;

typedef struct {
    /* The coordinator's word on one rank of this frontend, or of its lockstep group. */
    void (*on_rank)(void *context, const wire_control_entry_t *entry);
    /* The coordinator has been silent for CONTROL_LINK_SILENCE_MS, or is heard again. */
    void (*on_silent)(void *context, bool silent);
    /* Fills in the ranks that are READY with their responses (join), or all ranks with their requests in
     * flight. entries has room for every rank of the frontend. Returns how many were filled in. */
    uint32_t (*fill)(void *context, bool join, wire_control_entry_t *entries);
    /* The group's wave as far as it is known. */
    int64_t (*wave)(void *context);
} control_link_events_t;

#define CONTROL_LINK_BEAT_MS 1000
#define CONTROL_LINK_SILENCE_MS 3000

WG_MUST_CHECK wg_status_t control_link_new(control_link_t **out, zloop_t *loop, const wg_config_t *config,
                                           const config_frontend_t *frontend, faults_t *faults,
                                           const control_link_events_t *events, void *context,
                                           wg_error_t *error);
void control_link_destroy(control_link_t **link); /* accepts NULL, clears */

/* Something else was heard of the coordinator: a publish. */
void control_link_heard(control_link_t *link);

/* Why the coordinator refused this frontend, or NULL. */
const char *control_link_refusal(const control_link_t *link);

bool control_link_joined(const control_link_t *link);

#endif
