#include "tests/fake_engine/collective_member.h"

#include "common/log.h"
#include "tests/fake_engine/collective_frame.h"

#include <errno.h>

struct collective_member {
    rank_host_t *host;
    collective_handlers_t handlers;
    zmq_pollitem_t item; /* a ZMQ DEALER */
    bool polled;
    uint64_t step;
};

static wg_status_t send_frame(collective_member_t *member, const collective_frame_t *frame, wg_error_t *error)
{
    msgpack_sbuffer *buffer = &member->host->buffers.frame;
    wg_status_t status = collective_frame_encode(buffer, frame, error);
    if (status == WG_OK)
        status = engine_socket_send(member->item.socket, buffer->data, buffer->size, error);
    msgpack_sbuffer_clear(buffer);
    return status;
}

wg_status_t collective_member_enter(collective_member_t *member, lockstep_vote_t vote, wg_error_t *error)
{
    const collective_frame_t frame = {.kind = COLLECTIVE_ENTER, .step = member->step, .vote = vote};
    return send_frame(member, &frame, error);
}

wg_status_t collective_member_ask(collective_member_t *member, uint32_t *missing, uint32_t count,
                                  wg_error_t *error)
{
    const collective_frame_t frame = {
        .kind = COLLECTIVE_ASK, .step = member->step, .ranks = missing, .rank_count = count};
    return send_frame(member, &frame, error);
}

/* An answer may be late, when its step is already done. */
static bool serve(collective_member_t *member, const collective_frame_t *frame)
{
    const collective_handlers_t *handlers = &member->handlers;
    if (frame->step != member->step)
        return true;
    if (frame->kind == COLLECTIVE_MISSING)
        return handlers->on_missing(handlers->context, frame->ranks, frame->rank_count);
    if (frame->kind != COLLECTIVE_RELEASE)
        return true;
    member->step++;
    return handlers->on_release(handlers->context, frame->vote);
}

/* What is not a frame of ours came from something else that listens there, and is left alone. */
static int on_message(zloop_t *loop, zmq_pollitem_t *item, void *argument)
{
    (void)loop;
    collective_member_t *member = argument;
    engine_message_t message;
    collective_frame_t frame;
    wg_error_t error;
    if (!engine_socket_receive(item->socket, &message))
        return 0;
    wg_status_t status = collective_frame_decode(&frame, zmq_msg_data(&message.frames[0]),
                                                 zmq_msg_size(&message.frames[0]), &error);
    engine_message_close(&message);
    if (status != WG_OK) {
        log_warning("collective_frame reason=\"%s\"", error.message);
        return 0;
    }
    bool going = serve(member, &frame);
    free(frame.ranks);
    return going ? 0 : -1;
}

static wg_status_t join(collective_member_t *member, wg_error_t *error)
{
    const options_t *options = member->host->options;
    const collective_frame_t frame = {
        .kind = COLLECTIVE_JOIN, .ranks = options->ranks, .rank_count = (uint32_t)options->rank_count};
    wg_status_t status = send_frame(member, &frame, error);
    member->polled =
        status == WG_OK && zloop_poller(member->host->loop, &member->item, on_message, member) == 0;
    if (status == WG_OK && !member->polled)
        status = WG_FAIL(error, SYSTEM, "watching a socket", "no more pollers");
    return status;
}

wg_status_t collective_member_new(collective_member_t **out, rank_host_t *host, const char *address,
                                  const collective_handlers_t *handlers, wg_error_t *error)
{
    *out = NULL;
    collective_member_t *member = calloc(1, sizeof *member);
    if (!member)
        return WG_FAIL(error, SYSTEM, "joining the group", strerror(errno));
    member->host = host;
    member->handlers = *handlers;
    member->item.events = ZMQ_POLLIN;
    wg_status_t status = engine_socket_open(&member->item.socket, ZMQ_DEALER, NULL, address, 0, error);
    if (status == WG_OK)
        status = join(member, error);
    if (status != WG_OK)
        collective_member_destroy(&member);
    *out = member;
    return status;
}

void collective_member_destroy(collective_member_t **member)
{
    collective_member_t *self = *member;
    if (!self)
        return;
    if (self->polled)
        zloop_poller_end(self->host->loop, &self->item);
    engine_socket_close(&self->item.socket);
    free(self);
    *member = NULL;
}
