#include "tests/explorer/parts.h"

#include <string.h>

unsigned parts_work_of(const engine_t *engine)
{
    unsigned sum = 0;
    for (unsigned owner = 0; owner < OWNERS; owner++)
        sum += engine->work[owner];
    return sum;
}

const char *parts_push(queue_t *queue, message_t message)
{
    if (queue->count > 0 && memcmp(&queue->messages[queue->count - 1], &message, sizeof message) == 0)
        return NULL;
    if (queue->count == QUEUE_MAX)
        return "a queue overflowed: more messages than the model has room for";
    queue->messages[queue->count++] = message;
    return NULL;
}

/* Requests are counted, so two equal ADDs are two. */
static const char *push_add(queue_t *queue, message_t message)
{
    if (queue->count == QUEUE_MAX)
        return "a queue overflowed: more messages than the model has room for";
    queue->messages[queue->count++] = message;
    return NULL;
}

message_t parts_pop(queue_t *queue)
{
    message_t first = queue->messages[0];
    queue->count--;
    memmove(queue->messages, queue->messages + 1, queue->count * sizeof first);
    memset(&queue->messages[queue->count], 0, sizeof first);
    return first;
}

static void drop_last(queue_t *queue)
{
    queue->count--;
    memset(&queue->messages[queue->count], 0, sizeof(message_t));
}

/* --- the coordinator --- */

const char *parts_act(model_t *model, const model_config_t *config, wave_actions_t actions)
{
    const char *fault = NULL;
    uint8_t wave = (uint8_t)model->wave.current_wave;
    if ((actions & WAVE_SAVE) && (config->rules & RULE_WRITE_AHEAD)) {
        model->file_wave = wave;
        model->file_running = model->wave.running;
    }
    for (unsigned r = 0; (actions & WAVE_START) && r < config->ranks && !fault; r++)
        fault = parts_push(&model->to_engine[r], (message_t){START, wave, model->exclude});
    for (unsigned f = 0; (actions & WAVE_PUBLISH) && f < config->frontends && !fault; f++) {
        if (model->frontends[f].up)
            fault = parts_push(&model->to_frontend[f], (message_t){PUBLISH, wave, model->wave.running});
    }
    return fault;
}

const char *parts_take_report(model_t *model, const model_config_t *config, unsigned rank)
{
    message_t message = parts_pop(&model->from_engine[rank]);
    wave_t *wave = &model->wave;
    wave_actions_t actions = 0;
    if (message.kind == COMPLETE)
        actions = wave_on_complete(wave, message.wave);
    else if (message.kind == START_WAVE)
        actions = wave_on_start(wave, message.wave);
    else if (config->rules & RULE_EVIDENCE)
        actions = wave_on_report(wave, message.wave, 1, 0);
    model->exclude = 0;
    if ((actions & WAVE_START) && message.kind == START_WAVE && !(config->rules & RULE_EXCLUDE_NOBODY))
        model->exclude = (uint8_t)(rank + 1);
    return parts_act(model, config, actions);
}

const char *parts_take_notice(model_t *model, const model_config_t *config, unsigned frontend)
{
    message_t message = parts_pop(&model->from_frontend[frontend]);
    if (message.kind == JOIN) {
        const char *fault = parts_act(model, config, wave_on_join(&model->wave, message.wave));
        message_t publish = {PUBLISH, (uint8_t)model->wave.current_wave, model->wave.running};
        return fault ? fault : parts_push(&model->to_frontend[frontend], publish);
    }
    wave_actions_t actions = wave_on_notice(&model->wave, message.wave);
    if ((actions & WAVE_START) && !(config->rules & RULE_EXCLUDE_NOBODY))
        model->exclude = (uint8_t)(message.extra + 1);
    return parts_act(model, config, actions);
}

const char *parts_restart_coordinator(model_t *model, const model_config_t *config)
{
    model->up = true;
    wave_actions_t actions = wave_restore(&model->wave, model->file_wave);
    if (!(config->rules & RULE_ASSUME_RUNNING)) {
        model->wave.running = model->file_running;
        model->wave.assumed = false;
        actions = model->file_running ? actions : WAVE_PUBLISH;
    }
    return parts_act(model, config, actions);
}

