/* config_value.h: the types that a configuration value can have: how each is read from the file and checked
 * by itself, and printed. What involves two keys is config_check's. Tests: tests/unit/config_*test.c */
#ifndef WG_COMMON_CONFIG_VALUE_H
#define WG_COMMON_CONFIG_VALUE_H

#include "common/config_place.h"

#define CONFIG_LIST_MAX 1024u      /* elements of a list of ints, also where model_files fills it */
#define CONFIG_NAME_BYTES_MAX 64u  /* of a frontend's name */
#define CONFIG_TEXT_BYTES_MAX 255u /* of any other free text */

typedef struct config_key config_key_t;

/* One key of one section while it is being read. base: what it goes to, the wg_config_t or the element of one
 * of its lists. */
typedef struct {
    const config_reading_t *reading;
    const config_place_t *place;
    const config_key_t *key;
    void *base;
} config_value_t;

typedef struct config_type {
    const char *label; /* for the README */
    config_node_kind_t kind;
    wg_status_t (*read)(const config_value_t *value, const config_node_t *node);
    /* What an absent key means; NULL: the zero that is there. */
    wg_status_t (*fall_back)(const config_value_t *value);
    bool (*is_set)(const config_key_t *key, const void *base); /* NULL: always */
    void (*print)(const config_key_t *key, const void *base, FILE *stream);
} config_type_t;

extern const config_type_t config_type_int;          /* int64_t */
extern const config_type_t config_type_optional_int; /* WG_CONFIG_UNSET where absent */
extern const config_type_t config_type_float;        /* double; NAN where absent */
extern const config_type_t config_type_float_above;  /* the same; the least value itself is out of range */
extern const config_type_t config_type_count;        /* uint32_t */
extern const config_type_t config_type_bool;
extern const config_type_t config_type_text; /* UTF-8 without control characters */
extern const config_type_t config_type_name; /* of a frontend */
extern const config_type_t config_type_host;
extern const config_type_t config_type_level;   /* of the log */
extern const config_type_t config_type_backend; /* of structured outputs */
extern const config_type_t config_type_startup; /* config_startup_t */
extern const config_type_t config_type_ints;    /* no duplicates */
extern const config_type_t config_type_ranks;   /* needs ranks.count to be read before */
extern const config_type_t config_type_address;
extern const config_type_t config_type_bind; /* needs its address, the key before it, to be read before */
extern const config_type_t config_type_http;

/* Checks the node's kind and reads it, or falls back where node is NULL. */
WG_MUST_CHECK wg_status_t config_value_read(const config_value_t *value, const config_node_t *node);

/* --- for the types themselves (config_value*.c) --- */

void *config_value_field(const config_value_t *value);
const void *config_value_at(const config_key_t *key, const void *base);
/* Lists: how many elements there are. */
uint32_t config_value_count(const config_key_t *key, const void *base);
void config_value_set_count(const config_value_t *value, uint32_t count);
wg_status_t config_value_no_memory(const config_value_t *value);
/* With its quotes, in the file's syntax. */
void config_value_print_text(const char *text, FILE *stream);

#endif
