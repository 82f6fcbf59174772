/* engine_decode.h: the frames that an engine receives from its clients (protocol.md 5), read as strictly as
 * vLLM's engine core reads them: what fails here would end the input thread of a real rank.
 * No state; any thread. Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_ENGINE_DECODE_H
#define WG_TESTS_FAKE_ENGINE_ENGINE_DECODE_H

#include "common/status.h"
#include "common/wire_reader.h"
#include "tests/fake_engine/engine_request.h"

#include <stddef.h>
#include <stdint.h>

/* The first frame of each: one byte. */
typedef enum {
    ENGINE_REQUEST_ADD = 0,
    ENGINE_REQUEST_ABORT = 1,
    ENGINE_REQUEST_START_DP_WAVE = 2,
    ENGINE_REQUEST_UTILITY = 3,
} engine_request_type_t;

/* All functions give WG_E_DECODE with type, byte and reason. */

/* *out is NULL on failure. The caller owns it. Ids of the prompt and client indexes are held against the
 * limits, for a real model crashes on the former and a real output thread on the latter. */
WG_MUST_CHECK wg_status_t engine_decode_add(engine_request_t **out, uint32_t vocab_size,
                                            uint32_t client_count, const void *data, size_t size,
                                            wg_error_t *error);

/* *ids is an array that the caller frees (NULL if empty or on failure); the texts point into the frame. */
WG_MUST_CHECK wg_status_t engine_decode_abort(wire_text_t **ids, uint32_t *count, const void *data,
                                              size_t size, wg_error_t *error);

typedef struct {
    uint32_t client_index;
    int64_t call_id;
    wire_text_t method; /* points into the frame, */
    wire_bytes_t args;  /* as does this: an array of any values */
} engine_call_t;

WG_MUST_CHECK wg_status_t engine_decode_utility(engine_call_t *out, uint32_t client_count, const void *data,
                                                size_t size, wg_error_t *error);

typedef enum {
    ENGINE_PAUSE_ABORT, /* the default */
    ENGINE_PAUSE_WAIT,
    ENGINE_PAUSE_KEEP,
} engine_pause_mode_t;

/* Of pause_scheduler, from the args of a call. To a real engine, too, wrong ones are no more than a failed
 * call. */
WG_MUST_CHECK wg_status_t engine_decode_pause(engine_pause_mode_t *out, wire_bytes_t args, wg_error_t *error);

typedef struct {
    int64_t wave;
    int64_t exclude; /* an engine index, or -1 for none */
} engine_wave_t;

WG_MUST_CHECK wg_status_t engine_decode_wave(engine_wave_t *out, const void *data, size_t size,
                                             wg_error_t *error);

#endif
