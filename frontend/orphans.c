#include "frontend/orphans.h"

#include "frontend/in_flight.h"

bool orphans_may_abort(orphans_t *orphans, wire_text_t wire_id, int64_t now_ms)
{
    int64_t *until_ms = &orphans->until_ms[in_flight_hash(&wire_id) % ORPHANS_SLOTS];
    if (now_ms < *until_ms)
        return false;
    *until_ms = now_ms + ORPHANS_PERIOD_MS;
    return true;
}