/* --- frontends --- */

/* What a frontend no longer waits for goes on at the engines, for nobody, until it is aborted or done. */
void parts_orphan(model_t *model, const model_config_t *config, unsigned f)
{
    for (unsigned r = 0; r < config->ranks; r++) {
        queue_t *queue = &model->requests[f][r];
        model->engines[r].work[ORPHAN] =
            (uint8_t)(model->engines[r].work[ORPHAN] + model->engines[r].work[f]);
        model->engines[r].work[f] = 0;
        for (unsigned i = 0; i < queue->count; i++) {
            if (queue->messages[i].kind == ADD)
                queue->messages[i].extra = ORPHAN;
        }
    }
    model->frontends[f].in_flight = 0;
}

static const char *abort_all(model_t *model, const model_config_t *config, unsigned f)
{
    const char *fault = NULL;
    parts_orphan(model, config, f);
    for (unsigned r = 0; r < config->ranks && !fault; r++)
        fault = parts_push(&model->requests[f][r], (message_t){ABORT, 0, ORPHAN});
    return fault;
}

const char *parts_submit(model_t *model, const model_config_t *config, unsigned f, unsigned rank)
{
    frontend_t *frontend = &model->frontends[f];
    wave_view_step_t step =
        wave_view_on_request(&frontend->view, !config->partial_routes, frontend->in_flight);
    model->requests_left--;
    if (step == WAVE_VIEW_REFUSE)
        return NULL; /* answered 503: it was never accepted */
    frontend->in_flight++;
    frontend->send_rank = (uint8_t)rank;
    if (step == WAVE_VIEW_ANNOUNCE)
        frontend->to_send = 1;
    else if (step == WAVE_VIEW_WAKE)
        frontend->to_send = 2;
    return push_add(&model->requests[f][rank], (message_t){ADD, (uint8_t)frontend->view.wave, (uint8_t)f});
}

const char *parts_send_next(model_t *model, const model_config_t *config, unsigned f)
{
    frontend_t *frontend = &model->frontends[f];
    uint8_t wave = (uint8_t)frontend->view.wave;
    if (frontend->to_send == 1) {
        frontend->to_send = 0;
        /* a notice to a coordinator that is down waits for nobody: ZeroMQ drops it */
        return model->up
                   ? parts_push(&model->from_frontend[f], (message_t){NOTICE, wave, frontend->send_rank})
                   : NULL;
    }
    unsigned rank = frontend->to_send - 2u;
    frontend->to_send = rank + 1 < config->ranks ? (uint8_t)(frontend->to_send + 1) : 0;
    return parts_push(&model->requests[f][rank], (message_t){START, wave, 0});
}

const char *parts_fall_silent(model_t *model, const model_config_t *config, unsigned f)
{
    frontend_t *frontend = &model->frontends[f];
    wave_view_step_t step = wave_view_on_silence(&frontend->view, !config->partial_routes);
    if (step == WAVE_VIEW_WAKE)
        frontend->to_send = 2;
    return step == WAVE_VIEW_REFUSE ? abort_all(model, config, f) : NULL;
}

/* --- engines --- */

const char *parts_take_message(model_t *model, unsigned rank, message_t message)
{
    engine_t *engine = &model->engines[rank];
    switch (message.kind) {
    case ADD:
        engine->work[message.extra]++;
        if (message.wave > engine->wave)
            engine->wave = message.wave;
        else if (message.wave < engine->wave && !engine->running && !model->held)
            return parts_push(&model->from_engine[rank], (message_t){START_WAVE, engine->wave, 0});
        break;
    case ABORT:
        engine->work[message.extra] = 0;
        break;
    case START:
        if (message.wave < engine->wave || message.extra == rank + 1 || model->held)
            break;
        engine->wave = message.wave;
        engine->running = true;
        break;
    default:
        return "an engine got a message for another";
    }
    return NULL;
}

bool parts_wants_to_step(const model_t *model, unsigned rank)
{
    const engine_t *engine = &model->engines[rank];
    return !engine->entered && !model->held && (engine->running || parts_work_of(engine) > 0);
}

