/* engine_init.h: the INIT that answers an engine's HELLO (protocol.md 3): where its clients are, and its
 * place in a lockstep group. No state; any thread. Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_ENGINE_INIT_H
#define WG_TESTS_FAKE_ENGINE_ENGINE_INIT_H

#include "common/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char **inputs; /* client_count of each; at least one */
    char **outputs;
    uint32_t client_count;
    char *coordinator_input; /* NULL, as is coordinator_output, where there is no coordinator */
    char *coordinator_output;
    char *stats_address; /* or NULL */
    bool lockstep;       /* a parallel_config came; else the next two are NULL and 0 */
    char *master_ip;     /* where rank 0 is met by the others */
    int64_t master_port;
    int64_t data_parallel_size;
    uint64_t config_hash; /* of the parallel_config: equal for all ranks that got the same one */
} engine_init_t;

/* WG_E_DECODE with byte and reason; then *out is all zero. The caller frees it. */
WG_MUST_CHECK wg_status_t engine_init_decode(engine_init_t *out, const void *data, size_t size,
                                             wg_error_t *error);
void engine_init_free(engine_init_t *init); /* back to all zero */

#endif
