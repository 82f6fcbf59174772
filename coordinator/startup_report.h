/* startup_report.h: which ranks the cluster still waits for, in one line, for the log and the status route,
 * so that a start that hangs names what is missing (design.md 5). Pure. Tests:
 * tests/unit/startup_report_test.c */
#ifndef WG_COORDINATOR_STARTUP_REPORT_H
#define WG_COORDINATOR_STARTUP_REPORT_H

#include "common/config.h"
#include "common/text_buffer.h"
#include "coordinator/rank_table.h"

/* "1 loading (HELLO 40 s ago), 2 not seen; listening on tcp://...". False, and nothing written, where every
 * rank is READY. At most 16 ranks are named. */
bool startup_report(text_buffer_t *out, const wg_config_t *config, const rank_table_t *ranks, int64_t now_ms);

#endif
