/* json_pack.h: free-form JSON as MessagePack, for what engines take as they get it (extra_args, ...). jansson
 * has checked that texts are UTF-8 and integers have 64 bits. No state; the loop.
 * Tests: tests/unit/json_pack_test.c */
#ifndef WG_FRONTEND_JSON_PACK_H
#define WG_FRONTEND_JSON_PACK_H

#include "common/wire_pack.h"

#include <jansson.h>

/* Recursive: only for what was parsed under prompt_scan's bound of depth. */
void json_pack_value(wire_pack_t *pack, const json_t *value);

void json_pack_text(wire_pack_t *pack, const json_t *text);

#endif
