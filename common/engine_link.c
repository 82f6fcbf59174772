/* The sweep, in order: (1) the ROUTER digests what its I/O thread has queued, else a probe may still enter
 * the pipe of a connection that is already gone; (2) each known or watched rank is probed with an empty
 * ABORT, which an engine answers with nothing (protocol.md 5); (3) if any route was lost, the PULL is read to
 * its end, so that the last outputs of a dying engine are not lost; (4) only then the losses are reported.
 *
 * A sweep runs after any connection of the input ROUTER came or went, after a death sentinel, after a failed
 * send, and once a second. libzmq tells of a closed connection shortly before the ROUTER itself learns of it,
 * hence a second sweep SETTLE_MS later. Only after that one is judged what may have been lost on routes that
 * are up (link_cuts.h), except where a message shows that its rank's outputs come over another connection. */
#include "common/engine_link.h"

#include "common/connection.h"
#include "common/link_cuts.h"
#include "common/log.h"
#include "common/rank_map.h"
#include "common/receiver.h"
#include "common/socket_monitor.h"
#include "common/turn.h"
#include "common/wire_outputs.h"

#include <errno.h>
#include <stdlib.h>

enum {
    SWEEP_MS = 1000,
    SETTLE_MS = 10,
    REGISTRATION_MAX = 1 << 20,
    DRAIN_MAX =
        1 << 16, /* messages read before a loss is reported: more than any backlog of a dying engine */
    LATE_REGISTRATION_MS = 1000,
    DEATH_MS = 1000,
    LAST_ABORTS_MS = 500, /* closing waits so long for ABORTs that are not sent yet */
};

typedef enum { ROUTE_UNKNOWN, ROUTE_UP, ROUTE_LOST } route_state_t;

typedef struct {
    route_state_t state;
    bool watched;
    bool registered;    /* this connection's registration was seen */
    bool lost_now;      /* found by the running sweep, not yet reported */
    connection_t input; /* that its registration came over */
    int64_t up_ms;      /* when the route came up */
} route_t;

struct engine_link {
    zloop_t *loop;
    engine_link_options_t options;
    receiver_t *input;
    receiver_t *output;
    socket_monitor_t *input_monitor;
    socket_monitor_t *output_monitor;
    route_t *routes;   /* beside options.ranks */
    link_cuts_t *cuts; /* the same */
    turn_t *sweep_turn;
    int sweep_timer;
    int settle_timer;    /* -1: not running */
    int64_t sentinel_ms; /* when the last death sentinel came; 0: never */
    uint64_t sentinels;  /* ever */
    bool death_awaited;  /* a sentinel came, and no route was lost since: said once, should it be forged */
    bool is_no_engine;   /* the output connection whose end is told next */
};

/* clang-format off */
#define HANDSHAKE_FAILED (ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
/* clang-format on */

static route_t *route_of(const engine_link_t *self, uint32_t rank)
{
    int64_t place = rank_map_find(self->options.ranks, self->options.rank_count, rank);
    return place >= 0 ? &self->routes[place] : NULL;
}

bool engine_link_route_up(const engine_link_t *link, uint32_t rank)
{
    const route_t *route = route_of(link, rank);
    return route && route->state == ROUTE_UP;
}

bool engine_link_death_reported(const engine_link_t *link)
{
    return link->sentinel_ms > 0 && zclock_mono() - link->sentinel_ms <= DEATH_MS;
}

uint64_t engine_link_sentinels(const engine_link_t *link)
{
    return link->sentinels;
}

void engine_link_watch(engine_link_t *link, uint32_t rank)
{
    route_t *route = route_of(link, rank);
    if (!route || route->watched)
        return;
    route->watched = true;
    if (route->state != ROUTE_UP)
        turn_schedule(link->sweep_turn);
}

static int send_to(engine_link_t *self, uint32_t rank, wire_request_type_t type, const void *payload,
                   size_t size)
{
    wg_engine_id_t id;
    uint8_t type_byte = (uint8_t)type;
    if (wg_engine_id_from_rank(&id, rank) != WG_OK)
        return -1;
    const wire_bytes_t frames[] = {{id.bytes, sizeof id.bytes}, {&type_byte, 1}, {payload, size}};
    return message_send(receiver_socket(self->input), frames, 3);
}

