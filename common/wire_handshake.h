/* wire_handshake.h: what passes over the handshake ROUTER (protocol.md 3). Mirrors the dictionaries of
 * vLLM's startup_handshake and EngineHandshakeMetadata. No state; any thread.
 * Tests: tests/unit/wire_handshake_test.c */
#ifndef WG_COMMON_WIRE_HANDSHAKE_H
#define WG_COMMON_WIRE_HANDSHAKE_H

#include "common/config.h"
#include "common/wire_reader.h"

#include <msgpack.h>

typedef enum { WIRE_HANDSHAKE_HELLO, WIRE_HANDSHAKE_READY } wire_handshake_kind_t;

/* `local` and `headless` decide nothing (protocol.md 3), so they are checked and not kept. */
typedef struct {
    wire_handshake_kind_t kind;
    wire_text_t parallel_config_hash; /* points into the frame; data is NULL where absent */
} wire_handshake_t;

/* Engine to coordinator: {"status": "HELLO" or "READY", ...}. WG_E_DECODE. Unknown keys are passed over. */
WG_MUST_CHECK wg_status_t wire_handshake_decode(wire_handshake_t *out, const void *data, size_t size,
                                                wg_error_t *error);

/* Coordinator to engine: the INIT of that rank, appended to *out: the clients' addresses in the order of
 * rank_map, the coordinator's own where they are configured, parallel_config as `lockstep` demands. */
WG_MUST_CHECK wg_status_t wire_init_encode(msgpack_sbuffer *out, const wg_config_t *config, uint32_t rank,
                                           wg_error_t *error);

#endif
