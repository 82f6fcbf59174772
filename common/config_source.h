/* config_source.h: the text of the configuration file as a tree of settings, read only: all of libconfig that
 * the rest sees (its wg_config_t and ours cannot meet in one file). Besides parsing it refuses what libconfig
 * would take in silence: a cut integer, a NUL byte, `@include`. Used while loading only. Tests:
 * tests/unit/config_*test.c */
#ifndef WG_COMMON_CONFIG_SOURCE_H
#define WG_COMMON_CONFIG_SOURCE_H

#include "common/status.h"

#include <stdint.h>

#define CONFIG_SOURCE_BYTES_MAX (4u << 20)

typedef struct config_source config_source_t;
typedef struct config_node config_node_t; /* one setting; belongs to its source */

typedef enum {
    CONFIG_NODE_INT,
    CONFIG_NODE_BOOL,
    CONFIG_NODE_FLOAT,
    CONFIG_NODE_TEXT,
    CONFIG_NODE_GROUP,
    CONFIG_NODE_ARRAY, /* [ ]: scalars of one type */
    CONFIG_NODE_LIST   /* ( ): anything */
} config_node_kind_t;

/* WG_E_CONFIG with file and line: cannot be read, larger than CONFIG_SOURCE_BYTES_MAX, or a syntax error
 * (also a key that stands twice in one group). *out is NULL on failure. The caller closes. */
WG_MUST_CHECK wg_status_t config_source_open(config_source_t **out, const char *path, wg_error_t *error);
void config_source_close(config_source_t **source); /* accepts NULL, clears *source */

/* The group of everything. */
const config_node_t *config_source_root(const config_source_t *source);

config_node_kind_t config_node_kind(const config_node_t *node);
const char *config_node_kind_name(config_node_kind_t kind); /* "a group" */
const char *config_node_name(const config_node_t *node);    /* NULL for the root and for elements */
int config_node_line(const config_node_t *node);            /* from 1 */

/* Groups, arrays and lists; of the rest a count of 0. */
uint32_t config_node_count(const config_node_t *node);
const config_node_t *config_node_child(const config_node_t *node, uint32_t index); /* index < count */
/* NULL where a group has no such setting. */
const config_node_t *config_node_member(const config_node_t *group, const char *name);

/* Each only for a node of that kind. */
int64_t config_node_int(const config_node_t *node);
bool config_node_bool(const config_node_t *node);
double config_node_float(const config_node_t *node);
const char *config_node_text(const config_node_t *node); /* belongs to the source */

/* WG_E_CONFIG at a line of the file (0: the file as a whole). The reason's bytes that are not printable ASCII
 * become '?', and of a long path only the end is shown, so that key and reason always fit. */
wg_status_t config_source_fail(wg_error_t *error, const char *path, int line, const char *key,
                               const char *format, ...) WG_PRINTF(5, 6);

#endif
