/* wire_publish.h: what the coordinator publishes to frontends (protocol.md 8), exactly as vLLM's does:
 * [counts or nil, current_wave, engines_running]. No state; any thread. Tests: tests/unit/wire_publish_test.c
 */
#ifndef WG_COMMON_WIRE_PUBLISH_H
#define WG_COMMON_WIRE_PUBLISH_H

#include "common/wire_reader.h"

#include <msgpack.h>

/* The queues of one rank, as its engine last reported them. */
typedef struct {
    int64_t waiting;
    int64_t running;
    double kv_cache_usage; /* 0..1 */
} wire_load_t;

typedef struct {
    bool has_counts;
    uint32_t count;      /* of ranks, in rank order */
    wire_reader_t loads; /* stands before the first: read with wire_publish_next */
    int64_t current_wave;
    bool engines_running;
} wire_publish_t;

/* loads NULL: nil counts. Appends to *out. */
WG_MUST_CHECK wg_status_t wire_publish_encode(msgpack_sbuffer *out, const wire_load_t *loads, uint32_t count,
                                              int64_t current_wave, bool engines_running, wg_error_t *error);

/* Checks the whole frame: wire_publish_next cannot fail afterwards. WG_E_DECODE. */
WG_MUST_CHECK wg_status_t wire_publish_decode(wire_publish_t *out, const void *data, size_t size,
                                              wg_error_t *error);
/* One rank's load after the other: to be called publish->count times. Older coordinators send two numbers. */
void wire_publish_next(wire_publish_t *publish, wire_load_t *out);

#endif
