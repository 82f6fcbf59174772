/* graph.h: all states that can be reached from the first, and from which of them no quiet state can be reached any more.
 * Used by main.c only. */
#ifndef WG_TESTS_EXPLORER_GRAPH_H
#define WG_TESTS_EXPLORER_GRAPH_H

#include "tests/explorer/model.h"

#include <stdio.h>

typedef struct {
    uint32_t states;
    uint64_t transitions;
    uint32_t stuck;    /* states with no way to a quiet one without further help or fault */
    const char *fault; /* what model_apply found, or NULL */
    bool too_large;    /* max_states were not enough: nothing is proven */
} graph_result_t;

/* Prints the shortest trace to a stuck or faulty state on `trace`, unless that is NULL. */
graph_result_t graph_explore(const model_config_t *config, uint32_t max_states, FILE *trace);

#endif
