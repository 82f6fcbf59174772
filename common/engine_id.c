#include "common/engine_id.h"

#include <stdio.h>
#include <string.h>

wg_status_t wg_engine_id_from_rank(wg_engine_id_t *out, uint64_t rank)
{
    if (rank > WG_RANK_MAX)
        return WG_E_INVALID_DATA_PARALLEL_RANK;
    out->bytes[0] = (uint8_t)(rank & 0xff);
    out->bytes[1] = (uint8_t)(rank >> 8);
    return WG_OK;
}

wg_status_t wg_engine_id_parse(wg_engine_id_t *out, const void *data, size_t size, wg_error_t *error)
{
    if (size != WG_ENGINE_ID_SIZE) {
        char text[WG_ID_TEXT_SIZE];
        return WG_FAIL(error, UNSUPPORTED_COORDINATOR_ENGINE_ID, wg_id_text(text, data, size));
    }
    memcpy(out->bytes, data, WG_ENGINE_ID_SIZE);
    return WG_OK;
}

uint32_t wg_engine_id_rank(wg_engine_id_t id)
{
    return (uint32_t)id.bytes[0] | (uint32_t)id.bytes[1] << 8;
}

const char *wg_id_text(char text[WG_ID_TEXT_SIZE], const void *data, size_t size)
{
    const uint8_t *bytes = data;
    size_t shown = size < 16 ? size : 16;
    snprintf(text, WG_ID_TEXT_SIZE, "%s", "(empty)");
    for (size_t i = 0; i < shown; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    if (shown < size)
        snprintf(text + 2 * shown, WG_ID_TEXT_SIZE - 2 * shown, "...");
    return text;
}
