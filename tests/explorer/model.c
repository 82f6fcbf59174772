#include "tests/explorer/model.h"

#include <string.h>

static unsigned work_of(const engine_t *engine)
{
    unsigned sum = 0;
    for (unsigned owner = 0; owner < OWNERS; owner++)
        sum += engine->work[owner];
    return sum;
}

static const char *push(queue_t *queue, message_t message)
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

static message_t pop(queue_t *queue)
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

void model_init(model_t *model, const model_config_t *config)
{
    memset(model, 0, sizeof *model);
    model->up = true;
    model->wave.current_wave = config->first_wave;
    if (config->rules & RULE_WRITE_AHEAD)
        model->file_wave = config->first_wave;
    for (unsigned r = 0; r < config->ranks; r++)
        model->engines[r].wave = config->first_wave;
    for (unsigned f = 0; f < config->frontends; f++) {
        model->frontends[f].up = true;
        model->frontends[f].joined = true;
        wave_view_on_publish(&model->frontends[f].view, config->first_wave, false);
    }
    model->requests_left = config->requests;
    model->frontend_deaths = config->frontend_deaths;
    model->coordinator_deaths = config->coordinator_deaths;
    model->lost_starts = config->lost_starts;
    model->pauses = config->pauses;
    model->unread = config->unread;
}

/* --- the coordinator --- */

static const char *act(model_t *model, const model_config_t *config, wave_actions_t actions)
{
    const char *fault = NULL;
    uint8_t wave = (uint8_t)model->wave.current_wave;
    if ((actions & WAVE_SAVE) && (config->rules & RULE_WRITE_AHEAD)) {
        model->file_wave = wave;
        model->file_running = model->wave.running;
    }
    for (unsigned r = 0; (actions & WAVE_START) && r < config->ranks && !fault; r++)
        fault = push(&model->to_engine[r], (message_t){START, wave, model->exclude});
    for (unsigned f = 0; (actions & WAVE_PUBLISH) && f < config->frontends && !fault; f++) {
        if (model->frontends[f].up)
            fault = push(&model->to_frontend[f], (message_t){PUBLISH, wave, model->wave.running});
    }
    return fault;
}

static const char *take_report(model_t *model, const model_config_t *config, unsigned rank)
{
    message_t message = pop(&model->from_engine[rank]);
    wave_t *wave = &model->wave;
    wave_actions_t actions = 0;
    if (message.kind == COMPLETE)
        actions = wave_on_complete(wave, message.wave);
    else if (message.kind == START_WAVE)
        actions = wave_on_start(wave, message.wave);
    else if (config->rules & RULE_EVIDENCE)
        actions = wave_on_report(wave, message.wave, true);
    model->exclude = 0;
    if ((actions & WAVE_START) && message.kind == START_WAVE && !(config->rules & RULE_EXCLUDE_NOBODY))
        model->exclude = (uint8_t)(rank + 1);
    return act(model, config, actions);
}

static const char *take_notice(model_t *model, const model_config_t *config, unsigned frontend)
{
    message_t message = pop(&model->from_frontend[frontend]);
    if (message.kind == JOIN) {
        const char *fault = act(model, config, wave_on_join(&model->wave, message.wave));
        message_t publish = {PUBLISH, (uint8_t)model->wave.current_wave, model->wave.running};
        return fault ? fault : push(&model->to_frontend[frontend], publish);
    }
    wave_actions_t actions = wave_on_notice(&model->wave, message.wave);
    if ((actions & WAVE_START) && !(config->rules & RULE_EXCLUDE_NOBODY))
        model->exclude = (uint8_t)(message.extra + 1);
    return act(model, config, actions);
}

static const char *restart_coordinator(model_t *model, const model_config_t *config)
{
    model->up = true;
    wave_actions_t actions = wave_restore(&model->wave, model->file_wave);
    if (!(config->rules & RULE_ASSUME_RUNNING)) {
        model->wave.running = model->file_running;
        model->wave.assumed = false;
        actions = model->file_running ? actions : WAVE_PUBLISH;
    }
    return act(model, config, actions);
}

