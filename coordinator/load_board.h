/* load_board.h: the queues of every rank, as the engines' own stats tell (protocol.md 6 and 8), and when the
 * next publish is due. Pure: no sockets, no clock. Owned by the coordinator's loop. Tests:
 * tests/unit/load_board_test.c */
#ifndef WG_COORDINATOR_LOAD_BOARD_H
#define WG_COORDINATOR_LOAD_BOARD_H

#include "common/wire_outputs.h"
#include "common/wire_publish.h"

#define LOAD_BOARD_CHANGED_MS 100  /* changed counts go out at most so often */
#define LOAD_BOARD_REFRESH_MS 5000 /* and unchanged ones so often */

typedef struct load_board load_board_t;

WG_MUST_CHECK load_board_t *load_board_new(uint32_t count); /* all zero; NULL without memory */
void load_board_destroy(load_board_t **board);              /* accepts NULL, clears */

/* A report of that rank, which must be below count. */
void load_board_report(load_board_t *board, uint32_t rank, const wire_stats_t *stats, int64_t now_ms);
/* The rank is lost: nothing waits or runs there any more. */
void load_board_clear(load_board_t *board, uint32_t rank);

uint32_t load_board_count(const load_board_t *board);
const wire_load_t *load_board_loads(const load_board_t *board); /* count of them, in rank order */
/* Milliseconds since the rank's last report, or -1 if there was none since it came up. */
int64_t load_board_age_ms(const load_board_t *board, uint32_t rank, int64_t now_ms);

/* How long until counts must be published: 0 means now. load_board_published starts the next period. */
int64_t load_board_due_ms(const load_board_t *board, int64_t now_ms);
void load_board_published(load_board_t *board, int64_t now_ms);

#endif
