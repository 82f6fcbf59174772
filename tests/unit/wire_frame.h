/* wire_frame.h: MessagePack frames for the tests of the codecs: written as JSON, packed by msgpack-c. Each ends
 * where its block of memory ends, so that the sanitizer sees a decoder that reads one byte too many. */
#ifndef WG_TESTS_WIRE_FRAME_H
#define WG_TESTS_WIRE_FRAME_H

#include "common/status.h"
#include "tests/unit/json_text.h"

#include <jansson.h>
#include <msgpack.h>
#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

typedef struct {
    uint8_t *block;
    uint8_t *data; /* in the block */
    size_t size;
} frame_t;

/* Of content that the caller fills in. */
static inline frame_t frame_of_size(size_t size)
{
    uint8_t *block = malloc(size + 1); /* malloc (0) may be NULL */
    assert_non_null(block);
    return (frame_t){block, block + 1, size};
}

static inline frame_t frame_of_bytes(const void *data, size_t size)
{
    frame_t frame = frame_of_size(size);
    if (size > 0)
        memcpy(frame.data, data, size);
    return frame;
}

static inline void frame_free(frame_t *frame)
{
    free(frame->block);
    *frame = (frame_t){0};
}

/* Takes the buffer's content and frees it. */
static inline frame_t frame_of_buffer(msgpack_sbuffer *buffer)
{
    frame_t frame = frame_of_bytes(buffer->data, buffer->size);
    msgpack_sbuffer_destroy(buffer);
    return frame;
}

static inline void pack_json(msgpack_packer *packer, json_t *value)
{
    const char *key;
    json_t *member;
    size_t index;
    switch (value ? json_typeof(value) : JSON_NULL) {
    case JSON_OBJECT:
        msgpack_pack_map(packer, json_object_size(value));
        json_object_foreach(value, key, member)
        {
            msgpack_pack_str_with_body(packer, key, strlen(key));
            pack_json(packer, member);
        }
        break;
    case JSON_ARRAY:
        msgpack_pack_array(packer, json_array_size(value));
        json_array_foreach(value, index, member) pack_json(packer, member);
        break;
    case JSON_STRING:
        msgpack_pack_str_with_body(packer, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        msgpack_pack_int64(packer, json_integer_value(value));
        break;
    case JSON_REAL:
        msgpack_pack_double(packer, json_real_value(value));
        break;
    case JSON_TRUE:
        msgpack_pack_true(packer);
        break;
    case JSON_FALSE:
        msgpack_pack_false(packer);
        break;
    case JSON_NULL:
        msgpack_pack_nil(packer);
        break;
    }
}

/* Strings in the JSON stand in single quotes (json_text.h). */
static inline frame_t frame_of_json(const char *json)
{
    json_error_t fault;
    msgpack_sbuffer buffer;
    msgpack_packer packer;
    char *text = json_text(json);
    json_t *value = json_loadb(text, strlen(json), JSON_DECODE_ANY | JSON_ALLOW_NUL, &fault);
    if (!value)
        fail_msg("the test's own JSON is wrong: %s: %s", fault.text, json);
    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    pack_json(&packer, value);
    json_decref(value);
    free(text);
    return frame_of_buffer(&buffer);
}

/* --- how a decoder must refuse --- */

/* Decodes, and reads on as a caller would where the frame is sound as a whole. */
typedef wg_status_t decode_fn(const void *data, size_t size, wg_error_t *error);

static inline void assert_decode_error(wg_status_t status, const wg_error_t *error, const char *type,
                                       size_t at, const char *why)
{
    char expected[256];
    snprintf(expected, sizeof expected, "messagepack decode failed for %s at byte %zu: %s", type, at, why);
    if (status != WG_E_DECODE)
        fail_msg("status %s, expected: %s", wg_status_name(status), expected);
    assert_int_equal(error->status, WG_E_DECODE);
    assert_string_equal(error->message, expected);
}

/* A frame that is refused: as JSON, or as bytes where JSON cannot say it. */
typedef struct {
    const char *json;
    const char *bytes; /* where json is NULL */
    size_t size;       /* of bytes */
    size_t at;
    const char *why;
} frame_refusal_t;

#define RAW(literal) NULL, literal, sizeof(literal) - 1
#define JSON(text) text, NULL, 0

static inline void assert_frames_refused(decode_fn *decode, const char *type, const frame_refusal_t *refusals,
                                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const frame_refusal_t *refusal = &refusals[i];
        frame_t frame =
            refusal->json ? frame_of_json(refusal->json) : frame_of_bytes(refusal->bytes, refusal->size);
        wg_error_t error = {0};
        wg_status_t status = decode(frame.data, frame.size, &error);
        if (status == WG_OK)
            fail_msg("accepted: %s (row %zu)", refusal->json ? refusal->json : "bytes", i);
        assert_decode_error(status, &error, type, refusal->at, refusal->why);
        assert_int_equal(decode(frame.data, frame.size, NULL), WG_E_DECODE); /* error may be NULL */
        frame_free(&frame);
    }
}

/* No part of a frame is a frame. */
static inline void assert_truncations_refused(decode_fn *decode, const char *type, const void *data,
                                              size_t size, size_t shortest)
{
    char begin[128];
    snprintf(begin, sizeof begin, "messagepack decode failed for %s at byte ", type);
    for (size_t cut = shortest; cut < size; cut++) {
        frame_t frame = frame_of_bytes(data, cut);
        wg_error_t error = {0};
        if (decode(frame.data, frame.size, &error) != WG_E_DECODE)
            fail_msg("accepted: the first %zu of %zu bytes of a %s", cut, size, type);
        assert_memory_equal(error.message, begin, strlen(begin));
        frame_free(&frame);
    }
}

/* What a flipped byte does is not said, only that it does no harm: the sanitizers watch. */
static inline void assert_survives_damage(decode_fn *decode, const void *data, size_t size)
{
    static const uint8_t values[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1,
                                     0xc2, 0xc4, 0xc6, 0xc9, 0xca, 0xcb, 0xcf, 0xd3, 0xd4, 0xd8,
                                     0xd9, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xff};
    frame_t frame = frame_of_bytes(data, size);
    for (size_t at = 0; at < size; at++) {
        uint8_t sound = frame.data[at];
        for (size_t i = 0; i < COUNT_OF(values); i++) {
            frame.data[at] = values[i];
            wg_status_t status = decode(frame.data, size, NULL);
            if (status != WG_OK && status != WG_E_DECODE)
                fail_msg("byte %zu = %02x: %s", at, values[i], wg_status_name(status));
        }
        frame.data[at] = sound;
    }
    frame_free(&frame);
}

#endif
