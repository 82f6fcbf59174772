/* The ROUTER has no ROUTER_HANDOVER, on purpose: while an engine that loads its model holds the connection of
 * its id, nobody else can speak under that id, so a HELLO in state HELLO is from an engine that was
 * restarted. The heartbeats free the id of a host that vanished. An engine that is READY has closed this
 * connection; whether it lives, the client slot's route tells. */
#include "coordinator/handshake.h"

#include "common/connection.h"
#include "common/log.h"
#include "common/receiver.h"
#include "common/wire_handshake.h"

enum { MESSAGE_MAX = 1 << 16, OFFER_MS = 1000, UNREAD_MAX = 1000 };

struct handshake {
    handshake_options_t options;
    receiver_t *receiver;
    msgpack_sbuffer init;
    zloop_t *loop;
    int offer_timer;
    connection_t *connections; /* by rank: the one that its last HELLO came over */
};

/* False where no engine of that rank is connected. */
static bool try_init(handshake_t *self, uint32_t rank)
{
    wg_engine_id_t id;
    wg_error_t error;
    msgpack_sbuffer_clear(&self->init);
    wg_status_t status = wg_engine_id_from_rank(&id, rank);
    if (status == WG_OK)
        status = wire_init_encode(&self->init, self->options.config, rank, &error);
    if (status != WG_OK) {
        log_error("no INIT rank=%u why=%s", rank, error.message);
        return false;
    }
    const wire_bytes_t frames[] = {{id.bytes, sizeof id.bytes},
                                   {(const uint8_t *)self->init.data, self->init.size}};
    return message_send(receiver_socket(self->receiver), frames, 2) == 0;
}

static void send_init(handshake_t *self, uint32_t rank)
{
    if (try_init(self, rank))
        return;
    log_warning("engine left before its INIT rank=%u", rank);
    rank_table_left(self->options.ranks, rank, zclock_mono());
}

/* An engine says HELLO once, and waits. If that went to an earlier life of ours, or was lost with its
 * connection, it is connected and silent. One that has its INIT and loads does not read a second. */
static void offer_inits(handshake_t *self)
{
    for (uint32_t rank = 0; rank < rank_table_count(self->options.ranks); rank++) {
        const rank_table_rank_t *state = rank_table_get(self->options.ranks, rank);
        bool expected = state->state == WG_RANK_ABSENT || state->state == WG_RANK_LOST;
        if (!expected || state->route_up || !try_init(self, rank))
            continue;
        log_notice("engine is connected, but its HELLO was lost; it has its INIT now, perhaps again rank=%u",
                   rank);
        self->connections[rank] = (connection_t){0}; /* which one it went out on is not told */
        rank_table_offered(self->options.ranks, rank, zclock_mono());
    }
}

/* The connection of an engine that dialled has ended before its READY. */
static bool has_hung_up(const handshake_t *self, uint32_t rank)
{
    return rank_table_get(self->options.ranks, rank)->state == WG_RANK_HELLO &&
           self->connections[rank].fd != 0 && !connection_is_open(self->connections[rank]);
}

/* Where it had not registered it died while it loaded, and no route of the client slot tells. If it lives
 * after all, and only the connection was lost, it dials again and is offered its INIT. One that had
 * registered is found by its route, but its READY may have been lost with the connection, and is said once.
 */
static void note_hang_up(handshake_t *self, uint32_t rank)
{
    self->connections[rank] = (connection_t){0};
    if (rank_table_get(self->options.ranks, rank)->registered) {
        rank_table_ready_lost(self->options.ranks, rank);
        return;
    }
    log_warning("engine left while it loaded rank=%u", rank);
    rank_table_left(self->options.ranks, rank, zclock_mono());
}

static void find_those_that_hung_up(handshake_t *self)
{
    uint32_t count = rank_table_count(self->options.ranks);
    uint32_t first = 0;
    while (first < count && !has_hung_up(self, first))
        first++;
    /* What the engine sent before it closed the connection may be unread, such as its READY. */
    if (first == count || receiver_drain(self->receiver, UNREAD_MAX) == UNREAD_MAX)
        return;
    for (uint32_t rank = first; rank < count; rank++) {
        if (has_hung_up(self, rank))
            note_hang_up(self, rank);
    }
}

