/* wire_json.h: a free-form MessagePack value of an engine (kv_transfer_params, utility results) as JSON text.
 * No state; any thread. Tests: tests/unit/wire_json_test.c
 *
 * What JSON lacks: keys that are not texts are written as text, NaN and infinities as null, byte strings in
 * base64, extensions as null. */
#ifndef WG_COMMON_WIRE_JSON_H
#define WG_COMMON_WIRE_JSON_H

#include "common/text_buffer.h"
#include "common/wire_reader.h"

/* Appends. raw: one value that a wire_reader has passed over, so it is sound and nested at most
 * WIRE_DEPTH_MAX deep; of anything else, and of nothing at all, it makes null. */
void wire_json_write(text_buffer_t *out, wire_bytes_t raw);

#endif
