#include "common/wire_reader.h"

#include <string.h>

void wire_reader_init(wire_reader_t *reader, const void *data, size_t size)
{
    *reader = (wire_reader_t){.data = data, .size = size};
}

bool wire_reader_fail(wire_reader_t *reader, const char *fault)
{
    if (!reader->fault) {
        reader->fault = fault;
        reader->fault_at = reader->at;
    }
    return false;
}

static size_t left(const wire_reader_t *reader)
{
    return reader->size - reader->at;
}

/* The tag of the next value, without consuming it. */
static bool tag_of_next(wire_reader_t *reader, uint8_t *tag)
{
    if (reader->fault)
        return false;
    if (left(reader) == 0)
        return wire_reader_fail(reader, "the frame ends too early");
    *tag = reader->data[reader->at];
    return true;
}

static uint64_t big_endian(const uint8_t *bytes, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Consumes a tag and the `width` bytes of big-endian number behind it. */
static bool take_number(wire_reader_t *reader, size_t width, uint64_t *out)
{
    if (left(reader) < 1 + width)
        return wire_reader_fail(reader, "the frame ends too early");
    *out = big_endian(reader->data + reader->at + 1, width);
    reader->at += 1 + width;
    return true;
}

/* Consumes `size` bytes of content. */
static bool take_content(wire_reader_t *reader, uint64_t size, wire_bytes_t *out)
{
    if (size > left(reader))
        return wire_reader_fail(reader, "a length is larger than the frame");
    *out = (wire_bytes_t){reader->data + reader->at, (size_t)size};
    reader->at += (size_t)size;
    return true;
}

wire_type_t wire_reader_peek(const wire_reader_t *reader)
{
    if (reader->fault || reader->at == reader->size)
        return WIRE_NOTHING;
    uint8_t tag = reader->data[reader->at];
    if (tag < 0x80 || tag >= 0xe0)
        return WIRE_INT;
    if (tag < 0x90)
        return WIRE_MAP;
    if (tag < 0xa0)
        return WIRE_ARRAY;
    if (tag < 0xc0)
        return WIRE_TEXT;
    static const uint8_t types[0x20] = {
        [0x00] = WIRE_NIL,   [0x01] = WIRE_NOTHING, [0x02] = WIRE_BOOL,  [0x03] = WIRE_BOOL,
        [0x04] = WIRE_BYTES, [0x05] = WIRE_BYTES,   [0x06] = WIRE_BYTES, [0x07] = WIRE_EXT,
        [0x08] = WIRE_EXT,   [0x09] = WIRE_EXT,     [0x0a] = WIRE_FLOAT, [0x0b] = WIRE_FLOAT,
        [0x0c] = WIRE_INT,   [0x0d] = WIRE_INT,     [0x0e] = WIRE_INT,   [0x0f] = WIRE_INT,
        [0x10] = WIRE_INT,   [0x11] = WIRE_INT,     [0x12] = WIRE_INT,   [0x13] = WIRE_INT,
        [0x14] = WIRE_EXT,   [0x15] = WIRE_EXT,     [0x16] = WIRE_EXT,   [0x17] = WIRE_EXT,
        [0x18] = WIRE_EXT,   [0x19] = WIRE_TEXT,    [0x1a] = WIRE_TEXT,  [0x1b] = WIRE_TEXT,
        [0x1c] = WIRE_ARRAY, [0x1d] = WIRE_ARRAY,   [0x1e] = WIRE_MAP,   [0x1f] = WIRE_MAP,
    };
    return (wire_type_t)types[tag - 0xc0];
}

bool wire_reader_nil(wire_reader_t *reader)
{
    if (wire_reader_peek(reader) != WIRE_NIL)
        return false;
    reader->at++;
    return true;
}

bool wire_reader_bool(wire_reader_t *reader, bool *out)
{
    uint8_t tag = 0;
    if (!tag_of_next(reader, &tag))
        return false;
    if (tag != 0xc2 && tag != 0xc3)
        return wire_reader_fail(reader, "not a boolean");
    *out = tag == 0xc3;
    reader->at++;
    return true;
}

bool wire_reader_int(wire_reader_t *reader, int64_t *out)
{
    uint8_t tag = 0;
    uint64_t value = 0;
    if (!tag_of_next(reader, &tag))
        return false;
    if (tag < 0x80 || tag >= 0xe0) {
        *out = tag < 0x80 ? tag : tag - 0x100;
        reader->at++;
        return true;
    }
    size_t start = reader->at;
    if (tag >= 0xcc && tag <= 0xcf) {
        if (!take_number(reader, (size_t)1 << (tag - 0xcc), &value))
            return false;
        if (value > INT64_MAX) {
            reader->at = start;
            return wire_reader_fail(reader, "an integer beyond int64");
        }
        *out = (int64_t)value;
        return true;
    }
    if (tag >= 0xd0 && tag <= 0xd3) {
        size_t width = (size_t)1 << (tag - 0xd0);
        if (!take_number(reader, width, &value))
            return false;
        unsigned unused = 64 - 8 * (unsigned)width;
        *out = (int64_t)(value << unused) >> unused; /* extends the sign */
        return true;
    }
    return wire_reader_fail(reader, "not an integer");
}

bool wire_reader_float(wire_reader_t *reader, double *out)
{
    uint8_t tag = 0;
    uint64_t bits = 0;
    if (!tag_of_next(reader, &tag))
        return false;
    if (tag == 0xca) {
        float narrow;
        if (!take_number(reader, 4, &bits))
            return false;
        uint32_t narrow_bits = (uint32_t)bits;
        memcpy(&narrow, &narrow_bits, sizeof narrow);
        *out = (double)narrow;
        return true;
    }
    if (tag == 0xcb) {
        if (!take_number(reader, 8, &bits))
            return false;
        memcpy(out, &bits, sizeof *out);
        return true;
    }
    int64_t integer;
    if (wire_reader_peek(reader) != WIRE_INT)
        return wire_reader_fail(reader, "not a number");
    if (!wire_reader_int(reader, &integer))
        return false;
    *out = (double)integer;
    return true;
}

/* Overlong forms, surrogates and anything above U+10FFFF are not valid: the engine's decoder would refuse
 * them. */
size_t wire_utf8_sequence(const void *text, size_t size)
{
    const uint8_t *at = text;
    uint8_t lead = at[0];
    uint8_t low = 0x80;
    uint8_t high = 0xbf;
    size_t length;
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead <= 0xdf) {
        length = 2;
    } else if (lead >= 0xe0 && lead <= 0xef) {
        length = 3;
        if (lead == 0xe0)
            low = 0xa0;
        if (lead == 0xed)
            high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        length = 4;
        if (lead == 0xf0)
            low = 0x90;
        if (lead == 0xf4)
            high = 0x8f;
    } else {
        return 0;
    }
    if (length > size || at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    }
    return length;
}

