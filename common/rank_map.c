#include "common/rank_map.h"

#include <stdlib.h>
#include <string.h>

static int by_rank(const void *left, const void *right)
{
    const uint32_t *a = left;
    const uint32_t *b = right;
    return (*a > *b) - (*a < *b);
}

int64_t rank_map_find(const uint32_t *ranks, uint32_t count, uint32_t rank)
{
    const uint32_t *found = bsearch(&rank, ranks, count, sizeof rank, by_rank);
    return found ? found - ranks : -1;
}

bool rank_map_serves(const config_frontend_t *frontend, uint32_t rank)
{
    return rank_map_find(frontend->ranks, frontend->rank_count, rank) >= 0;
}

uint32_t rank_map_client_count(const wg_config_t *config, uint32_t rank)
{
    if (rank >= config->ranks.count)
        return 0;
    uint32_t count = RANK_MAP_SLOT_INDEX + 1;
    for (uint32_t i = 0; i < config->frontend_count; i++)
        count += rank_map_serves(&config->frontends[i], rank);
    return count;
}

bool rank_map_client(const wg_config_t *config, uint32_t rank, uint32_t index, rank_map_client_t *out)
{
    if (rank >= config->ranks.count)
        return false;
    if (index == RANK_MAP_SLOT_INDEX) {
        *out = (rank_map_client_t){&config->coordinator.input, &config->coordinator.output};
        return true;
    }
    uint32_t at = RANK_MAP_SLOT_INDEX;
    for (uint32_t i = 0; i < config->frontend_count; i++) {
        const config_frontend_t *frontend = &config->frontends[i];
        if (rank_map_serves(frontend, rank) && ++at == index) {
            *out = (rank_map_client_t){&frontend->input, &frontend->output};
            return true;
        }
    }
    return false;
}

bool rank_map_client_index(const wg_config_t *config, const config_frontend_t *frontend, uint32_t rank,
                           uint32_t *out)
{
    if (!rank_map_serves(frontend, rank))
        return false;
    uint32_t index = RANK_MAP_SLOT_INDEX + 1;
    for (const config_frontend_t *earlier = config->frontends; earlier < frontend; earlier++)
        index += rank_map_serves(earlier, rank);
    *out = index;
    return true;
}

/* A text that grows by items, each complete or replaced by the mark of a cut. */
typedef struct {
    char *text;
    size_t size;
    size_t used;
    size_t cut_at; /* the last place between two items where the mark still fits */
} list_t;

static list_t list_begin(char *text, size_t size)
{
    if (size > 0)
        text[0] = '\0';
    return (list_t){.text = text, .size = size};
}

/* False where the item did not fit: the text is complete then. */
static bool list_add(list_t *list, const char *item)
{
    static const char cut[] = ", ...";
    const char *separator = list->used == 0 ? "" : ", ";
    if (list->size == 0)
        return false;
    if (list->used + strlen(cut) < list->size)
        list->cut_at = list->used;
    size_t left = list->size - list->used;
    size_t length = (size_t)snprintf(list->text + list->used, left, "%s%s", separator, item);
    if (length >= left) {
        snprintf(list->text + list->cut_at, list->size - list->cut_at, "%s",
                 list->cut_at == 0 ? cut + strlen(", ") : cut);
        return false;
    }
    list->used += length;
    return true;
}

const char *rank_map_text(char *text, size_t size, const uint32_t *ranks, size_t count)
{
    list_t list = list_begin(text, size);
    bool fits = true;
    for (size_t i = 0; i < count && fits; i++) {
        char item[16];
        snprintf(item, sizeof item, "%u", ranks[i]);
        fits = list_add(&list, item);
    }
    return text;
}

const char *rank_map_ranges(char *text, size_t size, const uint32_t *ranks, size_t count)
{
    list_t list = list_begin(text, size);
    bool fits = true;
    for (size_t i = 0; i < count && fits;) {
        char item[32];
        uint32_t first = ranks[i++];
        while (i < count && ranks[i] == ranks[i - 1] + 1)
            i++;
        if (ranks[i - 1] == first)
            snprintf(item, sizeof item, "%u", first);
        else
            snprintf(item, sizeof item, "%u-%u", first, ranks[i - 1]);
        fits = list_add(&list, item);
    }
    return text;
}
