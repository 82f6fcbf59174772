#include "tests/explorer/graph.h"

#include <stdlib.h>
#include <string.h>

enum { NOBODY = UINT32_MAX };

typedef struct {
    uint64_t offset; /* of the state's bytes */
    uint32_t parent;
    event_t event; /* that led here from the parent */
    bool saved;    /* a quiet state can be reached */
} node_t;

typedef struct {
    uint32_t from, to;
} edge_t;

typedef struct {
    const model_config_t *config;
    node_t *nodes;
    uint32_t count, max;
    uint8_t *bytes;
    uint64_t size, capacity;
    uint32_t *table; /* open addressing: 1 + node */
    uint64_t mask;
    edge_t *edges; /* only those that need no help */
    uint64_t edge_count, edge_capacity;
} graph_t;

static void *must(void *memory)
{
    if (!memory) {
        fprintf(stderr, "explorer: out of memory\n");
        exit(2);
    }
    return memory;
}

static uint64_t hash_bytes(const uint8_t *bytes, unsigned size)
{
    uint64_t hash = 14695981039346656037u;
    for (unsigned i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash ^ hash >> 29;
}

static unsigned size_at(const graph_t *graph, uint64_t offset)
{
    return graph->bytes[offset] | (unsigned)graph->bytes[offset + 1] << 8;
}

static uint64_t store(graph_t *graph, const uint8_t *bytes, unsigned size)
{
    uint64_t offset = graph->size;
    if (graph->size + size + 2 > graph->capacity) {
        graph->capacity = 2 * graph->capacity + MODEL_BYTES_MAX;
        graph->bytes = must(realloc(graph->bytes, graph->capacity));
    }
    graph->bytes[offset] = (uint8_t)size;
    graph->bytes[offset + 1] = (uint8_t)(size >> 8);
    memcpy(graph->bytes + offset + 2, bytes, size);
    graph->size += size + 2u;
    return offset;
}

/* The smallest encoding of the equivalent states. */
static unsigned canonical(const graph_t *graph, const model_t *model, uint8_t best[MODEL_BYTES_MAX])
{
    const model_config_t *config = graph->config;
    bool ranks = config->ranks == 3 && (config->rules & RULE_EXCLUDE_NOBODY);
    unsigned size = model_encode(model, config, best);
    for (unsigned variant = 1; variant < 4; variant++) {
        model_t other = *model;
        uint8_t bytes[MODEL_BYTES_MAX];
        if (((variant & 1) && config->frontends < 2) || ((variant & 2) && !ranks))
            continue;
        if (variant & 1)
            model_swap_frontends(&other, config);
        if (variant & 2)
            model_swap_ranks(&other, config);
        unsigned other_size = model_encode(&other, config, bytes);
        if (memcmp(bytes, best, other_size) < 0) /* a permutation has the same size */
            memcpy(best, bytes, other_size);
    }
    return size;
}

/* The node of the state, new or known; NOBODY where there is no room for one more. */
static uint32_t intern(graph_t *graph, const model_t *model, uint32_t parent, event_t event)
{
    uint8_t bytes[MODEL_BYTES_MAX];
    unsigned size = canonical(graph, model, bytes);
    uint64_t slot = hash_bytes(bytes, size) & graph->mask;
    for (; graph->table[slot]; slot = (slot + 1) & graph->mask) {
        uint64_t offset = graph->nodes[graph->table[slot] - 1].offset;
        if (size_at(graph, offset) == size && memcmp(graph->bytes + offset + 2, bytes, size) == 0)
            return graph->table[slot] - 1;
    }
    if (graph->count == graph->max)
        return NOBODY;
    graph->nodes[graph->count] = (node_t){store(graph, bytes, size), parent, event, false};
    graph->table[slot] = ++graph->count;
    return graph->count - 1;
}

static void add_edge(graph_t *graph, uint32_t from, uint32_t to)
{
    if (graph->edge_count == graph->edge_capacity) {
        graph->edge_capacity = 2 * graph->edge_capacity + 1024;
        graph->edges = must(realloc(graph->edges, graph->edge_capacity * sizeof(edge_t)));
    }
    graph->edges[graph->edge_count++] = (edge_t){from, to};
}

static void load(const graph_t *graph, uint32_t node, model_t *model)
{
    model_decode(model, graph->config, graph->bytes + graph->nodes[node].offset + 2);
}

static void print_trace(const graph_t *graph, uint32_t node, FILE *trace)
{
    uint32_t depth = 0;
    for (uint32_t at = node; at != 0; at = graph->nodes[at].parent)
        depth++;
    uint32_t *path = must(malloc((depth + 1) * sizeof *path));
    for (uint32_t at = node, i = depth; at != 0; at = graph->nodes[at].parent)
        path[--i] = at;
    for (uint32_t i = 0; i < depth; i++) {
        model_t model;
        char text[160] = "";
        load(graph, graph->nodes[path[i]].parent, &model);
        model_describe(&model, graph->config, graph->nodes[path[i]].event, text, sizeof text);
        fprintf(trace, "    %3u  %s\n", i + 1, text);
    }
    free(path);
}

/* Forward: every state, breadth first, so that each node's parents are a shortest way to it. */
static void expand(graph_t *graph, graph_result_t *result, FILE *trace)
{
    for (uint32_t node = 0; node < graph->count; node++) {
        model_t model;
        event_t events[EVENTS_MAX];
        load(graph, node, &model);
        unsigned count = model_next(&model, graph->config, events);
        for (unsigned i = 0; i < count; i++) {
            model_t next = model;
            const char *fault = model_apply(&next, graph->config, events[i]);
            if (fault) {
                result->fault = fault;
                if (trace) {
                    char text[160] = "";
                    print_trace(graph, node, trace);
                    model_describe(&model, graph->config, events[i], text, sizeof text);
                    fprintf(trace, "    then %s: %s\n", text, fault);
                }
                return;
            }
            uint32_t to = intern(graph, &next, node, events[i]);
            if (to == NOBODY) {
                result->too_large = true;
                return;
            }
            result->transitions++;
            if (!model_is_help(events[i]) && to != node)
                add_edge(graph, node, to);
        }
    }
}

/* Backward from the quiet states, over edges sorted by where they lead. */
static void save(graph_t *graph)
{
    uint64_t *first = must(calloc((uint64_t)graph->count + 2, sizeof *first));
    uint32_t *from = must(malloc((graph->edge_count + 1) * sizeof *from));
    uint32_t *open = must(malloc(((uint64_t)graph->count + 1) * sizeof *open));
    uint32_t open_count = 0;
    for (uint64_t i = 0; i < graph->edge_count; i++)
        first[graph->edges[i].to + 2]++;
    for (uint32_t node = 1; node < graph->count + 2; node++)
        first[node] += first[node - 1];
    for (uint64_t i = 0; i < graph->edge_count; i++)
        from[first[graph->edges[i].to + 1]++] = graph->edges[i].from;
    for (uint32_t node = 0; node < graph->count; node++) {
        model_t model;
        load(graph, node, &model);
        if (model_is_quiet(&model, graph->config)) {
            graph->nodes[node].saved = true;
            open[open_count++] = node;
        }
    }
    while (open_count > 0) {
        uint32_t node = open[--open_count];
        for (uint64_t i = first[node]; i < first[node + 1]; i++) {
            if (graph->nodes[from[i]].saved)
                continue;
            graph->nodes[from[i]].saved = true;
            open[open_count++] = from[i];
        }
    }
    free(first);
    free(from);
    free(open);
}

graph_result_t graph_explore(const model_config_t *config, uint32_t max_states, FILE *trace)
{
    graph_result_t result = {0};
    graph_t graph = {.config = config, .max = max_states, .mask = 1};
    while (graph.mask < 2 * (uint64_t)max_states)
        graph.mask *= 2;
    graph.capacity = 1 << 20;
    graph.bytes = must(malloc(graph.capacity));
    graph.nodes = must(malloc((uint64_t)max_states * sizeof(node_t)));
    graph.table = must(calloc(graph.mask, sizeof(uint32_t)));
    graph.mask--;
    model_t first;
    model_init(&first, config);
    intern(&graph, &first, 0, (event_t){0, 0, 0});
    expand(&graph, &result, trace);
    result.states = graph.count;
    if (!result.fault && !result.too_large) {
        save(&graph);
        for (uint32_t node = graph.count; node-- > 0;)
            result.stuck += !graph.nodes[node].saved;
        for (uint32_t node = 0; result.stuck > 0 && trace && node < graph.count; node++) {
            if (!graph.nodes[node].saved) {
                print_trace(&graph, node, trace);
                break;
            }
        }
    }
    free(graph.nodes);
    free(graph.table);
    free(graph.bytes);
    free(graph.edges);
    return result;
}
