/* generation_parts.h: the inside of a generation, for generation_start.c (the way in), generation.c (the way
 * out) and generation_clock.c (what happens when nothing happens). */
#ifndef WG_FRONTEND_GENERATION_PARTS_H
#define WG_FRONTEND_GENERATION_PARTS_H

#include "frontend/generation.h"

#include <sys/queue.h>

#define RANK_HEADER "X-data-parallel-rank"
#define ID_HEADER "X-Request-Id"

typedef struct generation {
    generations_t *all;
    const generation_route_t *route;
    http_exchange_t *exchange;
    client_request_t *request;
    char id[REQUEST_ID_MAX + 1];
    char rank[8]; /* empty: the choices are on several */
    answer_t answer;
    bool stream;
    bool include_usage;
    bool begun; /* the head of the stream is out */
    text_buffer_t event;
    int64_t deadline_ms; /* how long it may take; 0: for ever */
    int64_t due_ms;      /* when that will be over, monotonic */
    int64_t written_ms;  /* when the stream was last written to, or the request came */
    bool is_timed;       /* in all->timed */
    LIST_ENTRY(generation) timed;
} generation_t;

struct generations {
    zloop_t *loop;
    client_t *client;
    const wg_config_t *config;
    LIST_HEAD(, generation) timed; /* those that a deadline or the keep-alive looks at */
    int timer;                     /* runs while there are any; else -1 */
};

/* --- generation.c --- */

extern const client_events_t generation_events;
void generation_watch(generation_t *generation); /* the client's leaving, and room for more of the stream */
void generation_respond_error(generation_t *generation, const wg_error_t *error);
void generation_free(generation_t *generation);
/* The deadline is over. Frees it. */
void generation_expire(generation_t *generation);
/* A comment, which opens the stream where nothing was sent yet. */
void generation_keep_alive(generation_t *generation, int64_t now_ms);

/* --- generation_clock.c --- */

void generation_clock_add(generation_t *generation); /* where it needs one */
void generation_clock_remove(generation_t *generation);

#endif
