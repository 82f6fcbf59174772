#include "common/wire_prompt.h"

#include <stdlib.h>

#define SMALLEST_ALLOC 256u

bool wire_prompt_grow(wire_prompt_packer_t *packer, size_t more)
{
    msgpack_sbuffer *buffer = packer->buffer;
    size_t alloc = buffer->alloc > SMALLEST_ALLOC ? buffer->alloc : SMALLEST_ALLOC;
    if (packer->failed || more > SIZE_MAX / 4 - buffer->size) {
        packer->failed = true;
        return false;
    }
    while (alloc - buffer->size < more || alloc == buffer->alloc)
        alloc *= 2;
    char *data = realloc(buffer->data, alloc);
    if (!data) {
        packer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->alloc = alloc;
    return true;
}

void wire_prompt_begin(wire_prompt_packer_t *packer, msgpack_sbuffer *buffer)
{
    *packer = (wire_prompt_packer_t){.buffer = buffer, .start = buffer->size};
}

bool wire_prompt_end(wire_prompt_packer_t *packer, size_t *start, size_t *size, size_t *count)
{
    msgpack_sbuffer *buffer = packer->buffer;
    if (packer->failed) {
        buffer->size = packer->start;
        return false;
    }
    *start = packer->start;
    *size = buffer->size - packer->start;
    *count = packer->count;
    return true;
}
