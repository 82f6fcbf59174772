#include "tests/fake_engine/collective_hub.h"

#include "common/log.h"
#include "tests/fake_engine/collective_frame.h"
#include "tests/fake_engine/collective_table.h"

#include <errno.h>

#define NO_TIMER (-1)
#define MESSAGES_PER_TURN 64
#define OWN_PROCESS UINT64_MAX /* no routing id becomes this number */
#define ROUTING_ID_SIZE 5u     /* of a DEALER that has not chosen its own */

typedef struct {
    uint8_t bytes[ROUTING_ID_SIZE];
} peer_id_t;

struct collective_hub {
    rank_host_t *host;
    collective_handlers_t handlers;
    collective_table_t *table;
    uint32_t *missing;   /* room for the whole group */
    zmq_pollitem_t item; /* a ZMQ ROUTER; its socket is NULL where the whole group is in this process */
    bool polled;
    peer_id_t *peers; /* that joined */
    uint32_t peer_count;
    uint64_t step;
    int64_t released_ms;
    int pace_timer;
};

static uint64_t member_of(peer_id_t id)
{
    uint64_t member = 0;
    memcpy(&member, id.bytes, sizeof id.bytes);
    return member;
}

static void send_to(collective_hub_t *hub, peer_id_t to, const msgpack_sbuffer *frame)
{
    /* A ROUTER drops what is for a process that is gone, and has no high water mark here. */
    if (zmq_send(hub->item.socket, to.bytes, sizeof to.bytes, ZMQ_DONTWAIT | ZMQ_SNDMORE) >= 0)
        zmq_send(hub->item.socket, frame->data, frame->size, ZMQ_DONTWAIT);
}

static bool encode(collective_hub_t *hub, const collective_frame_t *frame)
{
    wg_error_t error;
    wg_status_t status = collective_frame_encode(&hub->host->buffers.frame, frame, &error);
    return rank_host_passed(hub->host, 0, status, &error);
}

static bool release(collective_hub_t *hub)
{
    const lockstep_vote_t result = collective_table_release(hub->table);
    const collective_frame_t frame = {.kind = COLLECTIVE_RELEASE, .step = hub->step, .vote = result};
    bool encoded = encode(hub, &frame);
    for (uint32_t i = 0; encoded && i < hub->peer_count; i++)
        send_to(hub, hub->peers[i], &hub->host->buffers.frame);
    msgpack_sbuffer_clear(&hub->host->buffers.frame);
    hub->step++;
    hub->released_ms = zclock_mono();
    return encoded && hub->handlers.on_release(hub->handlers.context, result);
}

static int on_pace(zloop_t *loop, int timer, void *argument)
{
    (void)loop;
    (void)timer;
    collective_hub_t *hub = argument;
    hub->pace_timer = NO_TIMER;
    return release(hub) ? 0 : -1;
}

/* Always by way of a timer, so that the release of one step is not called from that of the one before. */
static wg_status_t pace(collective_hub_t *hub, wg_error_t *error)
{
    if (!collective_table_complete(hub->table) || hub->pace_timer != NO_TIMER)
        return WG_OK;
    int64_t wait_ms = hub->released_ms + (int64_t)hub->host->options->step_ms - zclock_mono();
    hub->pace_timer = zloop_timer(hub->host->loop, wait_ms > 0 ? (size_t)wait_ms : 0, 1, on_pace, hub);
    return hub->pace_timer >= 0 ? WG_OK : WG_FAIL(error, SYSTEM, "starting a timer", strerror(ENOMEM));
}

wg_status_t collective_hub_enter(collective_hub_t *hub, lockstep_vote_t vote, wg_error_t *error)
{
    collective_table_enter(hub->table, OWN_PROCESS, vote);
    return pace(hub, error);
}

bool collective_hub_ask(collective_hub_t *hub, const uint32_t *missing, uint32_t count)
{
    collective_table_enter_all_but(hub->table, OWN_PROCESS, missing, count);
    uint32_t missing_count = collective_table_missing(hub->table, hub->missing);
    return hub->handlers.on_missing(hub->handlers.context, hub->missing, missing_count);
}

static void on_join(collective_hub_t *hub, peer_id_t from, const collective_frame_t *frame)
{
    uint64_t member = member_of(from);
    bool is_new = frame->rank_count > 0 && !collective_table_is_member(hub->table, member);
    if (is_new && collective_table_join(hub->table, member, frame->ranks, frame->rank_count))
        hub->peers[hub->peer_count++] = from;
    else
        log_warning("collective_join refused first_rank=%u reason=\"outside the group, or joined before: a "
                    "group restarts as a whole\"",
                    frame->rank_count > 0 ? frame->ranks[0] : 0);
}

