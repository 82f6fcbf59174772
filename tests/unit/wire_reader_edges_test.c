/* The cursor where no value is read: nil, peek, the end of a frame, faults, and integers that do not fit. */
#include "common/wire_reader.h"

#include "tests/unit/wire_frame.h"

static void test_nil_is_taken_only_where_it_is_next(void **state)
{
    (void)state;
    wire_reader_t reader;
    wire_reader_init(&reader, "\xc0\x01", 2);
    assert_true(wire_reader_nil(&reader));
    assert_false(wire_reader_nil(&reader));
    assert_null(reader.fault);
    assert_int_equal(reader.at, 1);
    assert_true(wire_reader_skip(&reader));
    assert_false(wire_reader_nil(&reader)); /* the end is no fault either */
    assert_int_equal(wire_reader_finish(&reader, "x", NULL), WG_OK);
}

static void test_an_integer_beyond_int64_is_refused_but_may_be_skipped(void **state)
{
    (void)state;
    static const char *const frames[] = {"\xcf\x80\0\0\0\0\0\0\0", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff"};
    for (size_t i = 0; i < COUNT_OF(frames); i++) {
        int64_t number = 5;
        double real = 5.0;
        wire_reader_t reader;
        wire_reader_init(&reader, frames[i], 9);
        assert_false(wire_reader_int(&reader, &number));
        assert_int_equal(number, 5);
        assert_string_equal(reader.fault, "an integer beyond int64");
        assert_int_equal(reader.fault_at, 0);
        wire_reader_init(&reader, frames[i], 9);
        assert_false(wire_reader_float(&reader, &real));
        assert_float_equal(real, 5.0, 0.0);
        wire_reader_init(&reader, frames[i], 9);
        assert_true(wire_reader_skip(&reader));
        assert_int_equal(wire_reader_finish(&reader, "x", NULL), WG_OK);
    }
}

/* msgpack-c says what each first byte begins; zeros behind it serve every count and length. */
static void test_peek_knows_all_256_first_bytes(void **state)
{
    (void)state;
    static const wire_type_t types[] = {
        [MSGPACK_OBJECT_NIL] = WIRE_NIL,
        [MSGPACK_OBJECT_BOOLEAN] = WIRE_BOOL,
        [MSGPACK_OBJECT_POSITIVE_INTEGER] = WIRE_INT,
        [MSGPACK_OBJECT_NEGATIVE_INTEGER] = WIRE_INT,
        [MSGPACK_OBJECT_FLOAT32] = WIRE_FLOAT,
        [MSGPACK_OBJECT_FLOAT64] = WIRE_FLOAT,
        [MSGPACK_OBJECT_STR] = WIRE_TEXT,
        [MSGPACK_OBJECT_BIN] = WIRE_BYTES,
        [MSGPACK_OBJECT_ARRAY] = WIRE_ARRAY,
        [MSGPACK_OBJECT_MAP] = WIRE_MAP,
        [MSGPACK_OBJECT_EXT] = WIRE_EXT,
    };
    for (unsigned tag = 0; tag < 256; tag++) {
        char frame[64] = {(char)tag};
        size_t taken = 0;
        wire_type_t expected = WIRE_NOTHING;
        msgpack_unpacked result;
        wire_reader_t reader;
        msgpack_unpacked_init(&result);
        if (msgpack_unpack_next(&result, frame, sizeof frame, &taken) == MSGPACK_UNPACK_SUCCESS)
            expected = types[result.data.type];
        wire_reader_init(&reader, frame, sizeof frame);
        assert_int_equal(wire_reader_peek(&reader), expected);
        assert_int_equal(wire_reader_skip(&reader), expected != WIRE_NOTHING);
        if (expected != WIRE_NOTHING)
            assert_int_equal(reader.at, taken);
        msgpack_unpacked_destroy(&result);
    }
}

static void test_finish_names_the_type_and_the_byte(void **state)
{
    (void)state;
    wg_error_t error = {0};
    wire_reader_t reader;
    wire_reader_init(&reader, "\xc0\xc0\xc0", 3);
    assert_true(wire_reader_nil(&reader));
    assert_decode_error(wire_reader_finish(&reader, "Thing", &error), &error, "Thing", 1,
                        "bytes are left over");
    wire_reader_init(&reader, "\xc0\xc0\xc0", 3);
    assert_true(wire_reader_skip(&reader) && wire_reader_skip(&reader));
    wire_reader_fail(&reader, "my own finding");
    assert_decode_error(wire_reader_finish(&reader, "Thing", &error), &error, "Thing", 2, "my own finding");
    assert_int_equal(wire_reader_finish(&reader, "Thing", NULL), WG_E_DECODE);
}

static void test_an_empty_frame_holds_nothing(void **state)
{
    (void)state;
    int64_t number = 5;
    wire_reader_t reader;
    wire_reader_init(&reader, NULL, 0);
    assert_int_equal(wire_reader_peek(&reader), WIRE_NOTHING);
    assert_false(wire_reader_nil(&reader));
    assert_int_equal(wire_reader_finish(&reader, "x", NULL), WG_OK);
    assert_false(wire_reader_int(&reader, &number));
    assert_string_equal(reader.fault, "the frame ends too early");
    wire_reader_init(&reader, NULL, 0);
    assert_false(wire_reader_skip(&reader));
}

static void test_text_is_compared_as_a_whole(void **state)
{
    (void)state;
    assert_true(wire_text_is((wire_text_t){"READY!", 5}, "READY"));
    assert_false(wire_text_is((wire_text_t){"READY!", 6}, "READY"));
    assert_false(wire_text_is((wire_text_t){"READ", 4}, "READY"));
    assert_false(wire_text_is((wire_text_t){"READY\0", 6}, "READY"));
    assert_false(wire_text_is((wire_text_t){"ready", 5}, "READY"));
    assert_false(wire_text_is((wire_text_t){NULL, 0}, "READY"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nil_is_taken_only_where_it_is_next),
        cmocka_unit_test(test_an_integer_beyond_int64_is_refused_but_may_be_skipped),
        cmocka_unit_test(test_peek_knows_all_256_first_bytes),
        cmocka_unit_test(test_finish_names_the_type_and_the_byte),
        cmocka_unit_test(test_an_empty_frame_holds_nothing),
        cmocka_unit_test(test_text_is_compared_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
