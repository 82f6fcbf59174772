/* The cursor against msgpack-c as the oracle: random values are read and skipped to what it says, and random
 * bytes are refused where it refuses them. The seeds are fixed, so that a failure comes again. */
#include "common/wire_reader.h"

#include "tests/unit/wire_frame.h"

#include <math.h>

enum { TREES = 5000, BYTE_STRINGS = 200000 };

static uint64_t seed;

static uint64_t random_bits(void) /* splitmix64 */
{
    uint64_t bits = seed += 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

static size_t random_below(size_t limit)
{
    return (size_t)(random_bits() % limit);
}

/* Small numbers are as likely as large ones. */
static uint64_t random_number(void)
{
    return random_bits() >> random_below(64);
}

/* --- random values, packed by msgpack-c --- */

static void pack_random_text(msgpack_packer *packer)
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

static void pack_random_bytes(msgpack_packer *packer, bool ext)
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
static void pack_random_number(msgpack_packer *packer)
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

static void pack_random(msgpack_packer *packer, unsigned depth)
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

static frame_t random_frame(void)
{
    msgpack_sbuffer buffer;
    msgpack_packer packer;
    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    pack_random(&packer, 4);
    return frame_of_buffer(&buffer);
}

/* --- the comparison --- */

static void assert_same_number(wire_reader_t *reader, const msgpack_object *object)
{
    int64_t number = 0;
    if (object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER) {
        assert_true(wire_reader_int(reader, &number));
        assert_true(number == object->via.i64);
    } else if (object->via.u64 <= INT64_MAX) {
        assert_true(wire_reader_int(reader, &number));
        assert_true((uint64_t)number == object->via.u64);
    } else {
        wire_reader_t copy = *reader;
        assert_false(wire_reader_int(&copy, &number));
        assert_true(wire_reader_skip(reader));
    }
}

static void assert_same_float(wire_reader_t *reader, const msgpack_object *object)
{
    double real = 0.0;
    assert_true(wire_reader_float(reader, &real));
    if (isnan(object->via.f64))
        assert_true(isnan(real));
    else
        assert_true(real >= object->via.f64 && real <= object->via.f64 &&
                    signbit(real) == signbit(object->via.f64));
}

static void assert_same_bytes(const void *data, size_t size, const void *expected, size_t expected_size)
{
    assert_int_equal(size, expected_size);
    assert_true(size == 0 || memcmp(data, expected, size) == 0);
}

static void assert_same_content(wire_reader_t *reader, const msgpack_object *object)
{
    wire_text_t text;
    wire_bytes_t bytes;
    int8_t type;
    switch (object->type) {
    case MSGPACK_OBJECT_STR:
        assert_true(wire_reader_text(reader, &text));
        assert_same_bytes(text.data, text.size, object->via.str.ptr, object->via.str.size);
        break;
    case MSGPACK_OBJECT_BIN:
        assert_true(wire_reader_bytes(reader, &bytes));
        assert_same_bytes(bytes.data, bytes.size, object->via.bin.ptr, object->via.bin.size);
        break;
    default:
        assert_true(wire_reader_ext(reader, &type, &bytes));
        assert_int_equal(type, object->via.ext.type);
        assert_same_bytes(bytes.data, bytes.size, object->via.ext.ptr, object->via.ext.size);
        break;
    }
}

static void assert_same(wire_reader_t *reader, const msgpack_object *object)
{
    bool flag;
    uint32_t count;
    switch (object->type) {
    case MSGPACK_OBJECT_NIL:
        assert_true(wire_reader_nil(reader));
        break;
    case MSGPACK_OBJECT_BOOLEAN:
        assert_true(wire_reader_bool(reader, &flag));
        assert_int_equal(flag, object->via.boolean);
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        assert_same_number(reader, object);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        assert_same_float(reader, object);
        break;
    case MSGPACK_OBJECT_STR:
    case MSGPACK_OBJECT_BIN:
    case MSGPACK_OBJECT_EXT:
        assert_same_content(reader, object);
        break;
    case MSGPACK_OBJECT_ARRAY:
        assert_true(wire_reader_array(reader, &count));
        assert_int_equal(count, object->via.array.size);
        for (uint32_t i = 0; i < count; i++)
            assert_same(reader, &object->via.array.ptr[i]);
        break;
    case MSGPACK_OBJECT_MAP:
        assert_true(wire_reader_map(reader, &count));
        assert_int_equal(count, object->via.map.size);
        for (uint32_t i = 0; i < count; i++) {
            assert_same(reader, &object->via.map.ptr[i].key);
            assert_same(reader, &object->via.map.ptr[i].val);
        }
        break;
    }
}

static void test_random_values_are_read_as_msgpack_c_reads_them(void **state)
{
    (void)state;
    seed = 1;
    for (int i = 0; i < TREES; i++) {
        frame_t frame = random_frame();
        size_t taken = 0;
        msgpack_unpacked result;
        wire_reader_t reader;
        msgpack_unpacked_init(&result);
        assert_int_equal(msgpack_unpack_next(&result, (const char *)frame.data, frame.size, &taken),
                         MSGPACK_UNPACK_SUCCESS);
        assert_int_equal(taken, frame.size);
        wire_reader_init(&reader, frame.data, frame.size);
        assert_same(&reader, &result.data);
        assert_int_equal(wire_reader_finish(&reader, "x", NULL), WG_OK);
        msgpack_unpacked_destroy(&result);
        frame_free(&frame);
    }
}

static void test_random_values_are_skipped_as_a_whole(void **state)
{
    (void)state;
    seed = 2;
    for (int i = 0; i < TREES; i++) {
        frame_t frame = random_frame();
        wire_bytes_t raw;
        wire_reader_t reader;
        wire_reader_init(&reader, frame.data, frame.size);
        assert_true(wire_reader_raw(&reader, &raw));
        assert_int_equal(raw.size, frame.size);
        assert_int_equal(wire_reader_finish(&reader, "x", NULL), WG_OK);
        frame_free(&frame);
    }
}

static wg_status_t decode_any(const void *data, size_t size, wg_error_t *error)
{
    wire_reader_t reader;
    wire_reader_init(&reader, data, size);
    wire_reader_skip(&reader);
    return wire_reader_finish(&reader, "value", error);
}

static void test_no_part_of_a_random_value_is_a_value(void **state)
{
    (void)state;
    seed = 3;
    for (int i = 0; i < TREES / 5; i++) {
        frame_t frame = random_frame();
        /* of a large one the first kilobyte will do: each cut copies the rest */
        size_t size = frame.size < 1024 ? frame.size : 1024;
        assert_truncations_refused(decode_any, "value", frame.data, size, 0);
        frame_free(&frame);
    }
}

/* msgpack-c knows neither UTF-8 nor a limit of counts (it would allocate first), so it is only asked about
 * the other faults. */
static bool oracle_agrees(const wire_reader_t *reader, const char *bytes, size_t size)
{
    bool accepted = !reader->fault;
    if (!accepted && (strcmp(reader->fault, "a count is larger than the frame") == 0 ||
                      strcmp(reader->fault, "a string that is not UTF-8") == 0))
        return true;
    size_t taken = 0;
    msgpack_unpacked result;
    msgpack_unpacked_init(&result);
    bool oracle = msgpack_unpack_next(&result, bytes, size, &taken) == MSGPACK_UNPACK_SUCCESS;
    msgpack_unpacked_destroy(&result);
    return oracle == accepted && (!accepted || taken == reader->at);
}

static void test_random_bytes_are_judged_as_msgpack_c_judges_them(void **state)
{
    (void)state;
    seed = 4;
    size_t accepted = 0;
    for (int i = 0; i < BYTE_STRINGS; i++) {
        char bytes[30]; /* msgpack-c nests at most 32 deep */
        size_t size = random_below(sizeof bytes + 1);
        for (size_t at = 0; at < size; at++) /* many headers, and lengths that sometimes fit */
            bytes[at] = (char)(random_below(2) == 0 ? random_below(8) : 0x80 + random_below(128));
        frame_t frame = frame_of_bytes(bytes, size);
        wire_reader_t reader;
        wire_reader_init(&reader, frame.data, size);
        accepted += wire_reader_skip(&reader);
        assert_true(reader.at <= size && reader.fault_at <= size);
        assert_true(oracle_agrees(&reader, bytes, size));
        frame_free(&frame);
    }
    assert_true(accepted > BYTE_STRINGS / 10); /* else the bytes would test nothing */
    assert_true(accepted < BYTE_STRINGS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_values_are_read_as_msgpack_c_reads_them),
        cmocka_unit_test(test_random_values_are_skipped_as_a_whole),
        cmocka_unit_test(test_no_part_of_a_random_value_is_a_value),
        cmocka_unit_test(test_random_bytes_are_judged_as_msgpack_c_judges_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
