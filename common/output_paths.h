/* output_paths.h: over which connection the outputs of each place come, to notice that it was replaced by
 * another: what was on its way over the first is lost then. An engine has one output connection at a time,
 * and PULL names no sender.
 *
 * Two connections of one place that are both open are two engines: one was taken for gone and has come back,
 * or its host has. That is a replacement once, not with each of their messages.
 *
 * Owned by its engine_link. Tests: tests/unit/output_paths_test.c, engine_link_test.c */
#ifndef WG_COMMON_OUTPUT_PATHS_H
#define WG_COMMON_OUTPUT_PATHS_H

#include "common/status.h"

#include <stdint.h>

typedef struct output_paths output_paths_t;

WG_MUST_CHECK output_paths_t *output_paths_new(
    uint32_t count);                               /* NULL without memory. The caller destroys. */
void output_paths_destroy(output_paths_t **paths); /* accepts NULL, clears */

/* The place whose outputs come over this connection. -1: nobody's yet, or not any more. *is_over: it has
 * ended, so this is one of its last messages, unless there has been another connection with that number
 * since, which output_paths_accepted would have told. */
int64_t output_paths_find(const output_paths_t *paths, int fd, bool *is_over);

/* There is a new connection with that number, so whoever had it has lost his. */
void output_paths_accepted(output_paths_t *paths, int fd);

/* Outputs of that place came over this connection, which output_paths_find does not know. True where they had
 * come over another before: what was on its way there is lost. */
WG_MUST_CHECK bool output_paths_move(output_paths_t *paths, uint32_t place, int fd);

/* Has the connection of the place ended since the last call? It has none then. What had arrived over it must
 * be read. */
WG_MUST_CHECK bool output_paths_take_broken(output_paths_t *paths, uint32_t place);

/* Is or was a connection with that number any place's? */
bool output_paths_knows(const output_paths_t *paths, int fd);
/* Has nothing come yet from the place, or not since its connection ended? */
bool output_paths_is_unknown(const output_paths_t *paths, uint32_t place);

/* Nothing is known of the place any more. */
void output_paths_forget(output_paths_t *paths, uint32_t place);

#endif
