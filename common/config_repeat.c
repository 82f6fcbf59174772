#include "common/config_repeat.h"

#include <stdlib.h>
#include <string.h>

static const config_repeat_t repeats[] = {
    {CONFIG_FRONTENDS, true, offsetof(wg_config_t, frontends), offsetof(wg_config_t, frontend_count),
     sizeof(config_frontend_t)},
    {CONFIG_ADAPTERS, false, offsetof(wg_config_t, adapters), offsetof(wg_config_t, adapter_count),
     sizeof(config_adapter_t)},
};

const config_repeat_t *config_repeats(size_t *count)
{
    *count = sizeof repeats / sizeof *repeats;
    return repeats;
}

const config_repeat_t *config_repeat_find(const char *section)
{
    for (size_t i = 0; i < sizeof repeats / sizeof *repeats; i++) {
        if (strcmp(repeats[i].section, section) == 0)
            return &repeats[i];
    }
    return NULL;
}

uint32_t config_repeat_count(const config_repeat_t *repeat, const wg_config_t *config)
{
    uint32_t count;
    memcpy(&count, (const char *)config + repeat->count_at, sizeof count);
    return count;
}

void *config_repeat_element(const config_repeat_t *repeat, const wg_config_t *config, uint32_t index)
{
    char *list;
    memcpy(&list, (const char *)config + repeat->list_at, sizeof list);
    return list + index * repeat->element_size;
}

bool config_repeat_make(const config_repeat_t *repeat, wg_config_t *config, uint32_t count)
{
    void *list = calloc(count ? count : 1, repeat->element_size);
    if (!list)
        return false;
    memcpy((char *)config + repeat->list_at, &list, sizeof list);
    memcpy((char *)config + repeat->count_at, &count, sizeof count);
    return true;
}
