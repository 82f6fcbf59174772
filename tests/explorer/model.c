#include "tests/explorer/parts.h"

#include <string.h>

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
    if (parts_wants_to_step(model, r))
        add(list, EVENT_ENTER, r, 0);
}

static void list_collective(const model_t *model, const model_config_t *config, list_t *list)
{
    unsigned work = 0;
    if (!parts_all_entered(model, config))
        return;
    add(list, EVENT_STEP, 0, 0);
    for (unsigned r = 0; r < config->ranks; r++) {
        work += parts_work_of(&model->engines[r]);
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
        paused = paused || (!engine->entered && !engine->running && parts_work_of(engine) == 0);
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
        if (parts_work_of(&model->engines[r]) == 0)
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
        return parts_submit(model, config, event.a, event.b);
    case EVENT_SEND_NEXT:
        return parts_send_next(model, config, event.a);
    case EVENT_ENGINE_TAKES_BROADCAST:
        return parts_take_message(model, event.a, parts_pop(&model->to_engine[event.a]));
    case EVENT_ENGINE_TAKES_REQUEST:
        return parts_take_message(model, event.b, parts_pop(&model->requests[event.a][event.b]));
    case EVENT_ENTER:
        return parts_enter(model, event.a);
    case EVENT_STEP:
        parts_leave_collective(model, config);
        return NULL;
    case EVENT_STEP_FINISHES:
        parts_leave_collective(model, config);
        parts_finish(model, event.a, event.b);
        return NULL;
    case EVENT_AGREE:
        return parts_agree(model, config);
    case EVENT_COORDINATOR_TAKES_REPORT:
        return parts_take_report(model, config, event.a);
    case EVENT_COORDINATOR_TAKES_NOTICE:
        return parts_take_notice(model, config, event.a);
    case EVENT_FRONTEND_TAKES_PUBLISH:
        message = parts_pop(&model->to_frontend[event.a]);
        wave_view_on_publish(&frontend->view, message.wave, message.extra != 0);
        return NULL;
    case EVENT_REPEAT:
        return parts_act(model, config, wave_on_repeat(&model->wave));
    case EVENT_WATCHDOG:
        return parts_act(model, config, wave_raise(&model->wave));
    case EVENT_FRONTEND_REPEAT:
        frontend->to_send = 2;
        return NULL;
    case EVENT_SILENCE:
        return parts_fall_silent(model, config, event.a);
    case EVENT_REJOIN:
        wave_view_on_heard(&frontend->view);
        frontend->joined = true;
        return parts_push(&model->from_frontend[event.a], (message_t){JOIN, (uint8_t)frontend->view.wave, 0});
    case EVENT_HOLD:
        model->held = true;
        model->pauses--;
        return NULL;
    case EVENT_RESUME:
        model->held = false;
        return NULL;
    case EVENT_LOSE_START:
        (void)parts_pop(&model->to_engine[event.a]);
        model->lost_starts--;
        return NULL;
    case EVENT_FRONTEND_DIES:
        model->frontend_deaths--;
        frontend->to_send = 0;
        parts_orphan(model, config, event.a);
        parts_next_frontend_link(model, config, event.a);
        return NULL;
    case EVENT_FRONTEND_LOSES:
    case EVENT_COORDINATOR_LOSES:
        parts_lose_on_link(model, config, event);
        return NULL;
    case EVENT_FRONTEND_KEEPS:
        parts_next_frontend_link(model, config, event.a);
        return NULL;
    case EVENT_FRONTEND_RESTARTS:
        frontend->up = true;
        frontend->joined = model->up;
        message = (message_t){PUBLISH, (uint8_t)model->wave.current_wave, model->wave.running};
        return model->up ? parts_push(&model->to_frontend[event.a], message) : NULL;
    case EVENT_COORDINATOR_DIES:
        model->coordinator_deaths--;
        parts_next_coordinator_link(model, config);
        return NULL;
    case EVENT_COORDINATOR_KEEPS:
        parts_next_coordinator_link(model, config);
        return NULL;
    case EVENT_COORDINATOR_RESTARTS:
        return parts_restart_coordinator(model, config);
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
            fault = parts_send_next(model, config, f);
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
        if (engine->running || engine->entered || parts_work_of(engine) > 0 ||
            model->to_engine[r].count > 0 || model->from_engine[r].count > 0)
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
