#include "tests/fake_engine/rank_output.h"

#include "tests/fake_engine/engine_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The last outputs and the sentinel are sent just before the sockets close. */
#define LINGER_MS 1000

struct rank_output {
    rank_output_buffers_t *buffers;
    uint32_t rank;
    uint32_t client_count;
    void *coordinator; /* or NULL */
    uint32_t told_running;
    uint32_t told_waiting;
    bool stamped; /* with the two below */
    int64_t wave;
    uint64_t step;
    void *clients[];
};

/* The batches point into themselves, so they are made anew where there must be more; nothing is in them then.
 */
static bool reserve_batches(rank_output_buffers_t *buffers, uint32_t count)
{
    if (count <= buffers->count)
        return true;
    engine_batch_t *batches = calloc(count, sizeof *batches);
    if (!batches)
        return false;
    for (uint32_t i = 0; i < count; i++)
        engine_batch_init(&batches[i]);
    for (uint32_t i = 0; i < buffers->count; i++)
        engine_batch_free(&buffers->batches[i]);
    free(buffers->batches);
    buffers->batches = batches;
    buffers->count = count;
    return true;
}

void rank_output_buffers_free(rank_output_buffers_t *buffers)
{
    for (uint32_t i = 0; i < buffers->count; i++)
        engine_batch_free(&buffers->batches[i]);
    free(buffers->batches);
    msgpack_sbuffer_destroy(&buffers->frame);
    *buffers = (rank_output_buffers_t){0};
}

wg_status_t rank_output_new(rank_output_t **out, rank_output_buffers_t *buffers, uint32_t rank,
                            const engine_init_t *init, wg_error_t *error)
{
    *out = NULL;
    rank_output_t *output = calloc(1, sizeof *output + init->client_count * sizeof *output->clients);
    if (!output)
        return WG_FAIL(error, SYSTEM, "opening outputs", strerror(errno));
    output->buffers = buffers;
    output->rank = rank;
    output->client_count = init->client_count;
    wg_status_t status = WG_OK;
    if (!reserve_batches(buffers, init->client_count))
        status = WG_FAIL(error, SYSTEM, "opening outputs", strerror(ENOMEM));
    for (uint32_t i = 0; status == WG_OK && i < init->client_count; i++)
        status = engine_socket_open(&output->clients[i], ZMQ_PUSH, NULL, init->outputs[i], LINGER_MS, error);
    if (status == WG_OK && init->coordinator_output)
        status = engine_socket_open(&output->coordinator, ZMQ_PUSH, NULL, init->coordinator_output, LINGER_MS,
                                    error);
    if (status != WG_OK)
        rank_output_destroy(&output);
    *out = output;
    return status;
}

void rank_output_destroy(rank_output_t **output)
{
    rank_output_t *self = *output;
    if (!self)
        return;
    for (uint32_t i = 0; i < self->client_count; i++)
        engine_socket_close(&self->clients[i]);
    engine_socket_close(&self->coordinator);
    free(self);
    *output = NULL;
}

static engine_stamp_t stamp(const rank_output_t *output)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (engine_stamp_t){.rank = output->rank, .seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec};
}

/* Sends what an encoder has put into the frame, if it could. */
static wg_status_t send_frame(rank_output_t *output, void *socket, wg_status_t encoded, wg_error_t *error)
{
    msgpack_sbuffer *frame = &output->buffers->frame;
    wg_status_t status = encoded;
    if (status == WG_OK)
        status = engine_socket_send(socket, frame->data, frame->size, error);
    msgpack_sbuffer_clear(frame);
    return status;
}

static void read_stats(const rank_output_t *output, const engine_t *engine, engine_stats_t *stats)
{
    engine_stats(engine, stats);
    if (output->stamped) {
        stats->current_wave = output->wave;
        stats->step_counter = output->step;
    }
}

static void gather(rank_output_t *output, const engine_t *engine, uint32_t vocab_size)
{
    size_t count;
    const engine_output_t *outputs = engine_outputs(engine, &count);
    for (size_t i = 0; i < count; i++)
        engine_batch_add(&output->buffers->batches[outputs[i].request->client_index], &outputs[i],
                         vocab_size);
}

/* stats: NULL, or for the first client that gets a message, or for client 0 if none does. */
static wg_status_t send_batches(rank_output_t *output, const engine_stats_t *stats, wg_error_t *error)
{
    wg_status_t status = WG_OK;
    for (uint32_t i = 0; i < output->client_count; i++) {
        engine_batch_t *batch = &output->buffers->batches[i];
        if (status == WG_OK && !engine_batch_empty(batch)) {
            status = engine_encode_batch(&output->buffers->frame, stamp(output), batch, stats, error);
            status = send_frame(output, output->clients[i], status, error);
            stats = NULL;
        }
        engine_batch_clear(batch);
    }
    if (status == WG_OK && stats) {
        status = engine_encode_stats(&output->buffers->frame, stamp(output), stats, error);
        status = send_frame(output, output->clients[0], status, error);
    }
    return status;
}

wg_status_t rank_output_send(rank_output_t *output, const engine_t *engine, uint32_t vocab_size,
                             wg_error_t *error)
{
    gather(output, engine, vocab_size);
    return send_batches(output, NULL, error);
}

wg_status_t rank_output_send_step(rank_output_t *output, const engine_t *engine, uint32_t vocab_size,
                                  wg_error_t *error)
{
    engine_stats_t stats;
    read_stats(output, engine, &stats);
    gather(output, engine, vocab_size);
    return send_batches(output, &stats, error);
}

wg_status_t rank_output_send_counts(rank_output_t *output, const engine_t *engine, wg_error_t *error)
{
    engine_stats_t stats;
    if (!output->coordinator)
        return WG_OK;
    read_stats(output, engine, &stats);
    if (stats.running == output->told_running && stats.waiting == output->told_waiting)
        return WG_OK;
    output->told_running = stats.running;
    output->told_waiting = stats.waiting;
    stats.new_requests = 0; /* the cache's numbers are deltas, and a client got them already */
    stats.new_prompt_tokens = 0;
    wg_status_t status = engine_encode_stats(&output->buffers->frame, stamp(output), &stats, error);
    return send_frame(output, output->coordinator, status, error);
}

wg_status_t rank_output_reply(rank_output_t *output, uint32_t client_index, const engine_reply_t *reply,
                              wg_error_t *error)
{
    wg_status_t status = engine_encode_reply(&output->buffers->frame, stamp(output), reply, error);
    return send_frame(output, output->clients[client_index], status, error);
}

void rank_output_stamp(rank_output_t *output, int64_t wave, uint64_t step)
{
    output->stamped = true;
    output->wave = wave;
    output->step = step;
}

wg_status_t rank_output_send_wave(rank_output_t *output, engine_wave_field_t field, int64_t wave,
                                  wg_error_t *error)
{
    if (!output->coordinator)
        return WG_OK;
    wg_status_t status = engine_encode_wave(&output->buffers->frame, stamp(output), field, wave, error);
    return send_frame(output, output->coordinator, status, error);
}

void rank_output_say_dead(rank_output_t *output)
{
    for (uint32_t i = 0; i < output->client_count; i++) {
        wg_error_t ignored; /* the process ends anyway */
        (void)!engine_socket_send(output->clients[i], ENGINE_CORE_DEAD, sizeof ENGINE_CORE_DEAD - 1,
                                  &ignored);
    }
}
