/* config_place.h: where in the configuration file a value stands, so that every fault is reported with its
 * line and the key's full path. Used while loading only. Tests: tests/unit/config_*test.c */
#ifndef WG_COMMON_CONFIG_PLACE_H
#define WG_COMMON_CONFIG_PLACE_H

#include "common/config.h"
#include "common/config_repeat.h"
#include "common/config_source.h"

#define CONFIG_TOP "" /* the section of the keys that stand in no group */

/* A file while it is being read: config is filled from the settings below root. */
typedef struct {
    const char *path;
    const config_node_t *root;
    wg_config_t *config;
    wg_error_t *error;
} config_reading_t;

typedef struct {
    const char *section;
    uint32_t index;   /* which element, where section is a list (config_repeat.h) and name is not NULL */
    const char *name; /* NULL: the section as a whole; "": that one element as a whole */
} config_place_t;

/* The setting there, or NULL where the file does not have it. */
const config_node_t *config_place_node(const config_reading_t *reading, const config_place_t *place);

/* "coordinator.input", "frontends[1].input", "log_level": into text, which is returned. */
#define CONFIG_KEY_TEXT_SIZE 96u
const char *config_place_text(const config_place_t *place, char text[CONFIG_KEY_TEXT_SIZE]);

/* WG_E_CONFIG at that place; where the key is absent, at its group's line. */
wg_status_t config_fail(const config_reading_t *reading, const config_place_t *place, const char *format, ...)
    WG_PRINTF(3, 4);

#endif
