/* wire_reader.h: a bounded cursor over one MessagePack frame. It never allocates, never recurses and never
 * reads past the end: counts are held against the bytes left and nesting against 64 (design.md 8).
 *
 * Errors stick: after the first one each call returns false and leaves its outputs alone, so a
 * decoder may read on and ask once, with wire_reader_finish. Strings and bytes point into the frame.
 * No state beyond the cursor; any thread. Tests: tests/unit/wire_reader_test.c */
#ifndef WG_COMMON_WIRE_READER_H
#define WG_COMMON_WIRE_READER_H

#include "common/status.h"

#include <stddef.h>
#include <stdint.h>

#define WIRE_DEPTH_MAX 64u

typedef struct {
    const uint8_t *data;
    size_t size;
    size_t at;
    const char *fault; /* NULL while all is well, else what is wrong at byte fault_at */
    size_t fault_at;
} wire_reader_t;

typedef struct {
    const char *data;
    size_t size;
} wire_text_t; /* UTF-8, not NUL-terminated */

typedef struct {
    const uint8_t *data;
    size_t size;
} wire_bytes_t;

typedef enum {
    WIRE_NIL,
    WIRE_BOOL,
    WIRE_INT,
    WIRE_FLOAT,
    WIRE_TEXT,
    WIRE_BYTES,
    WIRE_ARRAY,
    WIRE_MAP,
    WIRE_EXT,
    WIRE_NOTHING /* the end, a fault, or the byte c1 */
} wire_type_t;

void wire_reader_init(wire_reader_t *reader, const void *data, size_t size);

wire_type_t wire_reader_peek(const wire_reader_t *reader); /* of the next value; consumes nothing */

bool wire_reader_nil(wire_reader_t *reader); /* consumes a nil if one is next; else false, and no fault */
bool wire_reader_bool(wire_reader_t *reader, bool *out);
bool wire_reader_int(wire_reader_t *reader, int64_t *out);  /* a fault above int64 */
bool wire_reader_float(wire_reader_t *reader, double *out); /* an int may stand for a float (protocol.md 5) */
bool wire_reader_text(wire_reader_t *reader, wire_text_t *out); /* a fault unless valid UTF-8 */
bool wire_reader_bytes(wire_reader_t *reader, wire_bytes_t *out);
bool wire_reader_array(wire_reader_t *reader, uint32_t *count);
bool wire_reader_map(wire_reader_t *reader, uint32_t *count); /* that many key/value pairs follow */
bool wire_reader_ext(wire_reader_t *reader, int8_t *type, wire_bytes_t *out);

/* Passes over one value of any shape. */
bool wire_reader_skip(wire_reader_t *reader);
/* The same, and tells which bytes it took. */
bool wire_reader_raw(wire_reader_t *reader, wire_bytes_t *out);

/* Records the decoder's own finding at the current byte, unless there is a fault already. Always false. */
bool wire_reader_fail(wire_reader_t *reader, const char *fault);

/* WG_OK if there was no fault and no byte is left, else WG_E_DECODE naming `type`. error may be NULL. */
WG_MUST_CHECK wg_status_t wire_reader_finish(wire_reader_t *reader, const char *type, wg_error_t *error);

/* What Python's decoder calls valid: no overlong form, no surrogate, nothing above U+10FFFF. */
bool wire_utf8_valid(const void *text, size_t size);
/* The length of the valid sequence at the beginning of a text of at least one byte, or 0. */
size_t wire_utf8_sequence(const void *text, size_t size);

bool wire_text_is(wire_text_t text, const char *literal);

#endif
