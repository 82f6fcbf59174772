/* The cursor against msgpack-c as the oracle: random values are read and skipped to what it says, and random
 * bytes are refused where it refuses them. The seeds are fixed, so that a failure comes again. */
#include "common/wire_reader.h"

#include "tests/unit/wire_random.h"

#include <math.h>

enum { TREES = 5000, BYTE_STRINGS = 200000 };

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
    random_seed = 1;
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
    random_seed = 2;
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
    random_seed = 3;
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
    random_seed = 4;
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
