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

const char *rank_map_text(char *text, size_t size, const uint32_t *ranks, size_t count)
{
    static const char cut[] = ", ...";
    size_t used = 0;
    size_t cut_at = 0; /* the last place between two ranks where the mark of a cut still fits */
    if (size > 0)
        text[0] = '\0';
    for (size_t i = 0; i < count && size > 0; i++) {
        const char *separator = i == 0 ? "" : ", ";
        if (used + strlen(cut) < size)
            cut_at = used;
        int length = snprintf(text + used, size - used, "%s%u", separator, ranks[i]);
        if (used + (size_t)length >= size) {
            snprintf(text + cut_at, size - cut_at, "%s", cut_at == 0 ? cut + strlen(", ") : cut);
            break;
        }
        used += (size_t)length;
    }
    return text;
}
