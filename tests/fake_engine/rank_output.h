/* rank_output.h: the PUSH sockets of one rank, and which of its clients gets what (protocol.md 6).
 * Owned by the loop. Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_RANK_OUTPUT_H
#define WG_TESTS_FAKE_ENGINE_RANK_OUTPUT_H

#include "common/status.h"
#include "tests/fake_engine/engine.h"
#include "tests/fake_engine/engine_decode.h"
#include "tests/fake_engine/engine_encode.h"
#include "tests/fake_engine/engine_init.h"

typedef struct rank_output rank_output_t;

/* Where messages are put together; one for all ranks, since each sends before the next one's turn. */
typedef struct {
    engine_batch_t *batches; /* one a client */
    uint32_t count;
    msgpack_sbuffer frame;
} rank_output_buffers_t; /* all zero is empty */

void rank_output_buffers_free(rank_output_buffers_t *buffers); /* back to all zero */

/* Connects to every output and to the coordinator's, where there is one. *out is NULL on failure. The caller
 * destroys, before the buffers. */
WG_MUST_CHECK wg_status_t rank_output_new(rank_output_t **out, rank_output_buffers_t *buffers, uint32_t rank,
                                          const engine_init_t *init, wg_error_t *error);
void rank_output_destroy(rank_output_t **output); /* accepts NULL, clears *output */

/* Sends the engine's outputs, at most one message a client, and leaves them in the engine. */
WG_MUST_CHECK wg_status_t rank_output_send(rank_output_t *output, const engine_t *engine, uint32_t vocab_size,
                                           wg_error_t *error);
/* The same after a step: one of the messages also has the step's stats. */
WG_MUST_CHECK wg_status_t rank_output_send_step(rank_output_t *output, const engine_t *engine,
                                                uint32_t vocab_size, wg_error_t *error);

/* Tells the coordinator how many requests run and wait, if that has changed. */
WG_MUST_CHECK wg_status_t rank_output_send_counts(rank_output_t *output, const engine_t *engine,
                                                  wg_error_t *error);

WG_MUST_CHECK wg_status_t rank_output_reply(rank_output_t *output, uint32_t client_index,
                                            const engine_reply_t *reply, wg_error_t *error);

/* Of a lockstep rank: what its stats are stamped with from now on, in place of the engine's own counter. */
void rank_output_stamp(rank_output_t *output, int64_t wave, uint64_t step);

/* To the coordinator; to nobody where there is none. */
WG_MUST_CHECK wg_status_t rank_output_send_wave(rank_output_t *output, engine_wave_field_t field,
                                                int64_t wave, wg_error_t *error);

/* The sentinel, to every client. */
void rank_output_say_dead(rank_output_t *output);

#endif
