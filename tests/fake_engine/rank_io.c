#include "tests/fake_engine/rank_io.h"

#include "tests/fake_engine/rank_client.h"

#include <errno.h>
#include <inttypes.h>

/* READY is sent just before its socket closes. */
#define READY_LINGER_MS 1000

#define SUBSCRIBE_ALL "\x01"
#define GATE_OPEN "READY"

typedef enum { RANK_GREETING, RANK_LOADING, RANK_GATED, RANK_SERVING } rank_phase_t;

struct rank_io {
    rank_host_t *host;
    uint32_t rank;
    wg_engine_id_t id;
    rank_phase_t phase;
    engine_init_t init;
    void *handshake;
    socket_watch_t handshake_watch;
    void *coordinator; /* the XSUB, or NULL */
    socket_watch_t coordinator_watch;
    rank_client_t *clients; /* NULL before GATED */
};

static wg_status_t send_status(rank_io_t *io, const char *text, const char *hash, wg_error_t *error)
{
    msgpack_sbuffer *frame = &io->host->buffers.frame;
    wg_status_t status = engine_encode_status(frame, text, hash, error);
    if (status == WG_OK)
        status = engine_socket_send(io->handshake, frame->data, frame->size, error);
    msgpack_sbuffer_clear(frame);
    return status;
}

static wg_status_t begin_serving(rank_io_t *io, wg_error_t *error)
{
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, io->init.config_hash);
    wg_status_t status = send_status(io, "READY", io->init.lockstep ? hash : NULL, error);
    if (status != WG_OK)
        return status;
    engine_socket_set_linger(io->handshake, READY_LINGER_MS);
    engine_socket_close(&io->handshake);
    io->phase = RANK_SERVING;
    events_rank(&io->host->events, "ready", io->rank);
    return rank_client_serve(io->clients, error);
}

/* A real engine asserts that the first broadcast after its subscription is READY, and dies of any other. */
static wg_status_t on_broadcast(void *context, engine_message_t *message, wg_error_t *error)
{
    static const uint8_t start_dp_wave = ENGINE_REQUEST_START_DP_WAVE;
    rank_io_t *io = context;
    zmq_msg_t *payload = &message->frames[1];
    engine_wave_t wave;
    bool is_ready = message->count == 1 && engine_frame_is(&message->frames[0], GATE_OPEN, strlen(GATE_OPEN));
    if (is_ready)
        return io->phase == RANK_GATED ? begin_serving(io, error) : WG_OK;
    if (io->phase == RANK_GATED)
        return WG_FAIL(error, DECODE, "broadcast", (size_t)0, "not READY, which must be an engine's first");
    if (message->count != 2 || !engine_frame_is(&message->frames[0], &start_dp_wave, 1))
        return WG_FAIL(error, DECODE, "broadcast", (size_t)0, "neither READY nor START_DP_WAVE");
    wg_status_t status = engine_decode_wave(&wave, zmq_msg_data(payload), zmq_msg_size(payload), error);
    if (status == WG_OK)
        rank_client_start_wave(io->clients, &wave);
    return status;
}

static socket_result_t on_coordinator(void *context)
{
    rank_io_t *io = context;
    socket_result_t result = rank_host_read(io->host, io->rank, &io->coordinator, on_broadcast, io);
    bool going = result != SOCKET_STOP && (io->phase != RANK_SERVING || rank_client_served(io->clients));
    return going ? result : SOCKET_STOP;
}

static wg_status_t watch_coordinator(rank_io_t *io, wg_error_t *error)
{
    io->coordinator_watch.on_ready = on_coordinator;
    io->coordinator_watch.context = io;
    return socket_set_add(io->host->sockets, &io->coordinator_watch, io->coordinator, error);
}

static wg_status_t subscribe(rank_io_t *io, wg_error_t *error)
{
    wg_status_t status =
        engine_socket_open(&io->coordinator, ZMQ_XSUB, NULL, io->init.coordinator_input, 0, error);
    if (status == WG_OK)
        status = engine_socket_send(io->coordinator, SUBSCRIBE_ALL, strlen(SUBSCRIBE_ALL), error);
    if (status != WG_OK)
        return status;
    return watch_coordinator(io, error);
}

static bool read_sockets(void *context)
{
    rank_io_t *io = context;
    return rank_host_drain(io->host, io->rank, &io->coordinator, on_broadcast, io) &&
           rank_client_read(io->clients);
}

static wg_status_t watch_sockets(void *context, wg_error_t *error)
{
    rank_io_t *io = context;
    wg_status_t status = io->coordinator ? watch_coordinator(io, error) : WG_OK;
    return status == WG_OK ? rank_client_serve(io->clients, error) : status;
}

