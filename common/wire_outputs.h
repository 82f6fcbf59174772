/* wire_outputs.h: what an engine sends on its PUSH sockets (protocol.md 6; vLLM's EngineCoreOutputs): the
 * envelope first, then one output after the other, without allocating. Arrays may be shorter (trailing
 * defaults dropped) or longer (later versions) than we know.
 *
 * The envelope's decoding walks the whole frame, so that a frame which is not sound as MessagePack has no
 * effect at all; a single output of the wrong shape then fails alone. No state; any thread. Tests:
 * tests/unit/wire_outputs_test.c */
#ifndef WG_COMMON_WIRE_OUTPUTS_H
#define WG_COMMON_WIRE_OUTPUTS_H

#include "common/wire_reader.h"

/* A PUSH message of this one frame means that some engine process is dying; it carries no rank. */
#define WIRE_ENGINE_CORE_DEAD "ENGINE_CORE_DEAD"

/* The parts of vLLM's SchedulerStats that routing needs. Absent ones are 0, as the engine's defaults are. */
typedef struct {
    int64_t running;
    int64_t waiting; /* num_waiting_reqs and num_skipped_waiting_reqs */
    int64_t step_counter;
    int64_t current_wave;
    double kv_cache_usage; /* 0..1 */
} wire_stats_t;

typedef struct {
    int64_t call_id;     /* negative: an unsolicited notice */
    wire_text_t failure; /* data is NULL: the call succeeded */
    wire_bytes_t result; /* raw MessagePack; size 0: none */
} wire_utility_t;

typedef struct {
    uint32_t engine_index;
    uint32_t output_count;
    uint32_t finished_count;
    wire_bytes_t outputs;  /* raw: output_count values */
    wire_bytes_t finished; /* raw: finished_count texts */
    bool has_stats;
    bool has_utility;
    bool has_wave_complete;
    bool has_start_wave;
    wire_stats_t stats;
    wire_utility_t utility;
    double timestamp; /* seconds, the engine's monotonic clock */
    int64_t wave_complete;
    int64_t start_wave;
} wire_outputs_t;

/* Everything in *out points into the frame. WG_E_DECODE also for a message that mixes request outputs with
 * a utility output or a wave field. */
WG_MUST_CHECK wg_status_t wire_outputs_decode(wire_outputs_t *out, const void *data, size_t size,
                                              wg_error_t *error);

typedef enum {
    WIRE_FINISH_NONE = -1,
    WIRE_FINISH_STOP = 0,
    WIRE_FINISH_LENGTH = 1,
    WIRE_FINISH_ABORT = 2,
    WIRE_FINISH_ERROR = 3,
    WIRE_FINISH_REPETITION = 4,
} wire_finish_t;

/* vLLM's EngineCoreOutput. */
typedef struct {
    wire_text_t request_id;
    wire_reader_t tokens; /* stands before the first of token_count ids, each of which is an int */
    uint32_t token_count;
    wire_finish_t finish;
    wire_text_t stop_text; /* stop_reason, where it is a text: data is NULL otherwise */
    int64_t stop_token;    /* stop_reason, where it is an id, else WIRE_NO_STOP_TOKEN */
    int64_t cached_tokens; /* of prefill_stats; negative where there are none */
    /* Raw MessagePack inside the frame; size 0: none. The first two are for wire_logprobs_read. */
    wire_bytes_t logprobs;
    wire_bytes_t prompt_logprobs;
    wire_bytes_t kv_transfer_params; /* these two are maps */
    wire_bytes_t ec_transfer_params;
} wire_output_t;

#define WIRE_NO_STOP_TOKEN INT64_MIN

/* A cursor over the outputs of one envelope. */
typedef struct {
    wire_reader_t reader;
    uint32_t left;
} wire_outputs_cursor_t;

void wire_outputs_begin(wire_outputs_cursor_t *cursor, const wire_outputs_t *outputs);

/* False at the end. *status is WG_OK, or WG_E_DECODE for an output of the wrong shape: then out->request_id
 * is set where it could be read (else its data is NULL), and the next call goes on behind it. */
WG_MUST_CHECK bool wire_outputs_next(wire_outputs_cursor_t *cursor, wire_output_t *out, wg_status_t *status,
                                     wg_error_t *error);

/* The same over finished_requests. */
void wire_finished_begin(wire_outputs_cursor_t *cursor, const wire_outputs_t *outputs);
WG_MUST_CHECK bool wire_finished_next(wire_outputs_cursor_t *cursor, wire_text_t *request_id);

#endif
