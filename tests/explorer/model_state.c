/* States as bytes, symmetries, and words for events. */
#include "tests/explorer/model.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    uint8_t *bytes; /* written to, or NULL */
    const uint8_t *source;
    unsigned at;
} tape_t;

/* One function for both directions, so that they cannot disagree. */
static void byte(tape_t *tape, uint8_t *value)
{
    if (tape->bytes)
        tape->bytes[tape->at] = *value;
    else
        *value = tape->source[tape->at];
    tape->at++;
}

static void flag(tape_t *tape, bool *value)
{
    uint8_t number = *value;
    byte(tape, &number);
    *value = number != 0;
}

static void wave(tape_t *tape, int64_t *value)
{
    uint8_t number = (uint8_t)*value;
    byte(tape, &number);
    *value = number;
}

static void queue(tape_t *tape, queue_t *value)
{
    byte(tape, &value->count);
    for (unsigned i = 0; i < value->count; i++) {
        byte(tape, &value->messages[i].kind);
        byte(tape, &value->messages[i].wave);
        byte(tape, &value->messages[i].extra);
    }
}

static void pass(tape_t *tape, model_t *model, const model_config_t *config)
{
    for (unsigned r = 0; r < config->ranks; r++) {
        engine_t *engine = &model->engines[r];
        byte(tape, &engine->wave);
        flag(tape, &engine->running);
        flag(tape, &engine->entered);
        byte(tape, &engine->reported);
        for (unsigned owner = 0; owner < OWNERS; owner++)
            byte(tape, &engine->work[owner]);
        queue(tape, &model->to_engine[r]);
        queue(tape, &model->from_engine[r]);
    }
    for (unsigned f = 0; f < config->frontends; f++) {
        frontend_t *frontend = &model->frontends[f];
        flag(tape, &frontend->up);
        flag(tape, &frontend->joined);
        byte(tape, &frontend->in_flight);
        byte(tape, &frontend->to_send);
        byte(tape, &frontend->send_rank);
        byte(tape, &frontend->dying);
        wave(tape, &frontend->view.wave);
        flag(tape, &frontend->view.known);
        flag(tape, &frontend->view.running);
        flag(tape, &frontend->view.announced);
        flag(tape, &frontend->view.silent);
        flag(tape, &frontend->view.woken);
        queue(tape, &model->to_frontend[f]);
        queue(tape, &model->from_frontend[f]);
        for (unsigned r = 0; r < config->ranks; r++)
            queue(tape, &model->requests[f][r]);
    }
    wave(tape, &model->wave.current_wave);
    flag(tape, &model->wave.running);
    flag(tape, &model->wave.observed);
    flag(tape, &model->wave.assumed);
    flag(tape, &model->up);
    byte(tape, &model->exclude);
    byte(tape, &model->dying);
    byte(tape, &model->file_wave);
    flag(tape, &model->file_running);
    flag(tape, &model->held);
    byte(tape, &model->requests_left);
    byte(tape, &model->frontend_deaths);
    byte(tape, &model->coordinator_deaths);
    byte(tape, &model->lost_starts);
    byte(tape, &model->pauses);
    byte(tape, &model->unread);
}

unsigned model_encode(const model_t *model, const model_config_t *config, uint8_t bytes[MODEL_BYTES_MAX])
{
    model_t copy = *model;
    tape_t tape = {bytes, NULL, 0};
    copy.wave.observed = false; /* what is shown to people decides nothing */
    pass(&tape, &copy, config);
    return tape.at;
}

void model_decode(model_t *model, const model_config_t *config, const uint8_t *bytes)
{
    tape_t tape = {NULL, bytes, 0};
    memset(model, 0, sizeof *model);
    pass(&tape, model, config);
}

#define SWAP(type, a, b)                                                                                     \
    do {                                                                                                     \
        type swapped = (a);                                                                                  \
        (a) = (b);                                                                                           \
        (b) = swapped;                                                                                       \
    } while (0)

void model_swap_frontends(model_t *model, const model_config_t *config)
{
    SWAP(frontend_t, model->frontends[0], model->frontends[1]);
    SWAP(queue_t, model->to_frontend[0], model->to_frontend[1]);
    SWAP(queue_t, model->from_frontend[0], model->from_frontend[1]);
    for (unsigned r = 0; r < config->ranks; r++) {
        SWAP(queue_t, model->requests[0][r], model->requests[1][r]);
        SWAP(uint8_t, model->engines[r].work[0], model->engines[r].work[1]);
        for (unsigned f = 0; f < 2; f++) {
            queue_t *requests = &model->requests[f][r];
            for (unsigned i = 0; i < requests->count; i++) {
                if (requests->messages[i].kind == ADD && requests->messages[i].extra != ORPHAN)
                    requests->messages[i].extra = (uint8_t)f;
            }
        }
    }
}

/* Ranks 1 and 2. Only where no rank is named in a message: with rule 1 on. */
void model_swap_ranks(model_t *model, const model_config_t *config)
{
    SWAP(engine_t, model->engines[1], model->engines[2]);
    SWAP(queue_t, model->to_engine[1], model->to_engine[2]);
    SWAP(queue_t, model->from_engine[1], model->from_engine[2]);
    for (unsigned f = 0; f < config->frontends; f++)
        SWAP(queue_t, model->requests[f][1], model->requests[f][2]);
}