wg_status_t engine_link_send(engine_link_t *link, uint32_t rank, wire_request_type_t type,
                             const void *payload, size_t size, wg_error_t *error)
{
    if (send_to(link, rank, type, payload, size) == 0)
        return WG_OK;
    if (errno == EAGAIN)
        return WG_FAIL(error, DISPATCHER_CLOSED, rank, "its input queue is full");
    turn_schedule(link->sweep_turn);
    return WG_FAIL(error, DISPATCHER_CLOSED, rank, "it is not connected");
}

static int on_settle_timer(zloop_t *loop, int timer, void *context);

/* A sweep now, and one when libzmq has told the ROUTER, too. */
static void sweep_soon(engine_link_t *self)
{
    turn_schedule(self->sweep_turn);
    if (self->settle_timer == -1)
        self->settle_timer = zloop_timer(self->loop, SETTLE_MS, 1, on_settle_timer, self);
}

/* --- what comes in --- */

static void refuse_registration(engine_link_t *self, wire_bytes_t id, const char *why)
{
    char text[WG_ID_TEXT_SIZE];
    wg_error_t error;
    wg_id_text(text, id.data, id.size);
    WG_FAIL(&error, UNEXPECTED_HANDSHAKE_IDENTITY, text, why);
    faults_report(self->options.faults, FAULTS_INPUT, text, &error);
}

static void report_up(engine_link_t *self, uint32_t rank, route_t *route)
{
    route->state = ROUTE_UP;
    route->up_ms = zclock_mono();
    self->options.events->on_route(self->options.context, rank, true);
}

/* Whoever dialled last under an id has its place (ROUTER_HANDOVER), also an engine that was taken for gone
 * and has come back. libzmq then leaves the other's connection open, but deaf: its engine would never dial
 * again. */
static void make_deaf_dial(route_t *route)
{
    connection_shut(route->input);
    route->input = (connection_t){0};
}

static void report_loss(engine_link_t *self, uint32_t rank, route_t *route)
{
    route->state = ROUTE_LOST;
    route->registered = false;
    route->lost_now = false;
    self->death_awaited = false;
    link_cuts_lost(self->cuts, (uint32_t)(route - self->routes), zclock_mono());
    self->options.events->on_route(self->options.context, rank, false);
}

/* An engine registers once. A registration on a route that is up thus comes from an engine that took the
 * place of another whose loss no sweep has seen; unless a probe found the connection just before its
 * registration was read. */
static bool is_another_engine(const route_t *route)
{
    if (route->state != ROUTE_UP)
        return false;
    return route->registered || zclock_mono() - route->up_ms > LATE_REGISTRATION_MS;
}

static void on_input(void *context, const message_t *message)
{
    engine_link_t *self = context;
    wg_engine_id_t id;
    wire_bytes_t identity = message->count > 0 ? message->frames[0] : (wire_bytes_t){NULL, 0};
    if (wg_engine_id_parse(&id, identity.data, identity.size, NULL) != WG_OK) {
        /* also where ROUTER_HANDOVER leaves what an old connection still had queued: under an id of five
         * bytes */
        refuse_registration(self, identity, "not two bytes");
        return;
    }
    uint32_t rank = wg_engine_id_rank(id);
    route_t *route = route_of(self, rank);
    if (!route) {
        refuse_registration(self, identity, "this client does not serve that rank");
        return;
    }
    if (message->count != 2) {
        refuse_registration(self, identity, "a registration has one frame");
        return;
    }
    if (is_another_engine(route)) {
        receiver_drain(self->output, DRAIN_MAX);
        report_loss(self, rank, route);
    }
    bool was_up = route->state == ROUTE_UP;
    route->state = ROUTE_UP;
    route->watched = true;
    route->registered = true;
    route->input = connection_of(message->source);
    self->options.events->on_registration(self->options.context, rank, message->frames[1]);
    if (!was_up)
        report_up(self, rank, route);
}

static bool is_sentinel(const message_t *message)
{
    static const char sentinel[] = WIRE_ENGINE_CORE_DEAD;
    return message->count == 1 && message->frames[0].size == sizeof sentinel - 1 &&
           memcmp(message->frames[0].data, sentinel, sizeof sentinel - 1) == 0;
}

/* why NULL: the log has it already. */
static void report_cut(engine_link_t *self, uint32_t place, const char *why)
{
    if (self->routes[place].state != ROUTE_UP || !self->options.events->on_cut)
        return;
    if (why)
        log_notice("messages may be lost rank=%u why=%s", self->options.ranks[place], why);
    self->options.events->on_cut(self->options.context, self->options.ranks[place]);
}