/* --- frontends --- */

/* What a frontend no longer waits for goes on at the engines, for nobody, until it is aborted or done. */
static void orphan(model_t *model, const model_config_t *config, unsigned f)
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
    orphan(model, config, f);
    for (unsigned r = 0; r < config->ranks && !fault; r++)
        fault = push(&model->requests[f][r], (message_t){ABORT, 0, ORPHAN});
    return fault;
}

static const char *submit(model_t *model, const model_config_t *config, unsigned f, unsigned rank)
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

static const char *send_next(model_t *model, const model_config_t *config, unsigned f)
{
    frontend_t *frontend = &model->frontends[f];
    uint8_t wave = (uint8_t)frontend->view.wave;
    if (frontend->to_send == 1) {
        frontend->to_send = 0;
        /* a notice to a coordinator that is down waits for nobody: ZeroMQ drops it */
        return model->up ? push(&model->from_frontend[f], (message_t){NOTICE, wave, frontend->send_rank})
                         : NULL;
    }
    unsigned rank = frontend->to_send - 2u;
    frontend->to_send = rank + 1 < config->ranks ? (uint8_t)(frontend->to_send + 1) : 0;
    return push(&model->requests[f][rank], (message_t){START, wave, 0});
}

static const char *fall_silent(model_t *model, const model_config_t *config, unsigned f)
{
    frontend_t *frontend = &model->frontends[f];
    wave_view_step_t step = wave_view_on_silence(&frontend->view, !config->partial_routes);
    if (step == WAVE_VIEW_WAKE)
        frontend->to_send = 2;
    return step == WAVE_VIEW_REFUSE ? abort_all(model, config, f) : NULL;
}

/* --- engines --- */