static int on_offer_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    handshake_t *self = context;
    offer_inits(self);
    find_those_that_hung_up(
        self); /* last: the ROUTER may notice later than we that their connections ended */
    return 0;
}

static wg_status_t handle_hello(handshake_t *self, uint32_t rank, int source, wg_error_t *error)
{
    rank_table_t *ranks = self->options.ranks;
    self->connections[rank] = source >= 0 ? connection_of(source) : (connection_t){0};
    if (rank_table_get(ranks, rank)->route_up)
        engine_link_sweep(self->options.slot); /* a restarted engine may dial before its loss was seen */
    wg_status_t status = rank_table_hello(ranks, rank, zclock_mono(), error);
    if (status == WG_OK)
        send_init(self, rank);
    return status;
}

static wg_status_t handle_message(handshake_t *self, uint32_t rank, const message_t *message,
                                  wg_error_t *error)
{
    wire_handshake_t handshake;
    if (message->count != 2)
        return WG_FAIL(error, UNEXPECTED_HANDSHAKE_MESSAGE, rank, "not one frame");
    wg_status_t status =
        wire_handshake_decode(&handshake, message->frames[1].data, message->frames[1].size, error);
    if (status != WG_OK)
        return status;
    if (handshake.kind == WIRE_HANDSHAKE_HELLO)
        return handle_hello(self, rank, message->source, error);
    return rank_table_ready(self->options.ranks, rank, handshake.parallel_config_hash, zclock_mono(), error);
}

static void on_message(void *context, const message_t *message)
{
    handshake_t *self = context;
    wire_bytes_t identity = message->count > 0 ? message->frames[0] : (wire_bytes_t){NULL, 0};
    uint32_t rank = 0;
    wg_error_t error;
    wg_status_t status = rank_table_identify(self->options.ranks, identity, &rank, &error);
    if (status == WG_OK)
        status = handle_message(self, rank, message, &error);
    if (status != WG_OK) {
        char peer[WG_ID_TEXT_SIZE];
        wg_id_text(peer, identity.data, identity.size);
        faults_report(self->options.faults, FAULTS_HANDSHAKE, peer, &error);
    }
}

void handshake_rank_lost(handshake_t *handshake, uint32_t rank)
{
    wg_error_t error;
    if (!rank_table_waiting_hello(handshake->options.ranks, rank))
        return;
    if (rank_table_hello(handshake->options.ranks, rank, zclock_mono(), &error) == WG_OK)
        send_init(handshake, rank);
}

wg_status_t handshake_new(handshake_t **out, zloop_t *loop, const handshake_options_t *options,
                          wg_error_t *error)
{
    handshake_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return WG_FAIL(error, SYSTEM, "handshake", "out of memory");
    self->options = *options;
    self->offer_timer = -1;
    self->loop = loop;
    msgpack_sbuffer_init(&self->init);
    const socket_options_t router = {
        .type = ZMQ_ROUTER,
        .mandatory = true,
        .heartbeat_interval_ms = options->config->timeouts.heartbeat_interval_ms,
        .heartbeat_timeout_ms = options->config->timeouts.heartbeat_timeout_ms,
        .max_message_bytes = MESSAGE_MAX,
    };
    wg_status_t status = WG_FAIL(error, SYSTEM, "handshake", "out of memory");
    self->connections = calloc(rank_table_count(options->ranks), sizeof *self->connections);
    if (self->connections)
        status = receiver_bind(&self->receiver, loop, &router, &options->config->coordinator.handshake,
                               on_message, self, error);
    if (status == WG_OK) {
        self->offer_timer = zloop_timer(loop, OFFER_MS, 0, on_offer_timer, self);
        *out = self;
    } else {
        handshake_destroy(&self);
    }
    return status;
}

void handshake_destroy(handshake_t **handshake)
{
    handshake_t *self = *handshake;
    if (!self)
        return;
    if (self->offer_timer != -1)
        zloop_timer_end(self->loop, self->offer_timer);
    receiver_destroy(&self->receiver);
    msgpack_sbuffer_destroy(&self->init);
    free(self->connections);
    free(self);
    *handshake = NULL;
}
