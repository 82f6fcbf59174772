/* wire_logprobs.h: the tensors of logprobs in an engine's output (protocol.md 6; vLLM's LogprobsLists and
 * LogprobsTensors): for each position a row of token ids with their logprobs, the sampled token (of a prompt:
 * the prompt's own) first and then the likeliest, and the first one's rank. Data is inline or in an auxiliary
 * frame, and is only looked at, never copied. No state; any thread. Tests: tests/unit/wire_logprobs_test.c */
#ifndef WG_COMMON_WIRE_LOGPROBS_H
#define WG_COMMON_WIRE_LOGPROBS_H

#include "common/wire_reader.h"

typedef struct {
    wire_bytes_t data; /* little-endian, maybe unaligned */
    bool is_wide;      /* 8 bytes per element, else 4 */
} wire_tensor_t;

typedef struct {
    uint32_t positions; /* rows */
    uint32_t width;     /* ids per row, at least 1 */
    wire_tensor_t ids;
    wire_tensor_t values;
    wire_tensor_t ranks;
} wire_logprobs_t;

/* raw: of a wire_output_t. frames: the message that it came in, the envelope first. Everything in *out points
 * into them. WG_E_DECODE for what is not four items of the right shape; WG_E_UNSUPPORTED_AUX_FRAMES for a
 * tensor whose dtype, shape, byte count or frame index is wrong. */
WG_MUST_CHECK wg_status_t wire_logprobs_read(wire_logprobs_t *out, wire_bytes_t raw,
                                             const wire_bytes_t *frames, size_t frame_count,
                                             wg_error_t *error);

/* position < positions, column < width. */
int64_t wire_logprobs_id(const wire_logprobs_t *logprobs, uint32_t position, uint32_t column);
float wire_logprobs_value(const wire_logprobs_t *logprobs, uint32_t position,
                          uint32_t column); /* any float */
int64_t wire_logprobs_rank(const wire_logprobs_t *logprobs, uint32_t position);

#endif
