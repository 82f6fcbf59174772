/* The control link between frontends and the coordinator, both ways, with all of a message's entries. */
#include "common/engine_id.h"
#include "common/wire_control.h"
#include "common/wire_registration.h"
#include "tests/fuzz/fuzz.h"

static void check_entry(wire_control_kind_t kind, const wire_control_entry_t *entry)
{
    FUZZ_CHECK(entry->rank <= WG_RANK_MAX);
    if (kind == WIRE_CONTROL_BEAT)
        FUZZ_CHECK(entry->number >= 0);
    if (kind == WIRE_CONTROL_RANKS) {
        FUZZ_CHECK(entry->number >= WG_RANK_ABSENT && entry->number <= WG_RANK_LOST);
        FUZZ_CHECK(wg_rank_state_name((wg_rank_state_t)entry->number)[0] != '\0');
    }
    FUZZ_CHECK(kind != WIRE_CONTROL_BEAT || !entry->has_response);
    FUZZ_CHECK(entry->has_response || entry->response.size == 0);
    if (entry->has_response) { /* an engine's words, passed on: they are judged only where they arrive */
        wire_registration_t registration;
        fuzz_read(entry->response.data, entry->response.size);
        (void)!wire_registration_decode(&registration, entry->response.data, entry->response.size, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wire_control_t out;
    wg_error_t error = {0};
    wg_status_t status = wire_control_decode(&out, data, size, &error);
    if (status != WG_OK) {
        FUZZ_CHECK(status == WG_E_DECODE);
        fuzz_refusal(status, &error);
        return 0;
    }
    FUZZ_CHECK(out.kind <= WIRE_CONTROL_REFUSED);
    FUZZ_CHECK(out.count <= size);
    if (out.kind == WIRE_CONTROL_REFUSED)
        fuzz_text(out.why);
    for (uint32_t i = 0; i < out.count; i++) {
        wire_control_entry_t entry;
        wire_control_next(&out, &entry);
        check_entry(out.kind, &entry);
    }
    return 0;
}