static void ignore_sockets(void *context)
{
    rank_io_t *io = context;
    socket_set_remove(io->host->sockets, &io->coordinator_watch);
    rank_client_ignore(io->clients);
}

static wg_status_t connect_everywhere(rank_io_t *io, wg_error_t *error)
{
    const rank_sockets_t sockets = {read_sockets, watch_sockets, ignore_sockets, io};
    wg_status_t status = rank_client_new(&io->clients, io->host, io->id, &io->init, &sockets, error);
    if (status != WG_OK)
        return status;
    io->phase = RANK_GATED;
    return io->init.coordinator_input ? subscribe(io, error) : begin_serving(io, error);
}

static int on_loaded(zloop_t *loop, int timer, void *argument)
{
    (void)loop;
    (void)timer;
    rank_io_t *io = argument;
    wg_error_t error;
    wg_status_t status = connect_everywhere(io, &error);
    return rank_host_passed(io->host, io->rank, status, &error) ? 0 : -1;
}

static wg_status_t on_init(void *context, engine_message_t *message, wg_error_t *error)
{
    rank_io_t *io = context;
    zmq_msg_t *payload = &message->frames[0];
    if (io->phase != RANK_GREETING)
        return WG_OK; /* an engine reads one INIT and no more */
    if (message->count != 1)
        return WG_FAIL(error, DECODE, "INIT", (size_t)0, "not one frame");
    wg_status_t status = engine_init_decode(&io->init, zmq_msg_data(payload), zmq_msg_size(payload), error);
    if (status != WG_OK)
        return status;
    socket_set_remove(io->host->sockets, &io->handshake_watch);
    io->phase = RANK_LOADING;
    events_init(&io->host->events, io->rank, io->init.client_count);
    size_t load_ms = io->host->options->load_ms;
    if (load_ms == 0)
        return connect_everywhere(io, error);
    if (zloop_timer(io->host->loop, load_ms, 1, on_loaded, io) < 0)
        return WG_FAIL(error, SYSTEM, "starting a timer", strerror(ENOMEM));
    return WG_OK;
}

static socket_result_t on_handshake(void *context)
{
    rank_io_t *io = context;
    return rank_host_read(io->host, io->rank, &io->handshake, on_init, io);
}

static wg_status_t greet(rank_io_t *io, wg_error_t *error)
{
    wg_status_t status =
        engine_socket_open(&io->handshake, ZMQ_DEALER, &io->id, io->host->options->handshake, 0, error);
    if (status == WG_OK)
        status = send_status(io, "HELLO", NULL, error);
    if (status != WG_OK)
        return status;
    events_rank(&io->host->events, "hello", io->rank);
    io->handshake_watch.on_ready = on_handshake;
    io->handshake_watch.context = io;
    return socket_set_add(io->host->sockets, &io->handshake_watch, io->handshake, error);
}

wg_status_t rank_io_new(rank_io_t **out, rank_host_t *host, uint32_t rank, wg_error_t *error)
{
    *out = NULL;
    rank_io_t *io = calloc(1, sizeof *io);
    if (!io)
        return WG_FAIL(error, SYSTEM, "starting a rank", strerror(errno));
    io->host = host;
    io->rank = rank;
    wg_status_t status = wg_engine_id_from_rank(&io->id, rank);
    if (status == WG_OK)
        status = greet(io, error);
    if (status != WG_OK)
        rank_io_destroy(&io);
    *out = io;
    return status;
}

void rank_io_destroy(rank_io_t **io)
{
    rank_io_t *self = *io;
    if (!self)
        return;
    socket_set_remove(self->host->sockets, &self->handshake_watch);
    socket_set_remove(self->host->sockets, &self->coordinator_watch);
    engine_socket_close(&self->handshake);
    engine_socket_close(&self->coordinator);
    rank_client_destroy(&self->clients);
    engine_init_free(&self->init);
    free(self);
    *io = NULL;
}

bool rank_io_waits_for_init(const rank_io_t *io)
{
    return io->phase == RANK_GREETING;
}

bool rank_io_busy(const rank_io_t *io)
{
    return io->clients && rank_client_busy(io->clients);
}

bool rank_io_step(rank_io_t *io)
{
    wg_error_t error;
    if (!rank_io_busy(io))
        return true;
    wg_status_t status = rank_client_step(io->clients, &error);
    return rank_host_passed(io->host, io->rank, status, &error);
}

void rank_io_say_dead(rank_io_t *io)
{
    if (io->clients)
        rank_client_say_dead(io->clients);
}
