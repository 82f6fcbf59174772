/* load_feed.h: the subscription to the coordinator's publishes (protocol.md 8), ours or vLLM's, and the
 * notices that go the other way. Owned by its client. Tests: tests/integration/test_status.py */
#ifndef WG_FRONTEND_LOAD_FEED_H
#define WG_FRONTEND_LOAD_FEED_H

#include "common/config.h"
#include "common/faults.h"
#include "common/wire_publish.h"

#include <czmq.h>

typedef struct load_feed load_feed_t;

/* Called with each sound publish. The loads may be read with wire_publish_next during the call. */
typedef void load_feed_fn(void *context, wire_publish_t *publish);

WG_MUST_CHECK wg_status_t load_feed_new(load_feed_t **out, zloop_t *loop, const wg_config_t *config,
                                        faults_t *faults, load_feed_fn *on_publish, void *context,
                                        wg_error_t *error);
void load_feed_destroy(load_feed_t **feed); /* accepts NULL, clears */

/* The first-request notice [rank, wave], upstream (protocol.md 8). False where it could not be queued. */
WG_MUST_CHECK bool load_feed_notice(load_feed_t *feed, uint32_t rank, int64_t wave);

#endif