bool wire_utf8_valid(const void *text, size_t size)
{
    const uint8_t *bytes = text;
    size_t at = 0;
    while (at < size) {
        size_t length = wire_utf8_sequence(bytes + at, size - at);
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

bool wire_reader_text(wire_reader_t *reader, wire_text_t *out)
{
    uint8_t tag = 0;
    uint64_t size = 0;
    wire_bytes_t content = {NULL, 0};
    if (!tag_of_next(reader, &tag))
        return false;
    if (tag >= 0xa0 && tag <= 0xbf) {
        size = tag & 0x1f;
        reader->at++;
    } else if (tag >= 0xd9 && tag <= 0xdb) {
        if (!take_number(reader, (size_t)1 << (tag - 0xd9), &size))
            return false;
    } else {
        return wire_reader_fail(reader, "not a string");
    }
    if (!take_content(reader, size, &content))
        return false;
    if (!wire_utf8_valid(content.data, content.size))
        return wire_reader_fail(reader, "a string that is not UTF-8");
    *out = (wire_text_t){(const char *)content.data, content.size};
    return true;
}

bool wire_reader_bytes(wire_reader_t *reader, wire_bytes_t *out)
{
    uint8_t tag = 0;
    uint64_t size = 0;
    if (!tag_of_next(reader, &tag))
        return false;
    if (tag < 0xc4 || tag > 0xc6)
        return wire_reader_fail(reader, "not a byte string");
    return take_number(reader, (size_t)1 << (tag - 0xc4), &size) && take_content(reader, size, out);
}

/* Arrays and maps have the same three forms: in the tag itself, 16 bits, 32 bits. */
static bool take_count(wire_reader_t *reader, uint8_t tag, uint8_t fix, uint8_t wide, uint64_t *count)
{
    if ((tag & 0xf0) == fix) {
        *count = tag & 0x0f;
        reader->at++;
        return true;
    }
    return take_number(reader, tag == wide ? 2 : 4, count);
}

bool wire_reader_array(wire_reader_t *reader, uint32_t *count)
{
    uint8_t tag = 0;
    uint64_t items = 0;
    if (!tag_of_next(reader, &tag))
        return false;
    if (wire_reader_peek(reader) != WIRE_ARRAY)
        return wire_reader_fail(reader, "not an array");
    if (!take_count(reader, tag, 0x90, 0xdc, &items))
        return false;
    if (items > left(reader))
        return wire_reader_fail(reader, "a count is larger than the frame");
    *count = (uint32_t)items;
    return true;
}

bool wire_reader_map(wire_reader_t *reader, uint32_t *count)
{
    uint8_t tag = 0;
    uint64_t pairs = 0;
    if (!tag_of_next(reader, &tag))
        return false;
    if (wire_reader_peek(reader) != WIRE_MAP)
        return wire_reader_fail(reader, "not a map");
    if (!take_count(reader, tag, 0x80, 0xde, &pairs))
        return false;
    if (pairs > left(reader) / 2)
        return wire_reader_fail(reader, "a count is larger than the frame");
    *count = (uint32_t)pairs;
    return true;
}

bool wire_reader_ext(wire_reader_t *reader, int8_t *type, wire_bytes_t *out)
{
    uint8_t tag = 0;
    uint64_t size = 0;
    if (!tag_of_next(reader, &tag))
        return false;
    if (tag >= 0xd4 && tag <= 0xd8) {
        size = (uint64_t)1 << (tag - 0xd4);
        reader->at++;
    } else if (tag >= 0xc7 && tag <= 0xc9) {
        if (!take_number(reader, (size_t)1 << (tag - 0xc7), &size))
            return false;
    } else {
        return wire_reader_fail(reader, "not an extension");
    }
    if (left(reader) == 0)
        return wire_reader_fail(reader, "the frame ends too early");
    int8_t found = (int8_t)reader->data[reader->at++];
    if (!take_content(reader, size, out))
        return false;
    *type = found;
    return true;
}

/* Passes over one value that holds no others. */
static bool skip_leaf(wire_reader_t *reader)
{
    bool flag;
    uint64_t bits = 0;
    int8_t type;
    wire_text_t text;
    wire_bytes_t bytes;
    uint8_t tag = reader->data[reader->at];
    switch (wire_reader_peek(reader)) {
    case WIRE_NIL:
        return wire_reader_nil(reader);
    case WIRE_BOOL:
        return wire_reader_bool(reader, &flag);
    case WIRE_FLOAT:
        return take_number(reader, tag == 0xca ? 4 : 8, &bits);
    case WIRE_INT: /* by width, so that a uint64 beyond int64 may be passed over */
        if (tag < 0x80 || tag >= 0xe0) {
            reader->at++;
            return true;
        }
        return take_number(reader, (size_t)1 << (tag & 3), &bits);
    case WIRE_TEXT:
        return wire_reader_text(reader, &text);
    case WIRE_BYTES:
        return wire_reader_bytes(reader, &bytes);
    case WIRE_EXT:
        return wire_reader_ext(reader, &type, &bytes);
    default:
        return wire_reader_fail(reader, "not MessagePack (byte c1)");
    }
}

bool wire_reader_skip(wire_reader_t *reader)
{
    uint64_t open[WIRE_DEPTH_MAX]; /* how many values each open array or map still lacks */
    unsigned depth = 0;
    do {
        uint8_t tag = 0;
        uint32_t count = 0;
        bool nested = false;
        if (!tag_of_next(reader, &tag))
            return false;
        switch (wire_reader_peek(reader)) {
        case WIRE_ARRAY:
            if (!wire_reader_array(reader, &count))
                return false;
            nested = true;
            break;
        case WIRE_MAP:
            if (!wire_reader_map(reader, &count))
                return false;
            nested = true;
            break;
        default:
            if (!skip_leaf(reader))
                return false;
            break;
        }
        if (nested && depth == WIRE_DEPTH_MAX)
            return wire_reader_fail(reader, "nested too deeply");
        if (nested)
            open[depth++] = (tag & 0xf0) == 0x80 || tag >= 0xde ? 2 * (uint64_t)count : count;
        else if (depth > 0)
            open[depth - 1]--;
        while (depth > 0 && open[depth - 1] == 0) {
            depth--;
            if (depth > 0)
                open[depth - 1]--;
        }
    } while (depth > 0);
    return true;
}

bool wire_reader_raw(wire_reader_t *reader, wire_bytes_t *out)
{
    size_t start = reader->at;
    if (!wire_reader_skip(reader))
        return false;
    *out = (wire_bytes_t){reader->data + start, reader->at - start};
    return true;
}

wg_status_t wire_reader_finish(wire_reader_t *reader, const char *type, wg_error_t *error)
{
    if (!reader->fault && left(reader) > 0)
        wire_reader_fail(reader, "bytes are left over");
    if (reader->fault)
        return WG_FAIL(error, DECODE, type, reader->fault_at, reader->fault);
    return WG_OK;
}

bool wire_text_is(wire_text_t text, const char *literal)
{
    return text.size == strlen(literal) && memcmp(text.data, literal, text.size) == 0;
}
