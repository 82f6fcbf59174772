#include "tests/fake_engine/rank_client.h"

#include <errno.h>

typedef struct {
    rank_client_t *clients;
    void *socket;
    socket_watch_t watch;
    uint32_t index; /* which the requests of a correct client repeat */
} rank_input_t;

struct rank_client {
    rank_host_t *host;
    uint32_t rank;
    engine_t *engine;
    rank_output_t *output;
    rank_lockstep_t *lockstep; /* NULL: an independent rank */
    uint32_t count;
    rank_input_t inputs[];
};

static wg_status_t on_add(rank_input_t *input, const void *data, size_t size, wg_error_t *error)
{
    rank_client_t *clients = input->clients;
    uint32_t vocab_size = clients->host->options->engine.vocab_size;
    engine_request_t *request;
    wg_status_t status = engine_decode_add(&request, vocab_size, clients->count, data, size, error);
    if (status != WG_OK)
        return status;
    status = engine_add(clients->engine, request, error);
    if (status != WG_OK) {
        engine_request_destroy(&request);
        return status;
    }
    events_add(&clients->host->events, clients->rank, request);
    return clients->lockstep ? rank_lockstep_add(clients->lockstep, request->current_wave, error) : WG_OK;
}

static wg_status_t on_abort(rank_input_t *input, const void *data, size_t size, wg_error_t *error)
{
    rank_client_t *clients = input->clients;
    wire_text_t *ids;
    uint32_t count;
    wg_status_t status = engine_decode_abort(&ids, &count, data, size, error);
    for (uint32_t i = 0; i < count; i++) {
        const engine_request_t *request = engine_abort(clients->engine, ids[i]);
        if (request)
            events_abort(&clients->host->events, clients->rank, request);
        else
            events_abort_unknown(&clients->host->events, clients->rank, ids[i], input->index);
    }
    free(ids);
    return status;
}

static wg_status_t on_utility(rank_input_t *input, const void *data, size_t size, wg_error_t *error)
{
    rank_client_t *clients = input->clients;
    engine_call_t call;
    wg_status_t status = engine_decode_utility(&call, clients->count, data, size, error);
    if (status != WG_OK)
        return status;
    if (clients->lockstep)
        return rank_lockstep_call(clients->lockstep, &call, error);
    const engine_reply_t reply = {.call_id = call.call_id, .method = call.method};
    return rank_output_reply(clients->output, call.client_index, &reply, error);
}

static wg_status_t on_start_dp_wave(rank_input_t *input, const void *data, size_t size, wg_error_t *error)
{
    engine_wave_t wave;
    wg_status_t status = engine_decode_wave(&wave, data, size, error);
    if (status == WG_OK)
        rank_client_start_wave(input->clients, &wave);
    return status;
}

static const struct {
    uint8_t type;
    wg_status_t (*serve)(rank_input_t *input, const void *data, size_t size, wg_error_t *error);
} request_types[] = {
    {ENGINE_REQUEST_ADD, on_add},
    {ENGINE_REQUEST_ABORT, on_abort},
    {ENGINE_REQUEST_START_DP_WAVE, on_start_dp_wave},
    {ENGINE_REQUEST_UTILITY, on_utility},
};

static wg_status_t serve_message(rank_input_t *input, engine_message_t *message, wg_error_t *error)
{
    zmq_msg_t *payload = &message->frames[1];
    if (message->count != 2)
        return WG_FAIL(error, UNSUPPORTED_AUX_FRAMES, "a request is a type and one payload");
    for (size_t i = 0; i < sizeof request_types / sizeof *request_types; i++) {
        if (engine_frame_is(&message->frames[0], &request_types[i].type, 1))
            return request_types[i].serve(input, zmq_msg_data(payload), zmq_msg_size(payload), error);
    }
    return WG_FAIL(error, DECODE, "request type", (size_t)0, "not one byte from 00 to 03");
}

/* What a message has ended at once (an abort, a prompt that cannot be served) does not wait for a step. */
static wg_status_t on_message(void *context, engine_message_t *message, wg_error_t *error)
{
    rank_input_t *input = context;
    rank_client_t *clients = input->clients;
    wg_status_t status = serve_message(input, message, error);
    if (status == WG_OK)
        status = rank_output_send(clients->output, clients->engine, clients->host->options->engine.vocab_size,
                                  error);
    events_finished(&clients->host->events, clients->rank, clients->engine);
    engine_clear_outputs(clients->engine);
    return status;
}

static socket_result_t on_input(void *context)
{
    rank_input_t *input = context;
    rank_client_t *clients = input->clients;
    rank_host_t *host = clients->host;
    wg_error_t error;
    socket_result_t result = rank_host_read(host, clients->rank, &input->socket, on_message, input);
    if (result == SOCKET_STOP)
        return result;
    if (clients->lockstep)
        return rank_lockstep_served(clients->lockstep) ? result : SOCKET_STOP;
    if (engine_busy(clients->engine))
        host->on_work(host->context);
    wg_status_t status = rank_output_send_counts(clients->output, clients->engine, &error);
    return rank_host_passed(host, clients->rank, status, &error) ? result : SOCKET_STOP;
}

bool rank_client_busy(const rank_client_t *clients)
{
    return !clients->lockstep && engine_busy(clients->engine);
}