static const char *take_message(model_t *model, unsigned rank, message_t message)
{
    engine_t *engine = &model->engines[rank];
    switch (message.kind) {
    case ADD:
        engine->work[message.extra]++;
        if (message.wave > engine->wave)
            engine->wave = message.wave;
        else if (message.wave < engine->wave && !engine->running && !model->held)
            return push(&model->from_engine[rank], (message_t){START_WAVE, engine->wave, 0});
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

static bool wants_to_step(const model_t *model, unsigned rank)
{
    const engine_t *engine = &model->engines[rank];
    return !engine->entered && !model->held && (engine->running || work_of(engine) > 0);
}

/* Counts are published before the step, if they have changed. */
static const char *enter(model_t *model, unsigned rank)
{
    engine_t *engine = &model->engines[rank];
    unsigned work = work_of(engine);
    const char *fault = NULL;
    if (work != engine->reported && work > 0)
        fault = push(&model->from_engine[rank], (message_t){REPORT, engine->wave, 0});
    engine->reported = (uint8_t)work;
    engine->entered = true;
    return fault;
}

static bool all_entered(const model_t *model, const model_config_t *config)
{
    for (unsigned r = 0; r < config->ranks; r++) {
        if (!model->engines[r].entered)
            return false;
    }
    return true;
}

static void leave_collective(model_t *model, const model_config_t *config)
{
    for (unsigned r = 0; r < config->ranks; r++) {
        model->engines[r].entered = false;
        model->engines[r].running = true;
    }
}

static void finish(model_t *model, unsigned rank, unsigned owner)
{
    model->engines[rank].work[owner]--;
    if (owner != ORPHAN && model->frontends[owner].in_flight > 0)
        model->frontends[owner].in_flight--;
}

static const char *agree(model_t *model, const model_config_t *config)
{
    const char *fault = push(&model->from_engine[0], (message_t){COMPLETE, model->engines[0].wave, 0});
    leave_collective(model, config);
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

static void next_coordinator_link(model_t *model, const model_config_t *config)
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

static void next_frontend_link(model_t *model, const model_config_t *config, unsigned f)
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

static void lose_on_link(model_t *model, const model_config_t *config, event_t event)
{
    bool received;
    queue_t *queue;
    if (event.kind == EVENT_FRONTEND_LOSES) {
        queue = frontend_link(model, config, event.a, model->frontends[event.a].dying - 1u);
        drop_last(queue);
        if (queue->count == 0)
            next_frontend_link(model, config, event.a);
        return;
    }
    queue = coordinator_link(model, config, model->dying - 1u, &received);
    if (received) {
        (void)pop(queue); /* read from the socket, and not handled */
        model->unread--;
    } else {
        drop_last(queue); /* not sent yet */
    }
    if (queue->count == 0)
        next_coordinator_link(model, config);
}

/* --- what can happen --- */

typedef struct {
    event_t *events;
    unsigned count;
} list_t;

static void add(list_t *list, event_kind_t kind, unsigned a, unsigned b)
{
    if (list->count < EVENTS_MAX)
        list->events[list->count++] = (event_t){(uint8_t)kind, (uint8_t)a, (uint8_t)b};
}

static void list_frontend(const model_t *model, const model_config_t *config, unsigned f, list_t *list)
{
    const frontend_t *frontend = &model->frontends[f];
    if (!frontend->up) {
        add(list, EVENT_FRONTEND_RESTARTS, f, 0);
        return;
    }
    if (model->frontend_deaths > 0)
        add(list, EVENT_FRONTEND_DIES, f, 0);
    if (frontend->to_send > 0) { /* one loop turn: nothing comes between */
        add(list, EVENT_SEND_NEXT, f, 0);
        return;
    }
    for (unsigned r = 0; model->requests_left > 0 && r < config->ranks; r++)
        add(list, EVENT_SUBMIT, f, r);
    if (model->to_frontend[f].count > 0)
        add(list, EVENT_FRONTEND_TAKES_PUBLISH, f, 0);
    if (!model->up && !frontend->view.silent)
        add(list, EVENT_SILENCE, f, 0);
    if (model->up && (frontend->view.silent || !frontend->joined))
        add(list, EVENT_REJOIN, f, 0);
    if (wave_view_on_repeat(&frontend->view, frontend->in_flight))
        add(list, EVENT_FRONTEND_REPEAT, f, 0);
}

static void list_engine(const model_t *model, const model_config_t *config, unsigned r, list_t *list)
{
    const engine_t *engine = &model->engines[r];
    if (model->lost_starts > 0 && model->to_engine[r].count > 0)
        add(list, EVENT_LOSE_START, r, 0);
    if (engine->entered)
        return;
    if (model->to_engine[r].count > 0)
        add(list, EVENT_ENGINE_TAKES_BROADCAST, r, 0);
    for (unsigned f = 0; f < config->frontends; f++) {
        if (model->requests[f][r].count > 0)
            add(list, EVENT_ENGINE_TAKES_REQUEST, f, r);
    }
    if (wants_to_step(model, r))
        add(list, EVENT_ENTER, r, 0);
}

static void list_collective(const model_t *model, const model_config_t *config, list_t *list)
{
    unsigned work = 0;
    if (!all_entered(model, config))
        return;
    add(list, EVENT_STEP, 0, 0);
    for (unsigned r = 0; r < config->ranks; r++) {
        work += work_of(&model->engines[r]);
        for (unsigned owner = 0; owner < OWNERS; owner++) {
            if (model->engines[r].work[owner] > 0)
                add(list, EVENT_STEP_FINISHES, r, owner);
        }
    }
    if (work == 0)
        add(list, EVENT_AGREE, 0, 0);
}

/* The watchdog waits for many repeats, so what a repeat can wake is awake by then. */
static bool is_partly_woken(const model_t *model, const model_config_t *config)
{
    bool stuck = false;
    bool paused = false;
    for (unsigned r = 0; r < config->ranks; r++) {
        const engine_t *engine = &model->engines[r];
        stuck = stuck || engine->entered;
        paused = paused || (!engine->entered && !engine->running && work_of(engine) == 0);
        if (!engine->entered && engine->wave <= model->wave.current_wave)
            return false;
        if (model->to_engine[r].count > 0 || model->from_engine[r].count > 0)
            return false;
        for (unsigned f = 0; f < config->frontends; f++) {
            if (model->requests[f][r].count > 0 && !engine->entered)
                return false;
        }
    }
    for (unsigned f = 0; f < config->frontends; f++) {
        if (model->from_frontend[f].count > 0)
            return false;
    }
    return stuck && paused;
}

static void list_coordinator(const model_t *model, const model_config_t *config, list_t *list)
{
    if (!model->up) {
        add(list, EVENT_COORDINATOR_RESTARTS, 0, 0);
        return;
    }
    if (model->coordinator_deaths > 0)
        add(list, EVENT_COORDINATOR_DIES, 0, 0);
    for (unsigned r = 0; r < config->ranks; r++) {
        if (model->from_engine[r].count > 0)
            add(list, EVENT_COORDINATOR_TAKES_REPORT, r, 0);
    }
    for (unsigned f = 0; f < config->frontends; f++) {
        if (model->from_frontend[f].count > 0)
            add(list, EVENT_COORDINATOR_TAKES_NOTICE, f, 0);
    }
    if ((config->rules & RULE_REPEAT) && wave_on_repeat(&model->wave) != 0)
        add(list, EVENT_REPEAT, 0, 0);
    if (config->watchdog && model->wave.running && is_partly_woken(model, config))
        add(list, EVENT_WATCHDOG, 0, 0);
}

static void list_pause(const model_t *model, const model_config_t *config, list_t *list)
{
    if (model->held) {
        add(list, EVENT_RESUME, 0, 0);
        return;
    }
    for (unsigned r = 0; r < config->ranks; r++) {
        if (model->engines[r].running || model->engines[r].entered)
            return;
    }
    if (model->pauses > 0)
        add(list, EVENT_HOLD, 0, 0);
}

unsigned model_next(const model_t *model, const model_config_t *config, event_t events[EVENTS_MAX])
{
    list_t list = {events, 0};
    if (model->dying > 0) {
        bool received = model->dying <= config->ranks + config->frontends;
        if (!received || model->unread > 0)
            add(&list, EVENT_COORDINATOR_LOSES, 0, 0);
        add(&list, EVENT_COORDINATOR_KEEPS, 0, 0);
        return list.count;
    }
    for (unsigned f = 0; f < config->frontends; f++) {
        if (model->frontends[f].dying > 0) {
            add(&list, EVENT_FRONTEND_LOSES, f, 0);
            add(&list, EVENT_FRONTEND_KEEPS, f, 0);
            return list.count;
        }
    }
    for (unsigned f = 0; f < config->frontends; f++)
        list_frontend(model, config, f, &list);
    for (unsigned r = 0; r < config->ranks; r++)
        list_engine(model, config, r, &list);
    list_collective(model, config, &list);
    list_coordinator(model, config, &list);
    list_pause(model, config, &list);
    return list.count;
}

bool model_is_help(event_t event)
{
    switch (event.kind) {
    case EVENT_SUBMIT:
    case EVENT_HOLD:
    case EVENT_LOSE_START:
    case EVENT_FRONTEND_DIES:
    case EVENT_COORDINATOR_DIES:
        return true;
    default:
        return false;
    }
}

/* --- what can never have an effect any more --- */

typedef bool idle_fn(const model_t *model, unsigned who, message_t message);

static void purge(model_t *model, queue_t *queue, unsigned who, idle_fn *is_idle)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < queue->count; i++) {
        if (!is_idle(model, who, queue->messages[i]))
            queue->messages[kept++] = queue->messages[i];
    }
    memset(&queue->messages[kept], 0, (queue->count - kept) * sizeof(message_t));
    queue->count = (uint8_t)kept;
}

/* An engine's wave only grows, and when it stops running at a wave it is at the next. */
static bool is_idle_start(const model_t *model, unsigned rank, message_t message)
{
    const engine_t *engine = &model->engines[rank];
    return message.kind == START &&
           (message.wave < engine->wave || (message.wave == engine->wave && engine->running));
}

/* The same of the coordinator, whose wave outlives it in the file, and which assumes running after a restart. */
static bool is_idle_report(const model_t *model, unsigned rank, message_t message)
{
    (void)rank;
    bool passed = message.wave < model->wave.current_wave;
    return passed ||
           (message.kind != COMPLETE && message.wave == model->wave.current_wave && model->wave.running);
}

static bool is_idle_publish(const model_t *model, unsigned f, message_t message)
{
    const wave_view_t *view = &model->frontends[f].view;
    return view->known && message.wave < view->wave;
}

static void normalise(model_t *model, const model_config_t *config)
{
    uint8_t lasting = RULE_WRITE_AHEAD | RULE_ASSUME_RUNNING;
    bool dies_no_more = model->coordinator_deaths == 0;
    bool wave_lasts = model->up && ((config->rules & lasting) == lasting || dies_no_more);
    for (unsigned r = 0; r < config->ranks; r++) {
        purge(model, &model->to_engine[r], r, is_idle_start);
        if (wave_lasts)
            purge(model, &model->from_engine[r], r, is_idle_report);
        for (unsigned f = 0; f < config->frontends; f++)
            purge(model, &model->requests[f][r], r, is_idle_start);
        if (work_of(&model->engines[r]) == 0)
            model->engines[r].reported = 0; /* the report of 0 */
    }
    for (unsigned f = 0; f < config->frontends; f++) {
        purge(model, &model->to_frontend[f], f, is_idle_publish);
        if (model->frontends[f].to_send != 1 || (config->rules & RULE_EXCLUDE_NOBODY))
            model->frontends[f].send_rank = 0;
    }
    if (config->rules & RULE_ASSUME_RUNNING)
        model->file_running = false; /* nobody looks at it */
}

static const char *apply(model_t *model, const model_config_t *config, event_t event)
{
    frontend_t *frontend = &model->frontends[event.a < FRONTENDS_MAX ? event.a : 0];
    message_t message;
    switch ((event_kind_t)event.kind) {
    case EVENT_SUBMIT:
        return submit(model, config, event.a, event.b);
    case EVENT_SEND_NEXT:
        return send_next(model, config, event.a);
    case EVENT_ENGINE_TAKES_BROADCAST:
        return take_message(model, event.a, pop(&model->to_engine[event.a]));
    case EVENT_ENGINE_TAKES_REQUEST:
        return take_message(model, event.b, pop(&model->requests[event.a][event.b]));
    case EVENT_ENTER:
        return enter(model, event.a);
    case EVENT_STEP:
        leave_collective(model, config);
        return NULL;
    case EVENT_STEP_FINISHES:
        leave_collective(model, config);
        finish(model, event.a, event.b);
        return NULL;
    case EVENT_AGREE:
        return agree(model, config);
    case EVENT_COORDINATOR_TAKES_REPORT:
        return take_report(model, config, event.a);
    case EVENT_COORDINATOR_TAKES_NOTICE:
        return take_notice(model, config, event.a);
    case EVENT_FRONTEND_TAKES_PUBLISH:
        message = pop(&model->to_frontend[event.a]);
        wave_view_on_publish(&frontend->view, message.wave, message.extra != 0);
        return NULL;
    case EVENT_REPEAT:
        return act(model, config, wave_on_repeat(&model->wave));
    case EVENT_WATCHDOG:
        return act(model, config, wave_raise(&model->wave));
    case EVENT_FRONTEND_REPEAT:
        frontend->to_send = 2;
        return NULL;
    case EVENT_SILENCE:
        return fall_silent(model, config, event.a);
    case EVENT_REJOIN:
        wave_view_on_heard(&frontend->view);
        frontend->joined = true;
        return push(&model->from_frontend[event.a], (message_t){JOIN, (uint8_t)frontend->view.wave, 0});
    case EVENT_HOLD:
        model->held = true;
        model->pauses--;
        return NULL;
    case EVENT_RESUME:
        model->held = false;
        return NULL;
    case EVENT_LOSE_START:
        (void)pop(&model->to_engine[event.a]);
        model->lost_starts--;
        return NULL;
    case EVENT_FRONTEND_DIES:
        model->frontend_deaths--;
        frontend->to_send = 0;
        orphan(model, config, event.a);
        next_frontend_link(model, config, event.a);
        return NULL;
    case EVENT_FRONTEND_LOSES:
    case EVENT_COORDINATOR_LOSES:
        lose_on_link(model, config, event);
        return NULL;
    case EVENT_FRONTEND_KEEPS:
        next_frontend_link(model, config, event.a);
        return NULL;
    case EVENT_FRONTEND_RESTARTS:
        frontend->up = true;
        frontend->joined = model->up;
        message = (message_t){PUBLISH, (uint8_t)model->wave.current_wave, model->wave.running};
        return model->up ? push(&model->to_frontend[event.a], message) : NULL;
    case EVENT_COORDINATOR_DIES:
        model->coordinator_deaths--;
        next_coordinator_link(model, config);
        return NULL;
    case EVENT_COORDINATOR_KEEPS:
        next_coordinator_link(model, config);
        return NULL;
    case EVENT_COORDINATOR_RESTARTS:
        return restart_coordinator(model, config);
    }
    return "an unknown event";
}

static bool is_anyone_dying(const model_t *model, const model_config_t *config)
{
    bool dying = model->dying > 0;
    for (unsigned f = 0; f < config->frontends; f++)
        dying = dying || model->frontends[f].dying > 0;
    return dying;
}

const char *model_apply(model_t *model, const model_config_t *config, event_t event)
{
    model_t before = *model;
    const char *fault = apply(model, config, event);
    for (unsigned f = 0; f < config->frontends; f++) {
        while (!fault && model->frontend_deaths == 0 && model->frontends[f].to_send > 0)
            fault = send_next(model, config, f);
    }
    if (!is_anyone_dying(model, config)) /* a death goes through the links as they are */
        normalise(model, config);
    bool restarts = event.kind == EVENT_COORDINATOR_RESTARTS || !model->up || !before.up;
    for (unsigned r = 0; r < config->ranks && !fault; r++) {
        if (model->engines[r].wave < before.engines[r].wave)
            fault = "an engine's wave went backwards";
    }
    for (unsigned f = 0; f < config->frontends && !fault; f++) {
        if (model->frontends[f].up && model->frontends[f].view.wave < before.frontends[f].view.wave)
            fault = "a frontend's wave went backwards";
    }
    if (!fault && !restarts && model->wave.current_wave < before.wave.current_wave)
        fault = "the coordinator's wave went backwards";
    return fault;
}

bool model_is_quiet(const model_t *model, const model_config_t *config)
{
    if (!model->up || model->held || model->dying)
        return false;
    for (unsigned r = 0; r < config->ranks; r++) {
        const engine_t *engine = &model->engines[r];
        if (engine->running || engine->entered || work_of(engine) > 0 || model->to_engine[r].count > 0 ||
            model->from_engine[r].count > 0)
            return false;
        for (unsigned f = 0; f < config->frontends; f++) {
            if (model->requests[f][r].count > 0)
                return false;
        }
    }
    for (unsigned f = 0; f < config->frontends; f++) {
        const frontend_t *frontend = &model->frontends[f];
        if (frontend->in_flight > 0 || frontend->to_send > 0 || frontend->dying || frontend->view.silent ||
            model->to_frontend[f].count > 0 || model->from_frontend[f].count > 0)
            return false;
    }
    return true;
}
