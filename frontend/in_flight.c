#include "frontend/in_flight.h"

#include <stdio.h>
#include <string.h>

in_flight_t *in_flight_new(wire_text_t id, uint32_t salt)
{
    enum { SUFFIX = 9 }; /* "-" and eight digits */
    in_flight_t *self = calloc(1, sizeof *self + id.size + SUFFIX + 1);
    if (!self)
        return NULL;
    char *text = (char *)(self + 1);
    memcpy(text, id.data, id.size);
    snprintf(text + id.size, SUFFIX + 1, "-%08x", salt);
    self->wire_id = (wire_text_t){text, id.size + SUFFIX};
    self->id = (wire_text_t){text, id.size};
    return self;
}

void in_flight_free(in_flight_t *entry)
{
    free(entry);
}

size_t in_flight_hash(const void *key)
{
    const wire_text_t *text = key;
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < text->size; i++)
        hash = (hash ^ (uint8_t)text->data[i]) * 1099511628211u;
    return (size_t)(hash ^ hash >> 32);
}

static int compare_text(const void *left, const void *right)
{
    const wire_text_t *a = left;
    const wire_text_t *b = right;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return memcmp(a->data, b->data, a->size);
}

zhashx_t *in_flight_set_new(void)
{
    zhashx_t *set = zhashx_new();
    if (!set)
        return NULL;
    zhashx_set_key_hasher(set, in_flight_hash);
    zhashx_set_key_comparator(set, compare_text);
    zhashx_set_key_duplicator(set, NULL);
    zhashx_set_key_destructor(set, NULL);
    return set;
}
