/* A rank gets requests once it has answered a question over the connections that are there now. The route
 * alone says that ours reaches it; but an engine does not learn that we have closed the other one, for
 * outputs, while its host is cut off: what it sends there first is lost, without a trace on our side. So that
 * must not be a request's. */
#include "frontend/client_parts.h"

/* Changes nothing, and every engine answers it, if only with an error, between two steps. One that waits at
 * the startup gate answers all questions when it is through. */
#define QUESTION "is_scheduler_paused"

enum { FIRST_MS = 1000, LAST_MS = 4000 };

void client_ask(client_t *client, uint32_t place)
{
    const client_rank_t *rank = &client->ranks[place];
    msgpack_sbuffer_clear(&client->payload);
    if (wire_utility_encode(&client->payload, rank->client_index, ++client->proof.last_call_id, QUESTION,
                            NULL) == WG_OK)
        (void)!engine_link_send(client->link, dispatcher_rank(rank->dispatcher), WIRE_REQUEST_UTILITY,
                                client->payload.data, client->payload.size,
                                NULL); /* what cannot be sent is not answered, and asked again */
}

bool client_asked(const client_t *client, int64_t call_id)
{
    return call_id <= client->proof.last_call_id;
}

void client_prove(client_t *client, uint32_t place)
{
    client_rank_t *rank = &client->ranks[place];
    dispatcher_set_answered(rank->dispatcher, false);
    rank->proof_call_id = client->proof.last_call_id + 1;
    rank->ask_wait_ms = FIRST_MS;
    rank->ask_due_ms = zclock_mono() + FIRST_MS;
    client_ask(client, place);
}

void client_hurry(client_t *client, uint32_t place)
{
    client_rank_t *rank = &client->ranks[place];
    if (dispatcher_answered(rank->dispatcher))
        return;
    rank->ask_wait_ms = FIRST_MS;
    rank->ask_due_ms = zclock_mono() + FIRST_MS;
}

void client_answered(client_t *client, uint32_t place, int64_t call_id)
{
    client_rank_t *rank = &client->ranks[place];
    if (call_id < rank->proof_call_id)
        return; /* to a question over connections that are gone */
    dispatcher_set_answered(rank->dispatcher, true);
    client_settle(client, place);
}

static int on_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    client_t *self = context;
    int64_t now_ms = zclock_mono();
    for (uint32_t place = 0; place < self->frontend->rank_count; place++) {
        client_rank_t *rank = &self->ranks[place];
        if (dispatcher_answered(rank->dispatcher) || now_ms < rank->ask_due_ms ||
            !engine_link_route_up(self->link, dispatcher_rank(rank->dispatcher)))
            continue;
        rank->ask_wait_ms = 2 * rank->ask_wait_ms < LAST_MS ? 2 * rank->ask_wait_ms : LAST_MS;
        rank->ask_due_ms = now_ms + rank->ask_wait_ms;
        client_ask(self, place);
    }
    return 0;
}

void client_proof_open(client_t *client)
{
    client->proof.timer = zloop_timer(client->loop, FIRST_MS, 0, on_timer, client);
}

void client_proof_close(client_t *client)
{
    if (client->proof.timer != -1)
        zloop_timer_end(client->loop, client->proof.timer);
}
