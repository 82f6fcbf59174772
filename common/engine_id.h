/* engine_id.h: the ZMQ routing identity of an engine: its rank as two bytes, little-endian
 * (protocol.md 1). A struct, so that the compiler tells it from a rank or a client index.
 * No state; any thread. Tests: tests/unit/engine_id_test.c */
#ifndef WG_COMMON_ENGINE_ID_H
#define WG_COMMON_ENGINE_ID_H

#include "common/status.h"

#include <stddef.h>
#include <stdint.h>

#define WG_RANK_MAX 65535u
#define WG_ENGINE_ID_SIZE 2u

typedef struct {
    uint8_t bytes[WG_ENGINE_ID_SIZE];
} wg_engine_id_t;

/* WG_E_INVALID_DATA_PARALLEL_RANK above WG_RANK_MAX; never truncates. */
WG_MUST_CHECK wg_status_t wg_engine_id_from_rank(wg_engine_id_t *out, uint64_t rank);

/* WG_E_UNSUPPORTED_COORDINATOR_ENGINE_ID unless size is two. error may be NULL. */
WG_MUST_CHECK wg_status_t wg_engine_id_parse(wg_engine_id_t *out, const void *data, size_t size,
                                             wg_error_t *error);

uint32_t wg_engine_id_rank(wg_engine_id_t id);

/* Writes at most the first 16 bytes of any identity as hex into text, which is returned; "(empty)" for none.
 */
#define WG_ID_TEXT_SIZE 40u
const char *wg_id_text(char text[WG_ID_TEXT_SIZE], const void *data, size_t size);

#endif