/* Independent ranks have no wave to start. */
void rank_client_start_wave(rank_client_t *clients, const engine_wave_t *wave)
{
    if (clients->lockstep)
        rank_lockstep_start(clients->lockstep, wave);
}

bool rank_client_served(rank_client_t *clients)
{
    return !clients->lockstep || rank_lockstep_served(clients->lockstep);
}

bool rank_client_read(rank_client_t *clients)
{
    for (uint32_t i = 0; i < clients->count; i++) {
        rank_input_t *input = &clients->inputs[i];
        if (!rank_host_drain(clients->host, clients->rank, &input->socket, on_message, input))
            return false;
    }
    return true;
}

wg_status_t rank_client_step(rank_client_t *clients, wg_error_t *error)
{
    engine_step(clients->engine);
    wg_status_t status = rank_output_send_step(clients->output, clients->engine,
                                               clients->host->options->engine.vocab_size, error);
    events_finished(&clients->host->events, clients->rank, clients->engine);
    engine_clear_outputs(clients->engine);
    return status == WG_OK ? rank_output_send_counts(clients->output, clients->engine, error) : status;
}

static wg_status_t encode_registration(const rank_client_t *clients, const engine_init_t *init,
                                       msgpack_sbuffer *frame, wg_error_t *error)
{
    char instance_id[48];
    snprintf(instance_id, sizeof instance_id, "fake-%ld-%u", (long)getpid(), clients->rank);
    const engine_registration_t registration = {
        .engine = &clients->host->options->engine,
        .num_gpu_blocks = OPTIONS_NUM_GPU_BLOCKS,
        .block_size = OPTIONS_BLOCK_SIZE,
        .rank = clients->rank,
        .data_parallel_size = init->data_parallel_size,
        .stats_address = init->stats_address,
        .instance_id = instance_id,
    };
    return engine_encode_registration(frame, &registration, error);
}

static wg_status_t open_input(rank_client_t *clients, uint32_t index, wg_engine_id_t id, const char *address,
                              const msgpack_sbuffer *registration, wg_error_t *error)
{
    rank_input_t *input = &clients->inputs[index];
    input->clients = clients;
    input->index = index;
    wg_status_t status = engine_socket_open(&input->socket, ZMQ_DEALER, &id, address, 0, error);
    if (status == WG_OK)
        status = engine_socket_send(input->socket, registration->data, registration->size, error);
    return status;
}

static wg_status_t open_inputs(rank_client_t *clients, wg_engine_id_t id, const engine_init_t *init,
                               wg_error_t *error)
{
    msgpack_sbuffer *frame = &clients->host->buffers.frame;
    wg_status_t status = encode_registration(clients, init, frame, error);
    for (uint32_t i = 0; status == WG_OK && i < init->client_count; i++)
        status = open_input(clients, i, id, init->inputs[i], frame, error);
    msgpack_sbuffer_clear(frame);
    return status;
}

wg_status_t rank_client_new(rank_client_t **out, rank_host_t *host, wg_engine_id_t id,
                            const engine_init_t *init, const rank_sockets_t *sockets, wg_error_t *error)
{
    *out = NULL;
    rank_client_t *clients = calloc(1, sizeof *clients + init->client_count * sizeof *clients->inputs);
    if (!clients)
        return WG_FAIL(error, SYSTEM, "connecting to the clients", strerror(errno));
    clients->host = host;
    clients->rank = wg_engine_id_rank(id);
    clients->count = init->client_count;
    clients->engine = engine_new(&host->options->engine);
    wg_status_t status = WG_OK;
    if (!clients->engine)
        status = WG_FAIL(error, SYSTEM, "connecting to the clients", strerror(ENOMEM));
    if (status == WG_OK)
        status = open_inputs(clients, id, init, error);
    if (status == WG_OK)
        status = rank_output_new(&clients->output, &host->buffers, clients->rank, init, error);
    if (status == WG_OK && init->lockstep)
        status = rank_lockstep_new(&clients->lockstep, host, clients->rank, init, clients->engine,
                                   clients->output, sockets, error);
    if (status != WG_OK)
        rank_client_destroy(&clients);
    *out = clients;
    return status;
}

wg_status_t rank_client_serve(rank_client_t *clients, wg_error_t *error)
{
    wg_status_t status = WG_OK;
    for (uint32_t i = 0; status == WG_OK && i < clients->count; i++) {
        rank_input_t *input = &clients->inputs[i];
        input->watch.on_ready = on_input;
        input->watch.context = input;
        status = socket_set_add(clients->host->sockets, &input->watch, input->socket, error);
    }
    return status;
}

void rank_client_ignore(rank_client_t *clients)
{
    for (uint32_t i = 0; i < clients->count; i++)
        socket_set_remove(clients->host->sockets, &clients->inputs[i].watch);
}

void rank_client_say_dead(rank_client_t *clients)
{
    rank_output_say_dead(clients->output);
}

void rank_client_destroy(rank_client_t **clients)
{
    rank_client_t *self = *clients;
    if (!self)
        return;
    rank_client_ignore(self);
    for (uint32_t i = 0; i < self->count; i++)
        engine_socket_close(&self->inputs[i].socket);
    rank_lockstep_destroy(&self->lockstep);
    rank_output_destroy(&self->output);
    engine_destroy(&self->engine);
    free(self);
    *clients = NULL;
}
