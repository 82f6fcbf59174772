/* engine_reports.h: the PULL on which engines report their queues (protocol.md 6: EngineCoreOutputs with
 * stats or wave fields only). Owned by the coordinator's loop. Tests: tests/unit/engine_reports_test.c */
#ifndef WG_COORDINATOR_ENGINE_REPORTS_H
#define WG_COORDINATOR_ENGINE_REPORTS_H

#include "common/config.h"
#include "common/faults.h"
#include "common/wire_outputs.h"

#include <czmq.h>

typedef struct engine_reports engine_reports_t;

/* Called with each sound report: of a rank in the configuration, without request outputs or utility output,
 * and with wave fields only in a lockstep group. Everything else is counted as UnexpectedCoordinatorOutput or
 * Decode. */
typedef void engine_reports_fn(void *context, const wire_outputs_t *report);

WG_MUST_CHECK wg_status_t engine_reports_new(engine_reports_t **out, zloop_t *loop, const wg_config_t *config,
                                             faults_t *faults, engine_reports_fn *on_report, void *context,
                                             wg_error_t *error);
void engine_reports_destroy(engine_reports_t **reports); /* accepts NULL, clears */

#endif
