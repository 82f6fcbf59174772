/* engine_encode.h: the frames that an engine sends (protocol.md 3, 4 and 6), laid out as msgspec lays out
 * vLLM's own: arrays with trailing defaults dropped.
 * No state beyond what the caller holds; any thread. Tests: tests/integration, tests/interop */
#ifndef WG_TESTS_FAKE_ENGINE_ENGINE_ENCODE_H
#define WG_TESTS_FAKE_ENGINE_ENGINE_ENCODE_H

#include "common/wire_pack.h"
#include "tests/fake_engine/engine.h"

#include <stdint.h>

/* The one frame that says that an engine process is dying. */
#define ENGINE_CORE_DEAD "ENGINE_CORE_DEAD"

/* Every encoder below appends one whole frame; WG_E_ENCODE without memory. */

/* HELLO, or READY with the hash where that is not NULL. */
WG_MUST_CHECK wg_status_t engine_encode_status(msgpack_sbuffer *frame, const char *status,
                                               const char *parallel_config_hash, wg_error_t *error);

typedef struct {
    const engine_options_t *engine;
    int64_t num_gpu_blocks;
    int64_t block_size;
    uint32_t rank;
    int64_t data_parallel_size;
    const char *stats_address; /* NULL: nil */
    const char *instance_id;
} engine_registration_t;

WG_MUST_CHECK wg_status_t engine_encode_registration(msgpack_sbuffer *frame,
                                                     const engine_registration_t *registration,
                                                     wg_error_t *error);

/* Outputs for one client, gathered before their number is known. */
typedef struct {
    msgpack_sbuffer outputs;
    msgpack_sbuffer finished;
    wire_pack_t outputs_pack;
    wire_pack_t finished_pack;
    size_t output_count;
    size_t finished_count;
} engine_batch_t;

void engine_batch_init(engine_batch_t *batch);  /* it must not move in memory afterwards */
void engine_batch_clear(engine_batch_t *batch); /* keeps the memory */
void engine_batch_free(engine_batch_t *batch);
bool engine_batch_empty(const engine_batch_t *batch);
/* A failure shows in engine_encode_batch. */
void engine_batch_add(engine_batch_t *batch, const engine_output_t *output, uint32_t vocab_size);

/* What every EngineCoreOutputs begins with. seconds: the engine's monotonic clock. */
typedef struct {
    uint32_t rank;
    double seconds;
} engine_stamp_t;

/* stats may be NULL. */
WG_MUST_CHECK wg_status_t engine_encode_batch(msgpack_sbuffer *frame, engine_stamp_t stamp,
                                              const engine_batch_t *batch, const engine_stats_t *stats,
                                              wg_error_t *error);

/* An EngineCoreOutputs that holds stats and nothing else. */
WG_MUST_CHECK wg_status_t engine_encode_stats(msgpack_sbuffer *frame, engine_stamp_t stamp,
                                              const engine_stats_t *stats, wg_error_t *error);

/* The answer to a utility call. Without a failure, what the result is depends on the method (protocol.md 10).
 */
typedef struct {
    int64_t call_id;
    wire_text_t method;
    const char *failure; /* or NULL */
    bool paused;         /* what is_scheduler_paused gives */
} engine_reply_t;

WG_MUST_CHECK wg_status_t engine_encode_reply(msgpack_sbuffer *frame, engine_stamp_t stamp,
                                              const engine_reply_t *reply, wg_error_t *error);

/* An EngineCoreOutputs for the coordinator, with one wave field and nothing else. */
typedef enum { ENGINE_WAVE_COMPLETE = 6, ENGINE_START_WAVE = 7 } engine_wave_field_t; /* the index */
WG_MUST_CHECK wg_status_t engine_encode_wave(msgpack_sbuffer *frame, engine_stamp_t stamp,
                                             engine_wave_field_t field, int64_t wave, wg_error_t *error);

#endif
