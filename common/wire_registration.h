/* wire_registration.h: the ready response that an engine sends on each of its input sockets (protocol.md 4;
 * vLLM's EngineCoreReadyResponse). Every key is optional, and an absent one is unknown, not zero.
 * No state; any thread. Tests: tests/unit/wire_registration_test.c */
#ifndef WG_COMMON_WIRE_REGISTRATION_H
#define WG_COMMON_WIRE_REGISTRATION_H

#include "common/wire_reader.h"

#define WIRE_UNKNOWN (-1)

/* A plain value without pointers; WIRE_UNKNOWN and "" stand for what the engine did not say. */
typedef struct {
    int64_t max_model_len;
    int64_t num_gpu_blocks;
    int64_t block_size;
    int64_t max_num_seqs;
    int64_t data_parallel_size;
    char vllm_version[64]; /* cut where longer */
} wire_registration_t;

/* An empty frame is the registration of an engine from before 2026. Unknown keys are passed over, a known one
 * of the wrong type is WG_E_DECODE. */
WG_MUST_CHECK wg_status_t wire_registration_decode(wire_registration_t *out, const void *data, size_t size,
                                                   wg_error_t *error);

#endif
