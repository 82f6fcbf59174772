/* orphans.h: which ids of requests that are not ours any more were aborted lately, so that an engine that
 * goes on with one is told again, but at most once a second per id (design.md 2). Bounded: a small table by
 * hash; where two ids meet in one slot, the second waits its second, too. Pure. Owned by its client. Tests:
 * tests/unit/orphans_test.c */
#ifndef WG_FRONTEND_ORPHANS_H
#define WG_FRONTEND_ORPHANS_H

#include "common/wire_reader.h"

enum { ORPHANS_SLOTS = 4096, ORPHANS_PERIOD_MS = 1000 };

typedef struct {
    int64_t until_ms[ORPHANS_SLOTS]; /* all zero at the start */
} orphans_t;

/* True where an ABORT for that id may go out now; then the next one may not for ORPHANS_PERIOD_MS. */
bool orphans_may_abort(orphans_t *orphans, wire_text_t wire_id, int64_t now_ms);

#endif
