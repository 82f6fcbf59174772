/* config_repeat.h: the sections of the configuration that are lists of groups, `frontends = ( { ... }, ...
 * )`: where the elements are in a wg_config_t. Used by the config_* files only. Tests:
 * tests/unit/config_test.c */
#ifndef WG_COMMON_CONFIG_REPEAT_H
#define WG_COMMON_CONFIG_REPEAT_H

#include "common/config.h"

#include <stddef.h>

#define CONFIG_FRONTENDS "frontends"
#define CONFIG_ADAPTERS "adapters"
#define CONFIG_REPEATS_MAX 1024u /* elements of one list */

typedef struct {
    const char *section;
    bool is_required; /* with at least one element */
    size_t list_at;   /* in wg_config_t: the pointer to the elements, and the uint32_t that counts them */
    size_t count_at;
    size_t element_size;
} config_repeat_t;

/* NULL where the section is not a list. */
const config_repeat_t *config_repeat_find(const char *section);
const config_repeat_t *config_repeats(size_t *count);

uint32_t config_repeat_count(const config_repeat_t *repeat, const wg_config_t *config);
void *config_repeat_element(const config_repeat_t *repeat, const wg_config_t *config, uint32_t index);
/* Makes so many elements, all zero. False without memory. */
WG_MUST_CHECK bool config_repeat_make(const config_repeat_t *repeat, wg_config_t *config, uint32_t count);

#endif
