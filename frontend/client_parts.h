/* client_parts.h: the inside of a client_t, for client.c (ranks and links), client_admission.c (who may come
 * in), client_submit.c (the way in), client_requests.c (the way out, and the ends) and client_silence.c
 * (ranks from which nothing comes). */
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
#include "frontend/rank_silence.h"

/* One rank of the frontend. */
typedef struct {
    dispatcher_t *dispatcher;
    uint32_t client_index; /* of this frontend at this rank (rank_map.h) */
    uint32_t client_count; /* frontends that serve it */
    in_flight_t *aborting; /* ended, and the engine is to be told at the end of the turn */
    int64_t refused_ms;    /* when an ADD to it last failed, mostly for its full queue; 0: never */
    int64_t proof_call_id; /* an answer to this question or a later one came over the connections of now */
    int64_t ask_wait_ms;
    int64_t ask_due_ms;
    rank_silence_t silence;
} client_rank_t;

/* What client_submit has accepted. In by_id until it ends, then in client->ended until the turn does, for
 * callbacks up the stack may still hold it. */
struct client_request {
    wire_text_t id; /* belongs to the request */
    const client_events_t *events;
    void *user;
    bool has_logprobs; /* asked for; the same for the prompt's */
    bool has_prompt_logprobs;
    bool ended;
    uint32_t live;  /* choices that have not ended */
    uint32_t count; /* of choices */
    in_flight_t **choices;
    client_request_t *next;
};

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
    zhashx_t *by_id;         /* requests in flight by the client's id */
    client_request_t *ended; /* to be freed at the end of the turn */
    size_t in_flight;        /* choices, over all ranks */
    turn_t *turn;
    msgpack_sbuffer payload; /* of the ADD or ABORT that is being sent */
    bool leaving;            /* not ready, though requests are taken */
    bool draining;           /* they are not */
    int64_t published_ms;    /* 0: never */
    client_counters_t counters;
    orphans_t orphans;
    struct {
        int timer; /* -1: there is no limit */
    } silence;
    struct {
        int timer;
        int64_t last_call_id;
    } proof;
};

/* The rank's place in frontend->ranks, or -1. */
int64_t client_place(const client_t *client, uint32_t rank);

/* --- client_admission.c, for client_submit.c --- */

/* Draining, DuplicateRequestId, Overloaded, ...: of a request with so many choices. */
WG_MUST_CHECK wg_status_t client_check_admission(const client_t *client,
                                                 const client_submission_t *submission, size_t count,
                                                 wg_error_t *error);
/* For the choices of one prompt. */
WG_MUST_CHECK wg_status_t client_choose_rank(client_t *client, const client_submission_t *submission,
                                             uint32_t *place, wg_error_t *error);
/* *max_tokens: the submission's, or what fits. */
WG_MUST_CHECK wg_status_t client_check_lengths(const client_t *client, const client_submission_t *submission,
                                               const wire_prompt_t *prompt, int64_t *max_tokens,
                                               wg_error_t *error);

/* --- client_requests.c, for client_submit.c --- */

/* Room for so many choices. NULL without memory. */
WG_MUST_CHECK client_request_t *client_request_new(wire_text_t id, uint32_t count);
/* With its choices, which must be in no set or list any more. Accepts NULL. */
void client_request_free(client_request_t *request);
/* Takes the choice out of its dispatcher; with tell_engine an ABORT goes out at the end of the turn. */
void client_end_choice(client_t *client, in_flight_t *entry, bool tell_engine);
/* All its choices have ended: it is freed at the end of the turn. */
void client_retire_request(client_t *client, client_request_t *request);

/* --- client_silence.c, for client.c and client_requests.c --- */

void client_silence_open(client_t *client); /* before the links, whose callbacks use it */
void client_silence_close(client_t *client);
/* A sign of life of the rank at that place. */
void client_silence_heard(client_t *client, uint32_t place);

/* --- client_proof.c, for the others --- */

void client_proof_open(client_t *client); /* before the links */
void client_proof_close(client_t *client);
/* The connections of that rank are others than before: it gets nothing before it has answered over them. */
void client_prove(client_t *client, uint32_t place);
/* Its answer may come soon: the questions need not be rare. */
void client_hurry(client_t *client, uint32_t place);
/* Asks for a sign of life. */
void client_ask(client_t *client, uint32_t place);
/* Was a utility call of that id, which is not negative, ever made? */
bool client_asked(const client_t *client, int64_t call_id);
/* Such a call was answered. */
void client_answered(client_t *client, uint32_t place, int64_t call_id);

/* --- client.c, for the others --- */

/* Draws the conclusion from what is known of the rank now. If it was READY and is lost, what is in flight
 * there ends, and in a lockstep group everything. */
void client_settle(client_t *client, uint32_t place);

/* Ends what is in flight at a rank that has become silent, and in a lockstep group everything. */
void client_set_rank_silent(client_t *client, uint32_t place, bool silent);

/* --- client_requests.c, for client.c --- */

/* These three are engine_link's events. */
bool client_on_outputs(void *context, const wire_bytes_t *frames, size_t count);
int64_t client_sender_of(void *context, const wire_bytes_t *frames, size_t count);
void client_on_cut(void *context, uint32_t rank);
/* Ends everything in flight at that place. */
void client_end_rank(client_t *client, uint32_t place, client_cause_t cause, const wg_error_t *error);
/* Forgets everything in flight, without a word to anyone. */
void client_forget_requests(client_t *client);
/* The end of the loop turn: sends the ABORTs, frees what ended. */
void client_end_turn(void *context);

#endif
