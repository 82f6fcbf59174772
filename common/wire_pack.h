/* wire_pack.h: small words on top of msgpack-c's packer, which all our encoders use (design.md 8). Packing
 * into an sbuffer fails only without memory; an sbuffer that could not grow keeps its size, so an encoder
 * checks each result by way of the one flag here. No state beyond the pack; any thread. */
#ifndef WG_COMMON_WIRE_PACK_H
#define WG_COMMON_WIRE_PACK_H

#include "common/status.h"
#include "common/wire_reader.h"

#include <msgpack.h>
#include <string.h>

typedef struct {
    msgpack_packer packer;
    bool failed;
} wire_pack_t;

static inline void wire_pack_init(wire_pack_t *pack, msgpack_sbuffer *buffer)
{
    msgpack_packer_init(&pack->packer, buffer, msgpack_sbuffer_write);
    pack->failed = false;
}

static inline void wire_pack_array(wire_pack_t *pack, size_t count)
{
    pack->failed |= msgpack_pack_array(&pack->packer, count) != 0;
}

static inline void wire_pack_map(wire_pack_t *pack, size_t pairs)
{
    pack->failed |= msgpack_pack_map(&pack->packer, pairs) != 0;
}

static inline void wire_pack_nil(wire_pack_t *pack)
{
    pack->failed |= msgpack_pack_nil(&pack->packer) != 0;
}

static inline void wire_pack_bool(wire_pack_t *pack, bool value)
{
    pack->failed |= (value ? msgpack_pack_true(&pack->packer) : msgpack_pack_false(&pack->packer)) != 0;
}

static inline void wire_pack_int(wire_pack_t *pack, int64_t value)
{
    pack->failed |= msgpack_pack_int64(&pack->packer, value) != 0;
}

static inline void wire_pack_float(wire_pack_t *pack, double value)
{
    pack->failed |= msgpack_pack_double(&pack->packer, value) != 0;
}

static inline void wire_pack_text(wire_pack_t *pack, wire_text_t text)
{
    pack->failed |= msgpack_pack_str(&pack->packer, text.size) != 0;
    pack->failed |= msgpack_pack_str_body(&pack->packer, text.data, text.size) != 0;
}

static inline void wire_pack_literal(wire_pack_t *pack, const char *literal)
{
    wire_pack_text(pack, (wire_text_t){literal, strlen(literal)});
}

static inline void wire_pack_bytes(wire_pack_t *pack, wire_bytes_t bytes)
{
    pack->failed |= msgpack_pack_bin(&pack->packer, bytes.size) != 0;
    pack->failed |= msgpack_pack_bin_body(&pack->packer, bytes.data, bytes.size) != 0;
}

/* A value that is packed already. */
static inline void wire_pack_raw(wire_pack_t *pack, wire_bytes_t value)
{
    pack->failed |= pack->packer.callback(pack->packer.data, (const char *)value.data, value.size) != 0;
}

/* WG_OK, or WG_E_ENCODE naming `type`. error may be NULL. */
WG_MUST_CHECK static inline wg_status_t wire_pack_finish(const wire_pack_t *pack, const char *type,
                                                         wg_error_t *error)
{
    return pack->failed ? WG_FAIL(error, ENCODE, type, "out of memory") : WG_OK;
}

#endif
