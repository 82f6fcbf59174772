/* load_board.h: the queues of every rank, as the engines' own stats tell (protocol.md 6 and 8), and which of them are to be
 * published when. Pure: no sockets, no clock. Owned by the coordinator's loop.
 * Tests: tests/unit/load_board_test.c
 *
 * Lockstep ranks step together, so their numbers belong together by (wave, step): what is published is the table as it stood
 * when the step after it began, or when nothing more has come for a while. A report older than the last of the same rank is
 * stale; against other ranks' reports it says nothing, for links differ in speed. */
#ifndef WG_COORDINATOR_LOAD_BOARD_H
#define WG_COORDINATOR_LOAD_BOARD_H

#include "common/wire_outputs.h"
#include "common/wire_publish.h"

#define LOAD_BOARD_CHANGED_MS 100  /* changed counts go out at most so often */
#define LOAD_BOARD_SETTLE_MS 50    /* after so long the reports of one step are all here */
#define LOAD_BOARD_REFRESH_MS 5000 /* and unchanged ones so often */

typedef struct load_board load_board_t;

WG_MUST_CHECK load_board_t *load_board_new(uint32_t count, bool lockstep); /* all zero; NULL without memory */
void load_board_destroy(load_board_t **board);                             /* accepts NULL, clears */

/* A report of that rank, which must be below count. False where it is stale, and dropped. */
bool load_board_report(load_board_t *board, uint32_t rank, const wire_stats_t *stats, int64_t now_ms);
/* The rank is lost: nothing waits or runs there any more. */
void load_board_clear(load_board_t *board, uint32_t rank);

uint32_t load_board_count(const load_board_t *board);
const wire_load_t *load_board_loads(const load_board_t *board); /* count of them, in rank order */
/* Milliseconds since the rank's last report, or -1 if there was none since it came up. */
int64_t load_board_age_ms(const load_board_t *board, uint32_t rank, int64_t now_ms);

/* How long until counts must be published: 0 means now. */
int64_t load_board_due_ms(const load_board_t *board, int64_t now_ms);
/* The counts to publish now; starts the next period. Valid until the next call of the board. */
const wire_load_t *load_board_publish(load_board_t *board, int64_t now_ms);

#endif