static void describe_message(const queue_t *from, char *text, unsigned size)
{
    static const char *const names[] = {
        [ADD] = "ADD",
        [ABORT] = "ABORT",
        [START] = "START_DP_WAVE",
        [NOTICE] = "notice",
        [JOIN] = "JOIN",
        [REPORT] = "queue report",
        [COMPLETE] = "wave_complete",
        [START_WAVE] = "start_wave",
        [PUBLISH] = "publish",
    };
    const message_t *message = &from->messages[0];
    if (message->kind == PUBLISH)
        snprintf(text, size, "publish [wave %u, %s]", message->wave, message->extra ? "running" : "paused");
    else
        snprintf(text, size, "%s [wave %u]", names[message->kind], message->wave);
}

void model_describe(const model_t *model, const model_config_t *config, event_t event, char *text,
                    unsigned size)
{
    char message[64] = "";
    (void)config;
    switch ((event_kind_t)event.kind) {
    case EVENT_SUBMIT:
        snprintf(text, size, "frontend %u sends ADD [wave %lld] to rank %u", event.a,
                 (long long)model->frontends[event.a].view.wave, event.b);
        break;
    case EVENT_SEND_NEXT:
        if (model->frontends[event.a].to_send == 1)
            snprintf(text, size, "frontend %u sends its first-request notice", event.a);
        else
            snprintf(text, size, "frontend %u itself sends START_DP_WAVE to rank %u", event.a,
                     model->frontends[event.a].to_send - 2);
        break;
    case EVENT_ENGINE_TAKES_BROADCAST:
        describe_message(&model->to_engine[event.a], message, sizeof message);
        snprintf(text, size, "rank %u gets %s", event.a, message);
        break;
    case EVENT_ENGINE_TAKES_REQUEST:
        describe_message(&model->requests[event.a][event.b], message, sizeof message);
        snprintf(text, size, "rank %u gets %s of frontend %u", event.b, message, event.a);
        break;
    case EVENT_ENTER:
        snprintf(text, size, "rank %u enters the collective at wave %u", event.a,
                 model->engines[event.a].wave);
        break;
    case EVENT_STEP:
        snprintf(text, size, "all ranks step");
        break;
    case EVENT_STEP_FINISHES:
        snprintf(text, size, "all ranks step, and a request ends at rank %u", event.a);
        break;
    case EVENT_AGREE:
        snprintf(text, size,
                 "the ranks agree that no work is left: rank 0 sends wave_complete [wave %u], all pause",
                 model->engines[0].wave);
        break;
    case EVENT_COORDINATOR_TAKES_REPORT:
        describe_message(&model->from_engine[event.a], message, sizeof message);
        snprintf(text, size, "the coordinator gets %s of rank %u", message, event.a);
        break;
    case EVENT_COORDINATOR_TAKES_NOTICE:
        describe_message(&model->from_frontend[event.a], message, sizeof message);
        snprintf(text, size, "the coordinator gets %s of frontend %u", message, event.a);
        break;
    case EVENT_FRONTEND_TAKES_PUBLISH:
        describe_message(&model->to_frontend[event.a], message, sizeof message);
        snprintf(text, size, "frontend %u gets %s", event.a, message);
        break;
    case EVENT_REPEAT:
        snprintf(text, size, "the coordinator repeats START_DP_WAVE [wave %lld]",
                 (long long)model->wave.current_wave);
        break;
    case EVENT_WATCHDOG:
        snprintf(text, size, "the watchdog finds the group partly woken, and raises wave %lld",
                 (long long)model->wave.current_wave);
        break;
    case EVENT_FRONTEND_REPEAT:
        snprintf(text, size, "frontend %u repeats its own wake", event.a);
        break;
    case EVENT_SILENCE:
        snprintf(text, size, "frontend %u notices that the coordinator is silent", event.a);
        break;
    case EVENT_REJOIN:
        snprintf(text, size, "frontend %u joins the coordinator", event.a);
        break;
    case EVENT_HOLD:
        snprintf(text, size, "a pause call holds every rank");
        break;
    case EVENT_RESUME:
        snprintf(text, size, "the ranks are resumed");
        break;
    case EVENT_LOSE_START:
        snprintf(text, size, "FAULT: a START_DP_WAVE to rank %u is lost", event.a);
        break;
    case EVENT_FRONTEND_DIES:
        snprintf(text, size, "FAULT: frontend %u dies", event.a);
        break;
    case EVENT_FRONTEND_LOSES:
    case EVENT_COORDINATOR_LOSES:
        snprintf(text, size, "  ... and a message is lost with it");
        break;
    case EVENT_FRONTEND_KEEPS:
    case EVENT_COORDINATOR_KEEPS:
        snprintf(text, size, "  ... the others on that link arrive");
        break;
    case EVENT_FRONTEND_RESTARTS:
        snprintf(text, size, "frontend %u is restarted", event.a);
        break;
    case EVENT_COORDINATOR_DIES:
        snprintf(text, size, "FAULT: the coordinator dies");
        break;
    case EVENT_COORDINATOR_RESTARTS:
        snprintf(text, size, "the coordinator is restarted, its file says wave %u", model->file_wave);
        break;
    }
}
