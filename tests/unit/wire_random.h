/* wire_random.h: random MessagePack values for the tests of the codecs, packed by msgpack-c, and random
 * damage. A test sets random_seed first, so that a failure comes again. */
#ifndef WG_TESTS_WIRE_RANDOM_H
#define WG_TESTS_WIRE_RANDOM_H

#include "tests/unit/wire_frame.h"

static uint64_t random_seed;

static inline uint64_t random_bits(void) /* splitmix64 */
{
    uint64_t bits = random_seed += 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

static inline size_t random_below(size_t limit)
{
    return (size_t)(random_bits() % limit);
}

/* Small numbers are as likely as large ones. */
static inline uint64_t random_number(void)
{
    return random_bits() >> random_below(64);
}

/* --- random values, packed by msgpack-c --- */

static inline void pack_random_text(msgpack_packer *packer)
{
    static const char *const letters[] = {"a",
                                          "\x01",
                                          "\x7f",
                                          "\xc2\x80",
                                          "\xdf\xbf",
                                          "\xe0\xa0\x80",
                                          "\xed\x9f\xbf",
                                          "\xee\x80\x80",
                                          "\xef\xbf\xbf",
                                          "\xf0\x90\x80\x80",
                                          "\xf4\x8f\xbf\xbf"};
    char text[4 * 300];
    size_t size = 0;
    size_t count = random_below(random_below(8) == 0 ? 300 : 20);
    for (size_t i = 0; i < count; i++) {
        const char *letter = letters[random_below(COUNT_OF(letters))];
        for (; *letter; letter++)
            text[size++] = *letter;
    }
    msgpack_pack_str_with_body(packer, text, size);
}

static inline void pack_random_bytes(msgpack_packer *packer, bool ext)
{
    uint8_t bytes[300];
    size_t size = random_below(4) == 0 ? (size_t)1 << random_below(5) : random_below(sizeof bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)random_bits();
    if (ext)
        msgpack_pack_ext_with_body(packer, bytes, size, (int8_t)random_bits());
    else
        msgpack_pack_bin_with_body(packer, bytes, size);
}

/* Also wider than the number needs, which other libraries do. */
static inline void pack_random_number(msgpack_packer *packer)
{
    uint64_t bits = random_number();
    float narrow;
    double wide;
    switch (random_below(10)) {
    case 0:
        msgpack_pack_uint64(packer, bits);
        break;
    case 1:
        msgpack_pack_int64(packer, (int64_t)bits);
        break;
    case 2:
        msgpack_pack_int64(packer, -(int64_t)(bits >> 1));
        break;
    case 3:
        msgpack_pack_fix_uint16(packer, (uint16_t)bits);
        break;
    case 4:
        msgpack_pack_fix_uint64(packer, bits);
        break;
    case 5:
        msgpack_pack_fix_int8(packer, (int8_t)bits);
        break;
    case 6:
        msgpack_pack_fix_int32(packer, (int32_t)bits);
        break;
    case 7:
        msgpack_pack_fix_int64(packer, (int64_t)bits);
        break;
    case 8:
        memcpy(&narrow, &bits, sizeof narrow);
        msgpack_pack_float(packer, narrow);
        break;
    default:
        memcpy(&wide, &bits, sizeof wide);
        msgpack_pack_double(packer, wide);
        break;
    }
}

static inline void pack_random(msgpack_packer *packer, unsigned depth)
{
    size_t count = random_below(random_below(20) == 0 ? 40 : 6);
    switch (random_below(depth == 0 ? 6 : 9)) {
    case 0:
        msgpack_pack_nil(packer);
        break;
    case 1:
        if (random_below(2) == 0)
            msgpack_pack_true(packer);
        else
            msgpack_pack_false(packer);
        break;
    case 2:
    case 3:
        pack_random_number(packer);
        break;
    case 4:
        pack_random_text(packer);
        break;
    case 5:
        pack_random_bytes(packer, random_below(2) == 0);
        break;
    case 6:
    case 7:
        msgpack_pack_array(packer, count);
        for (size_t i = 0; i < count; i++)
            pack_random(packer, depth - 1);
        break;
    default:
        msgpack_pack_map(packer, count);
        for (size_t i = 0; i < 2 * count; i++)
            pack_random(packer, depth - 1);
        break;
    }
}

static inline frame_t random_frame(void)
{
    msgpack_sbuffer buffer;
    msgpack_packer packer;
    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    pack_random(&packer, 4);
    return frame_of_buffer(&buffer);
}

/* Changes, cuts or repeats a few bytes in place; the new size, at most the old one. */
static inline size_t damage_randomly(uint8_t *data, size_t size)
{
    static const uint8_t headers[] = {0x00, 0x7f, 0x80, 0x90, 0x9f, 0xa0, 0xc0, 0xc1, 0xc4, 0xc7, 0xc9, 0xca,
                                      0xcb, 0xcf, 0xd3, 0xd4, 0xd8, 0xd9, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xff};
    size_t times = 1 + random_below(4);
    for (size_t i = 0; i < times && size > 0; i++) {
        size_t at = random_below(size);
        switch (random_below(5)) {
        case 0:
            data[at] = headers[random_below(COUNT_OF(headers))];
            break;
        case 1:
            data[at] = (uint8_t)random_bits();
            break;
        case 2:
            data[at] ^= (uint8_t)(1u << random_below(8));
            break;
        case 3:
            memmove(data + at, data + random_below(at + 1), size - at);
            break;
        default:
            size = random_below(8) == 0 ? at : size;
            break;
        }
    }
    return size;
}

#endif