/* The place that the message comes from, or -1. Its first over another connection than before is a cut. */
static int64_t note_connection(engine_link_t *self, const message_t *message)
{
    if (!self->options.events->sender_of || message->source <= 0)
        return -1;
    bool is_over;
    int64_t place = link_cuts_find(self->cuts, message->source, &is_over);
    if (is_over) { /* whether there were others with its number since is told before their messages come */
        socket_monitor_read(self->output_monitor);
        place = link_cuts_find(self->cuts, message->source, &is_over);
    }
    if (place >= 0)
        return place;
    int64_t rank = self->options.events->sender_of(self->options.context, message->frames, message->count);
    if (rank >= 0)
        place = rank_map_find(self->options.ranks, self->options.rank_count, (uint32_t)rank);
    if (place >= 0 && link_cuts_moved(self->cuts, (uint32_t)place, message->source))
        report_cut(self, (uint32_t)place, "its outputs come over another connection now");
    return place;
}

static void on_output(void *context, const message_t *message)
{
    engine_link_t *self = context;
    if (is_sentinel(message)) {
        if (!self->death_awaited)
            log_notice("an engine says that it is dying; checking every route");
        self->death_awaited = true;
        self->sentinels++;
        self->sentinel_ms = zclock_mono();
        turn_schedule(self->sweep_turn);
    } else if (message->count == 0) {
        wg_error_t error;
        WG_FAIL(&error, DECODE, "EngineCoreOutputs", (size_t)0, "too many frames");
        faults_report(self->options.faults, FAULTS_OUTPUT, "output", &error);
        bool is_over;
        int64_t place = link_cuts_find(self->cuts, message->source, &is_over);
        if (place >= 0)
            report_cut(self, (uint32_t)place, NULL);
    } else {
        int64_t place = note_connection(self, message);
        if (!self->options.events->on_outputs(self->options.context, message->frames, message->count) &&
            place >= 0)
            report_cut(self, (uint32_t)place, NULL);
    }
}

/* --- routes --- */

/* What the I/O threads have queued for the ROUTER is digested whenever its events are asked for. */
static void digest_commands(const receiver_t *receiver)
{
    int events;
    size_t size = sizeof events;
    zmq_getsockopt(zsock_resolve(receiver_socket(receiver)), ZMQ_EVENTS, &events, &size);
}

/* True where the ROUTER has a connection of that rank; a full queue is one, too. */
static bool probe(engine_link_t *self, uint32_t rank)
{
    static const uint8_t empty_array = 0x90;
    return send_to(self, rank, WIRE_REQUEST_ABORT, &empty_array, 1) == 0 || errno == EAGAIN;
}

/* Notes losses, reports routes that are back. True if any route was lost. */
static bool probe_all(engine_link_t *self)
{
    bool lost = false;
    for (uint32_t i = 0; i < self->options.rank_count; i++) {
        route_t *route = &self->routes[i];
        uint32_t rank = self->options.ranks[i];
        if (!route->watched)
            continue;
        bool up = probe(self, rank);
        route->lost_now = route->state == ROUTE_UP && !up;
        lost = lost || route->lost_now;
        if (route->state != ROUTE_UP && up)
            report_up(self, rank, route);
    }
    return lost;
}

void engine_link_sweep(engine_link_t *link)
{
    digest_commands(link->input);
    if (!probe_all(link))
        return;
    receiver_drain(link->output, DRAIN_MAX);
    for (uint32_t i = 0; i < link->options.rank_count; i++) {
        if (!link->routes[i].lost_now)
            continue;
        make_deaf_dial(&link->routes[i]);
        report_loss(link, link->options.ranks[i], &link->routes[i]);
    }
}

static void on_sweep_turn(void *context)
{
    engine_link_sweep(context);
}

/* A dying engine loses both its connections, so this is judged after a sweep. */
static void report_cuts(engine_link_t *self)
{
    receiver_drain(self->output, DRAIN_MAX); /* what came over a connection before its end is noted */
    for (uint32_t place = 0; place < self->options.rank_count; place++) {
        const char *why = link_cuts_take(self->cuts, place);
        if (why)
            report_cut(self, place, why);
    }
    link_cuts_settled(self->cuts);
}

static int on_sweep_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    engine_link_t *self = context;
    link_cuts_awake(self->cuts, zclock_mono());
    sweep_soon(self);
    return 0;
}

static int on_settle_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    engine_link_t *self = context;
    if (timer != self->settle_timer)
        return 0; /* ended in this turn by another timer: zloop runs it all the same */
    self->settle_timer = -1;
    engine_link_sweep(self);
    report_cuts(self);
    return 0;
}

