/* client_parts.h: the inside of a client_t, for client.c (ranks and links), client_submit.c (the way in) and
 * client_requests.c (the way out, and the ends).
 */
#ifndef WG_FRONTEND_CLIENT_PARTS_H
#define WG_FRONTEND_CLIENT_PARTS_H

#include "common/engine_link.h"
#include "common/turn.h"
#include "frontend/client.h"
#include "frontend/control_link.h"
#include "frontend/load_feed.h"
#include "frontend/lockstep.h"
#include "frontend/orphans.h"
#include "frontend/rank_choice.h"

/* One rank of the frontend. */
typedef struct {
    dispatcher_t *dispatcher;
    uint32_t client_index; /* of this frontend at this rank (rank_map.h) */
    uint32_t client_count; /* frontends that serve it */
    in_flight_t *aborting; /* ended, and the engine is to be told at the end of the turn */
} client_rank_t;

struct client {
    zloop_t *loop;
    const wg_config_t *config;
    const config_frontend_t *frontend;
    faults_t *faults;
    engine_link_t *link;
    control_link_t *control;
    lockstep_t *lockstep; /* NULL for independent ranks */
    int repeat_timer;
    load_feed_t *feed;                   /* NULL where the coordinator publishes nothing */
    client_rank_t *ranks;                /* beside frontend->ranks */
    rank_choice_candidate_t *candidates; /* the same; room for rank_choice_pick */
    uint32_t choice_turn;
    zhashx_t *by_id;    /* requests in flight by the client's id */
    in_flight_t *ended; /* to be freed at the end of the turn */
    turn_t *turn;
    msgpack_sbuffer payload; /* of the ADD or ABORT that is being sent */
    bool draining;
    int64_t published_ms; /* 0: never */
    client_counters_t counters;
    orphans_t orphans;
};

/* The rank's place in frontend->ranks, or -1. */
int64_t client_place(const client_t *client, uint32_t rank);

/* --- client_requests.c, for client.c --- */

int64_t client_on_outputs(void *context, const wire_bytes_t *frames, size_t count); /* engine_link's */
void client_on_outputs_cut(void *context, uint32_t rank);                           /* the same */
/* Ends everything in flight at that place. */
void client_end_rank(client_t *client, uint32_t place, client_cause_t cause, const wg_error_t *error);
/* The end of the loop turn: sends the ABORTs, frees what ended. */
void client_end_turn(void *context);

#endif
