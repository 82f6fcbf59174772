/* config_table.h: the one table of the configuration's keys. It drives loading (a key that is not here is
 * refused), printing, and the README's table of keys. Tests: tests/unit/config_test.c */
#ifndef WG_COMMON_CONFIG_TABLE_H
#define WG_COMMON_CONFIG_TABLE_H

#include "common/config_value.h"

#include <stddef.h>

struct config_key {
    const char *section; /* CONFIG_TOP or a group; the keys of one section stand together */
    const char *name;
    const config_type_t *type;
    size_t at;       /* of the value, in wg_config_t or, where the section is a list, in its element */
    size_t count_at; /* lists: of the uint32_t that counts them */
    int64_t min;     /* ints, and the elements of lists */
    int64_t max;
    const char *fallback; /* as text: what an absent key means; "" for nothing; NULL: the key is required */
    const char *help;
};

const config_key_t *config_keys(size_t *count);

/* NULL where the section has no such key. */
const config_key_t *config_key_find(const char *section, const char *name);
bool config_section_exists(const char *name);

/* Is its section a list of groups? */
bool config_key_is_repeated(const config_key_t *key);

/* How often its section stands in that config: once, or once per element. */
uint32_t config_key_repeats(const config_key_t *key, const wg_config_t *config);

/* Where the key's section is in memory: the wg_config_t, or that element. */
const void *config_key_base(const config_key_t *key, const wg_config_t *config, uint32_t index);

#endif
