/* wire_prompt.h: packs the token ids of a prompt one after the other, a few nanoseconds each: prompts have
 * hundreds of thousands. Several prompts may go into one buffer. No state beyond the packer; any thread.
 * Tests: tests/unit/wire_prompt_test.c */
#ifndef WG_COMMON_WIRE_PROMPT_H
#define WG_COMMON_WIRE_PROMPT_H

#include "common/status.h"

#include <msgpack.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    msgpack_sbuffer *buffer;
    size_t start; /* of the first id */
    size_t count;
    bool failed; /* out of memory */
} wire_prompt_packer_t;

#define WIRE_PROMPT_ID_BYTES_MAX 5u

/* The ids go to the end of the buffer, which takes nothing else before wire_prompt_end. */
void wire_prompt_begin(wire_prompt_packer_t *packer, msgpack_sbuffer *buffer);

/* Makes room for at least `more` bytes. False without memory. */
bool wire_prompt_grow(wire_prompt_packer_t *packer, size_t more);

static inline void wire_prompt_add(wire_prompt_packer_t *packer, uint32_t id)
{
    msgpack_sbuffer *buffer = packer->buffer;
    if (buffer->alloc - buffer->size < WIRE_PROMPT_ID_BYTES_MAX &&
        !wire_prompt_grow(packer, WIRE_PROMPT_ID_BYTES_MAX))
        return;
    uint8_t *out = (uint8_t *)buffer->data + buffer->size;
    packer->count++;
    if (id < 0x80) {
        out[0] = (uint8_t)id;
        buffer->size += 1;
    } else if (id < 0x100) {
        out[0] = 0xcc;
        out[1] = (uint8_t)id;
        buffer->size += 2;
    } else if (id < 0x10000) {
        out[0] = 0xcd;
        out[1] = (uint8_t)(id >> 8);
        out[2] = (uint8_t)id;
        buffer->size += 3;
    } else {
        out[0] = 0xce;
        out[1] = (uint8_t)(id >> 24);
        out[2] = (uint8_t)(id >> 16);
        out[3] = (uint8_t)(id >> 8);
        out[4] = (uint8_t)id;
        buffer->size += 5;
    }
}

/* Where the ids are in the buffer, which may move when it grows: take pointers when it does not any more.
 * False without memory, and then the buffer is as before. */
WG_MUST_CHECK bool wire_prompt_end(wire_prompt_packer_t *packer, size_t *start, size_t *size, size_t *count);

#endif
