#include "common/wire_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void write_base64(text_buffer_t *out, wire_bytes_t bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    text_buffer_text(out, "\"");
    for (size_t at = 0; at < bytes.size; at += 3) {
        size_t left = bytes.size - at;
        uint32_t group = (uint32_t)bytes.data[at] << 16;
        group |= left > 1 ? (uint32_t)bytes.data[at + 1] << 8 : 0;
        group |= left > 2 ? bytes.data[at + 2] : 0;
        const char text[] = {digits[group >> 18], digits[group >> 12 & 63],
                             left > 1 ? digits[group >> 6 & 63] : '=', left > 2 ? digits[group & 63] : '='};
        text_buffer_bytes(out, text, sizeof text);
    }
    text_buffer_text(out, "\"");
}

static void write_float(text_buffer_t *out, double value)
{
    char text[40];
    if (!isfinite(value)) {
        text_buffer_text(out, "null");
        return;
    }
    int size = snprintf(text, sizeof text, "%.17g", value);
    text_buffer_bytes(out, text, (size_t)size);
    if (!strpbrk(text, ".e"))
        text_buffer_text(out, ".0"); /* a float stays one */
}

/* An int of any width: msgpack's go up to 2^64 - 1. */
static void write_int(text_buffer_t *out, wire_reader_t *reader)
{
    int64_t value = 0;
    if (reader->data[reader->at] != 0xcf) {
        wire_reader_int(reader, &value);
        text_buffer_int(out, value);
        return;
    }
    uint64_t wide = 0;
    for (size_t i = 1; i <= 8; i++)
        wide = wide << 8 | reader->data[reader->at + i];
    wire_reader_skip(reader);
    text_buffer_format(out, "%" PRIu64, wide);
}

/* Any value but an array or a map. */
static void write_leaf(text_buffer_t *out, wire_reader_t *reader)
{
    bool flag = false;
    double number = 0;
    wire_text_t text = {"", 0};
    wire_bytes_t bytes = {NULL, 0};
    switch (wire_reader_peek(reader)) {
    case WIRE_BOOL:
        wire_reader_bool(reader, &flag);
        text_buffer_text(out, flag ? "true" : "false");
        break;
    case WIRE_INT:
        write_int(out, reader);
        break;
    case WIRE_FLOAT:
        wire_reader_float(reader, &number);
        write_float(out, number);
        break;
    case WIRE_TEXT:
        wire_reader_text(reader, &text);
        text_buffer_json(out, text.data, text.size);
        break;
    case WIRE_BYTES:
        wire_reader_bytes(reader, &bytes);
        write_base64(out, bytes);
        break;
    default: /* nil, an extension */
        wire_reader_skip(reader);
        text_buffer_text(out, "null");
        break;
    }
}

/* What is not a text becomes one: its own JSON, as a string. */
static void write_key(text_buffer_t *out, wire_reader_t *reader)
{
    wire_text_t text;
    text_buffer_t json = {0};
    if (wire_reader_peek(reader) == WIRE_TEXT) {
        if (wire_reader_text(reader, &text))
            text_buffer_json(out, text.data, text.size);
        return;
    }
    if (wire_reader_peek(reader) == WIRE_ARRAY || wire_reader_peek(reader) == WIRE_MAP) {
        wire_reader_skip(reader); /* no JSON value has such keys */
        text_buffer_text(out, "\"\"");
        return;
    }
    write_leaf(&json, reader);
    text_buffer_json(out, json.data ? json.data : "", json.size);
    out->failed |= json.failed;
    text_buffer_free(&json);
}

typedef struct {
    uint32_t left; /* items, or pairs */
    bool is_map;
    bool begun;
} open_t;

/* By hand instead of recursion, so that its depth costs no stack. */
static void write_value(text_buffer_t *out, wire_reader_t *reader)
{
    open_t open[WIRE_DEPTH_MAX];
    unsigned depth = 0;
    do {
        open_t *top = depth > 0 ? &open[depth - 1] : NULL;
        if (top && top->left == 0) {
            text_buffer_text(out, top->is_map ? "}" : "]");
            depth--;
            continue;
        }
        if (top) {
            text_buffer_text(out, top->begun ? "," : "");
            top->begun = true;
            top->left--;
        }
        if (top && top->is_map) {
            write_key(out, reader);
            text_buffer_text(out, ":");
        }
        wire_type_t type = wire_reader_peek(reader);
        if (type != WIRE_ARRAY && type != WIRE_MAP) {
            write_leaf(out, reader);
            continue;
        }
        if (depth == WIRE_DEPTH_MAX) {
            wire_reader_fail(reader, "nested too deeply");
            return;
        }
        open_t inner = {.is_map = type == WIRE_MAP};
        inner.is_map ? wire_reader_map(reader, &inner.left) : wire_reader_array(reader, &inner.left);
        text_buffer_text(out, inner.is_map ? "{" : "[");
        open[depth++] = inner;
    } while (depth > 0 && !reader->fault);
}

void wire_json_write(text_buffer_t *out, wire_bytes_t raw)
{
    wire_reader_t reader;
    wire_bytes_t value;
    wire_reader_init(&reader, raw.data, raw.size);
    if (raw.size == 0 || !wire_reader_raw(&reader, &value) || value.size != raw.size) {
        text_buffer_text(out, "null");
        return;
    }
    wire_reader_init(&reader, raw.data, raw.size);
    write_value(out, &reader);
}
