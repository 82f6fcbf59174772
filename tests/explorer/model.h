/* model.h: a small lockstep group around the real wave code: coordinator/wave.c and frontend/wave_view.c decide,
 * model engines obey, and messages wait in one FIFO queue per link. A state is plain bytes; model_next lists what can happen in
 * it, model_apply makes it happen. explorer.c walks all of it.
 *
 * What the model leaves out, and why that is honest:
 *  - time: a timer (the repeat) may fire whenever it is armed; silence may be noticed whenever the coordinator is down;
 *  - the 32 steps between agreements: the group may agree, or not yet, after any step;
 *  - outputs: a finished request is known to its frontend at once, since no wave rule looks at outputs;
 *  - reports without work, and a message equal to the one before it in its queue: neither changes anything;
 *  - messages that can never have an effect any more (a START at a wave that its engine has passed or runs at, a
 *    report at a wave that the coordinator has passed or believes to run at, ...) leave their queue at once;
 *  - between the ADD and the notice of one loop turn nothing else happens, unless a frontend may still die;
 *  - pausing a group that runs: vLLM lets it come to rest first, so a pause begins when no rank steps. */
#ifndef WG_TESTS_EXPLORER_MODEL_H
#define WG_TESTS_EXPLORER_MODEL_H

#include "coordinator/wave.h"
#include "frontend/wave_view.h"

#include <stdbool.h>
#include <stdint.h>

enum { RANKS_MAX = 3, FRONTENDS_MAX = 2, QUEUE_MAX = 16, EVENTS_MAX = 128 };

/* The five rules of design.md 4. Each can be switched off here, in what surrounds the wave code, never in the code. */
enum {
    RULE_EXCLUDE_NOBODY = 1 << 0, /* off: no START, repeats included, wakes the rank that asked */
    RULE_REPEAT = 1 << 1,         /* off: the timer never fires */
    RULE_EVIDENCE = 1 << 2,       /* off: reports are not shown to wave_on_report */
    RULE_WRITE_AHEAD = 1 << 3,    /* off: the file is never written */
    RULE_ASSUME_RUNNING = 1 << 4, /* off: after a restart the group runs if the file says so */
    RULES_ALL = (1 << 5) - 1,
};

typedef struct {
    uint8_t ranks;
    uint8_t frontends;
    uint8_t requests; /* submitted at most, by anybody to any rank */
    uint8_t frontend_deaths;
    uint8_t coordinator_deaths;
    uint8_t lost_starts;
    uint8_t
        unread; /* messages that a coordinator's death may lose after it had read and before it handled them */
    uint8_t pauses;
    uint8_t first_wave;  /* the group has come so far before we look */
    bool watchdog;       /* the ping that finds a partly woken group, once nothing is on its way any more */
    bool partial_routes; /* frontends do not reach every rank, so they cannot wake the group themselves */
    uint8_t rules;
} model_config_t;

typedef enum { ADD, ABORT, START, NOTICE, JOIN, REPORT, COMPLETE, START_WAVE, PUBLISH } kind_t;

typedef struct {
    uint8_t kind;
    uint8_t wave;
    uint8_t
        extra; /* ADD, ABORT: owner; START: 1 + the excluded rank, 0: nobody; PUBLISH: running; NOTICE: rank */
} message_t;

typedef struct {
    message_t messages[QUEUE_MAX];
    uint8_t count;
} queue_t;

enum { ORPHAN = FRONTENDS_MAX, OWNERS };

typedef struct {
    uint8_t wave;
    bool running;
    bool entered; /* in the collective: handles no message */
    uint8_t work[OWNERS];
    uint8_t reported; /* the count of requests in its last report */
} engine_t;

typedef struct {
    bool up;
    bool joined; /* since the coordinator's last start */
    uint8_t in_flight;
    uint8_t
        to_send; /* what the last step still demands: 0 nothing, 1 the notice, 2 + r: STARTs from rank r on */
    uint8_t send_rank;
    uint8_t dying; /* 1 + the link whose last messages may be lost now */
    wave_view_t view;
} frontend_t;

typedef struct {
    engine_t engines[RANKS_MAX];
    frontend_t frontends[FRONTENDS_MAX];
    wave_t wave;
    bool up;
    uint8_t exclude; /* with rule 1 off: 1 + the rank that asked last */
    uint8_t dying;
    uint8_t file_wave;
    bool file_running;
    bool held; /* a pause call is in force on every rank */
    uint8_t requests_left, frontend_deaths, coordinator_deaths, lost_starts, pauses, unread;
    queue_t to_engine[RANKS_MAX];               /* from the coordinator */
    queue_t from_engine[RANKS_MAX];             /* to the coordinator */
    queue_t to_frontend[FRONTENDS_MAX];         /* from the coordinator */
    queue_t from_frontend[FRONTENDS_MAX];       /* to the coordinator */
    queue_t requests[FRONTENDS_MAX][RANKS_MAX]; /* frontend to engine */
} model_t;

typedef enum {
    EVENT_SUBMIT, /* a: frontend, b: rank */
    EVENT_SEND_NEXT,
    EVENT_ENGINE_TAKES_BROADCAST,
    EVENT_ENGINE_TAKES_REQUEST, /* a: frontend, b: rank */
    EVENT_ENTER,
    EVENT_STEP,
    EVENT_STEP_FINISHES, /* a: rank, b: owner */
    EVENT_AGREE,
    EVENT_COORDINATOR_TAKES_REPORT,
    EVENT_COORDINATOR_TAKES_NOTICE,
    EVENT_FRONTEND_TAKES_PUBLISH,
    EVENT_REPEAT,
    EVENT_WATCHDOG,
    EVENT_FRONTEND_REPEAT,
    EVENT_SILENCE,
    EVENT_REJOIN,
    EVENT_HOLD,
    EVENT_RESUME,
    EVENT_LOSE_START,
    EVENT_FRONTEND_DIES,
    EVENT_FRONTEND_LOSES, /* the last message of the link named by `dying` */
    EVENT_FRONTEND_KEEPS, /* no more of that link */
    EVENT_FRONTEND_RESTARTS,
    EVENT_COORDINATOR_DIES,
    EVENT_COORDINATOR_LOSES,
    EVENT_COORDINATOR_KEEPS,
    EVENT_COORDINATOR_RESTARTS,
} event_kind_t;

typedef struct {
    uint8_t kind, a, b;
} event_t;

void model_init(model_t *model, const model_config_t *config);
unsigned model_next(const model_t *model, const model_config_t *config, event_t events[EVENTS_MAX]);
/* NULL, or what went wrong: a wave that went backwards, a queue that overflowed. */
const char *model_apply(model_t *model, const model_config_t *config, event_t event);

/* Does the event need a fault or a user? Such an event cannot be counted on to get a group out of trouble. */
bool model_is_help(event_t event);
/* Nothing runs, nothing waits, every accepted request has ended. */
bool model_is_quiet(const model_t *model, const model_config_t *config);

/* The same state with two frontends, or two ranks other than rank 0, in each other's place. */
void model_swap_frontends(model_t *model, const model_config_t *config);
void model_swap_ranks(model_t *model, const model_config_t *config);

/* A state as bytes, the same for equal states; returns how many. And back. */
enum { MODEL_BYTES_MAX = 1024 };
unsigned model_encode(const model_t *model, const model_config_t *config, uint8_t bytes[MODEL_BYTES_MAX]);
void model_decode(model_t *model, const model_config_t *config, const uint8_t *bytes);

void model_describe(const model_t *model, const model_config_t *config, event_t event, char *text,
                    unsigned size);

#endif