/* Counts are published before the step, if they have changed. */
const char *parts_enter(model_t *model, unsigned rank)
{
    engine_t *engine = &model->engines[rank];
    unsigned work = parts_work_of(engine);
    const char *fault = NULL;
    if (work != engine->reported && work > 0)
        fault = parts_push(&model->from_engine[rank], (message_t){REPORT, engine->wave, 0});
    engine->reported = (uint8_t)work;
    engine->entered = true;
    return fault;
}

bool parts_all_entered(const model_t *model, const model_config_t *config)
{
    for (unsigned r = 0; r < config->ranks; r++) {
        if (!model->engines[r].entered)
            return false;
    }
    return true;
}

void parts_leave_collective(model_t *model, const model_config_t *config)
{
    for (unsigned r = 0; r < config->ranks; r++) {
        model->engines[r].entered = false;
        model->engines[r].running = true;
    }
}

void parts_finish(model_t *model, unsigned rank, unsigned owner)
{
    model->engines[rank].work[owner]--;
    if (owner != ORPHAN && model->frontends[owner].in_flight > 0)
        model->frontends[owner].in_flight--;
}

const char *parts_agree(model_t *model, const model_config_t *config)
{
    const char *fault = parts_push(&model->from_engine[0], (message_t){COMPLETE, model->engines[0].wave, 0});
    parts_leave_collective(model, config);
    for (unsigned r = 0; r < config->ranks; r++) {
        model->engines[r].running = false;
        model->engines[r].wave++;
    }
    return fault;
}

/* --- deaths: link by link, what is lost on it --- */

static queue_t *coordinator_link(model_t *model, const model_config_t *config, unsigned link, bool *received)
{
    unsigned n = config->ranks;
    unsigned m = config->frontends;
    *received = link < n + m;
    if (link < n)
        return &model->from_engine[link];
    if (link < n + m)
        return &model->from_frontend[link - n];
    if (link < 2 * n + m)
        return &model->to_engine[link - n - m];
    return link < 2 * (n + m) ? &model->to_frontend[link - 2 * n - m] : NULL;
}

static queue_t *frontend_link(model_t *model, const model_config_t *config, unsigned f, unsigned link)
{
    if (link < config->ranks)
        return &model->requests[f][link];
    return link == config->ranks ? &model->from_frontend[f] : NULL;
}

void parts_next_coordinator_link(model_t *model, const model_config_t *config)
{
    bool received;
    queue_t *queue;
    do {
        model->dying++;
        queue = coordinator_link(model, config, model->dying - 1u, &received);
    } while (queue && queue->count == 0);
    if (queue)
        return;
    model->dying = 0;
    model->up = false;
    for (unsigned f = 0; f < config->frontends; f++)
        model->frontends[f].joined = false;
    memset(&model->wave, 0, sizeof model->wave);
    model->exclude = 0;
}

void parts_next_frontend_link(model_t *model, const model_config_t *config, unsigned f)
{
    frontend_t *frontend = &model->frontends[f];
    queue_t *queue;
    do {
        frontend->dying++;
        queue = frontend_link(model, config, f, frontend->dying - 1u);
    } while (queue && queue->count == 0);
    if (queue)
        return;
    memset(frontend, 0, sizeof *frontend);
    memset(&model->to_frontend[f], 0, sizeof model->to_frontend[f]);
}

void parts_lose_on_link(model_t *model, const model_config_t *config, event_t event)
{
    bool received;
    queue_t *queue;
    if (event.kind == EVENT_FRONTEND_LOSES) {
        queue = frontend_link(model, config, event.a, model->frontends[event.a].dying - 1u);
        drop_last(queue);
        if (queue->count == 0)
            parts_next_frontend_link(model, config, event.a);
        return;
    }
    queue = coordinator_link(model, config, model->dying - 1u, &received);
    if (received) {
        (void)parts_pop(queue); /* read from the socket, and not handled */
        model->unread--;
    } else {
        drop_last(queue); /* not sent yet */
    }
    if (queue->count == 0)
        parts_next_coordinator_link(model, config);
}
