/* rank_map.h: who serves which rank, and the client index of each, computed from the configuration by both
 * processes, so that they agree without talking (design.md 1). Index 0 is the coordinator's client slot;
 * then come the frontends whose `ranks` hold the rank, in the order of the file (protocol.md 1 and 3).
 * Read-only views of a wg_config_t, which must outlive them; any thread. Tests: tests/unit/rank_map_test.c */
#ifndef WG_COMMON_RANK_MAP_H
#define WG_COMMON_RANK_MAP_H

#include "common/config.h"

#define RANK_MAP_SLOT_INDEX 0u

/* The place of the rank in an ascending list, or -1. */
int64_t rank_map_find(const uint32_t *ranks, uint32_t count, uint32_t rank);

/* Does that frontend serve the rank? */
bool rank_map_serves(const config_frontend_t *frontend, uint32_t rank);

/* How many clients (the slot and the frontends) rank has: the length of both lists in its INIT. 0 for a rank
 * that the configuration does not have. */
uint32_t rank_map_client_count(const wg_config_t *config, uint32_t rank);

/* The addresses of client `index` of the rank. False where there is no such client. */
typedef struct {
    const config_endpoint_t *input;
    const config_endpoint_t *output;
} rank_map_client_t;
WG_MUST_CHECK bool rank_map_client(const wg_config_t *config, uint32_t rank, uint32_t index,
                                   rank_map_client_t *out);

/* The client index of that frontend at the rank. False unless it serves the rank. */
WG_MUST_CHECK bool rank_map_client_index(const wg_config_t *config, const config_frontend_t *frontend,
                                         uint32_t rank, uint32_t *out);

/* "0, 1, 5": into text, cut with "..." where it does not fit. Returns text. */
const char *rank_map_text(char *text, size_t size, const uint32_t *ranks, size_t count);
/* The same as ranges, of an ascending list: "0-3, 7". */
const char *rank_map_ranges(char *text, size_t size, const uint32_t *ranks, size_t count);

#endif