static void on_input_event(void *context, int event, int value)
{
    engine_link_t *self = context;
    (void)value;
    if (event == ZMQ_EVENT_DISCONNECTED)
        link_cuts_input_ended(self->cuts, zclock_mono());
    sweep_soon(self);
}

static void on_output_event(void *context, int event, int value)
{
    engine_link_t *self = context;
    if (event == ZMQ_EVENT_ACCEPTED) {
        link_cuts_output_accepted(self->cuts, value);
    } else if (event == ZMQ_EVENT_DISCONNECTED) {
        if (!self->is_no_engine)
            link_cuts_output_ended(self->cuts, value, zclock_mono());
        self->is_no_engine = false;
        sweep_soon(self);
    } else {
        self->is_no_engine = true; /* its handshake failed, and its end is the next event */
    }
}

/* --- birth and death --- */

static wg_status_t open_sockets(engine_link_t *self, zloop_t *loop, wg_error_t *error)
{
    const engine_link_options_t *options = &self->options;
    const socket_options_t input = {
        .type = ZMQ_ROUTER,
        .mandatory = true,
        .handover = true, /* else a restarted engine with the same id is never heard (design.md 8) */
        .heartbeat_interval_ms = options->heartbeat_interval_ms,
        .heartbeat_timeout_ms = options->heartbeat_timeout_ms,
        .max_message_bytes = REGISTRATION_MAX,
        .send_hwm = options->send_hwm,
        .linger_ms = LAST_ABORTS_MS,
    };
    const socket_options_t output = {
        .type = ZMQ_PULL,
        .heartbeat_interval_ms = options->heartbeat_interval_ms,
        .heartbeat_timeout_ms = options->heartbeat_timeout_ms,
        .max_message_bytes = options->max_output_bytes,
    };
    wg_status_t status = receiver_bind(&self->output, loop, &output, options->output, on_output, self, error);
    /* the input last: an engine that has just registered may be sent requests at once */
    if (status == WG_OK)
        status = receiver_bind(&self->input, loop, &input, options->input, on_input, self, error);
    if (status == WG_OK)
        status = socket_monitor_new(&self->output_monitor, loop, self->output,
                                    ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | HANDSHAKE_FAILED,
                                    on_output_event, self, error);
    if (status == WG_OK)
        status = socket_monitor_new(&self->input_monitor, loop, self->input,
                                    ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED, on_input_event,
                                    self, error);
    return status;
}

/* How long we may be stopped before an engine may have given up our connection for it. */
static int64_t stop_that_ends(const engine_link_options_t *options)
{
    int64_t silence_ms = options->heartbeat_timeout_ms - options->heartbeat_interval_ms;
    int64_t noise_ms = INT64_C(3) * SWEEP_MS / 2;
    return silence_ms > noise_ms ? silence_ms : noise_ms;
}

wg_status_t engine_link_new(engine_link_t **out, zloop_t *loop, const engine_link_options_t *options,
                            wg_error_t *error)
{
    wg_status_t status = WG_FAIL(error, SYSTEM, "engine link", "out of memory");
    engine_link_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return status;
    self->loop = loop;
    self->options = *options;
    self->sweep_timer = -1;
    self->settle_timer = -1;
    self->routes = calloc(options->rank_count, sizeof *self->routes);
    self->cuts = link_cuts_new(options->rank_count, stop_that_ends(options), zclock_mono());
    self->sweep_turn = turn_new(loop, on_sweep_turn, self);
    if (self->routes && self->cuts && self->sweep_turn)
        status = open_sockets(self, loop, error);
    if (status != WG_OK) {
        engine_link_destroy(&self);
        return status;
    }
    self->sweep_timer = zloop_timer(loop, SWEEP_MS, 0, on_sweep_timer, self);
    *out = self;
    return WG_OK;
}

void engine_link_destroy(engine_link_t **link)
{
    engine_link_t *self = *link;
    if (!self)
        return;
    if (self->sweep_timer != -1)
        zloop_timer_end(self->loop, self->sweep_timer);
    if (self->settle_timer != -1)
        zloop_timer_end(self->loop, self->settle_timer);
    turn_destroy(&self->sweep_turn);
    socket_monitor_destroy(&self->input_monitor);
    socket_monitor_destroy(&self->output_monitor);
    receiver_destroy(&self->input);
    receiver_destroy(&self->output);
    link_cuts_destroy(&self->cuts);
    free(self->routes);
    free(self);
    *link = NULL;
}