static bool on_ask(collective_hub_t *hub, peer_id_t from, const collective_frame_t *frame)
{
    collective_table_enter_all_but(hub->table, member_of(from), frame->ranks, frame->rank_count);
    const collective_frame_t answer = {
        .kind = COLLECTIVE_MISSING,
        .step = hub->step,
        .ranks = hub->missing,
        .rank_count = collective_table_missing(hub->table, hub->missing),
    };
    bool encoded = encode(hub, &answer);
    if (encoded)
        send_to(hub, from, &hub->host->buffers.frame);
    msgpack_sbuffer_clear(&hub->host->buffers.frame);
    return encoded;
}

static bool serve(collective_hub_t *hub, peer_id_t from, const collective_frame_t *frame)
{
    wg_error_t error;
    if (frame->kind == COLLECTIVE_JOIN)
        on_join(hub, from, frame);
    if (frame->step != hub->step || !collective_table_is_member(hub->table, member_of(from)))
        return true;
    if (frame->kind == COLLECTIVE_ASK)
        return on_ask(hub, from, frame);
    if (frame->kind != COLLECTIVE_ENTER)
        return true;
    collective_table_enter(hub->table, member_of(from), frame->vote);
    return rank_host_passed(hub->host, 0, pace(hub, &error), &error);
}

/* Anything may dial in, so what is not a frame of ours is left alone. */
static bool serve_message(collective_hub_t *hub, engine_message_t *message)
{
    peer_id_t from;
    collective_frame_t frame;
    wg_error_t error;
    if (message->count != 2 || zmq_msg_size(&message->frames[0]) != sizeof from.bytes)
        return true;
    memcpy(from.bytes, zmq_msg_data(&message->frames[0]), sizeof from.bytes);
    if (collective_frame_decode(&frame, zmq_msg_data(&message->frames[1]), zmq_msg_size(&message->frames[1]),
                                &error) != WG_OK) {
        log_warning("collective_frame reason=\"%s\"", error.message);
        return true;
    }
    bool going = serve(hub, from, &frame);
    free(frame.ranks);
    return going;
}

static int on_messages(zloop_t *loop, zmq_pollitem_t *item, void *argument)
{
    (void)loop;
    collective_hub_t *hub = argument;
    bool going = true;
    engine_message_t message;
    for (unsigned i = 0; going && i < MESSAGES_PER_TURN; i++) {
        if (!engine_socket_receive(item->socket, &message))
            break;
        going = serve_message(hub, &message);
        engine_message_close(&message);
    }
    return going ? 0 : -1;
}

static wg_status_t listen_at(collective_hub_t *hub, const char *address, wg_error_t *error)
{
    wg_status_t status = engine_socket_listen(&hub->item.socket, ZMQ_ROUTER, address, error);
    if (status != WG_OK)
        return status;
    hub->item.events = ZMQ_POLLIN;
    hub->polled = zloop_poller(hub->host->loop, &hub->item, on_messages, hub) == 0;
    return hub->polled ? WG_OK : WG_FAIL(error, SYSTEM, "watching a socket", "no more pollers");
}

static wg_status_t start(collective_hub_t *hub, const char *address, uint32_t size, wg_error_t *error)
{
    const options_t *options = hub->host->options;
    hub->table = collective_table_new(size);
    hub->missing = calloc(size, sizeof *hub->missing);
    hub->peers = calloc(size, sizeof *hub->peers);
    if (!hub->table || !hub->missing || !hub->peers)
        return WG_FAIL(error, SYSTEM, "forming the group", strerror(ENOMEM));
    if (!collective_table_join(hub->table, OWN_PROCESS, options->ranks, (uint32_t)options->rank_count))
        return WG_FAIL(error, SYSTEM, "forming the group", "--ranks names one that is not in it");
    return options->rank_count < size ? listen_at(hub, address, error) : WG_OK;
}

wg_status_t collective_hub_new(collective_hub_t **out, rank_host_t *host, const char *address, uint32_t size,
                               const collective_handlers_t *handlers, wg_error_t *error)
{
    *out = NULL;
    collective_hub_t *hub = calloc(1, sizeof *hub);
    if (!hub)
        return WG_FAIL(error, SYSTEM, "forming the group", strerror(errno));
    hub->host = host;
    hub->handlers = *handlers;
    hub->pace_timer = NO_TIMER;
    wg_status_t status = start(hub, address, size, error);
    if (status != WG_OK)
        collective_hub_destroy(&hub);
    *out = hub;
    return status;
}

void collective_hub_destroy(collective_hub_t **hub)
{
    collective_hub_t *self = *hub;
    if (!self)
        return;
    if (self->polled)
        zloop_poller_end(self->host->loop, &self->item);
    engine_socket_close(&self->item.socket);
    collective_table_destroy(&self->table);
    free(self->missing);
    free(self->peers);
    free(self);
    *hub = NULL;
}
