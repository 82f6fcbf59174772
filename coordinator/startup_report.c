#include "coordinator/startup_report.h"

enum { RANKS_NAMED_MAX = 16 };

static void describe(text_buffer_t *out, uint32_t rank, const rank_table_rank_t *state, int64_t now_ms)
{
    long long seconds = (long long)(now_ms - state->since_ms) / 1000;
    switch (state->state) {
    case WG_RANK_ABSENT:
        text_buffer_format(
            out, state->route_up ? "%u connected, and not heard of since a restart" : "%u not seen", rank);
        break;
    case WG_RANK_HELLO:
        text_buffer_format(out, "%u %s (HELLO %lld s ago)", rank,
                           state->registered ? "registered, not ready" : "loading", seconds);
        break;
    case WG_RANK_LOST:
        text_buffer_format(out, "%u lost (%lld s ago)", rank, seconds);
        break;
    case WG_RANK_SILENT: /* only frontends find that */
    case WG_RANK_READY:
        break;
    }
}

bool startup_report(text_buffer_t *out, const wg_config_t *config, const rank_table_t *ranks, int64_t now_ms)
{
    uint32_t count = rank_table_count(ranks);
    uint32_t missing = count - rank_table_count_in(ranks, WG_RANK_READY);
    uint32_t named = 0;
    if (missing == 0)
        return false;
    for (uint32_t rank = 0; rank < count && named < RANKS_NAMED_MAX; rank++) {
        const rank_table_rank_t *state = rank_table_get(ranks, rank);
        if (state->state == WG_RANK_READY)
            continue;
        if (named++ > 0)
            text_buffer_text(out, ", ");
        describe(out, rank, state, now_ms);
    }
    if (named < missing)
        text_buffer_format(out, ", and %u more", missing - named);
    text_buffer_format(out, "; listening on %s", config->coordinator.handshake.bind);
    return true;
}
