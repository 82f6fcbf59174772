/* Each function of the cursor at the boundaries of its values. The rest of the cursor is
 * wire_reader_edges_test.c's; random values and hostile frames have tests of their own. */
#include "common/wire_reader.h"

#include "tests/unit/wire_frame.h"

#define BYTES(literal) literal, sizeof(literal) - 1
#define ZEROS_4 "\0\0\0\0"
#define LETTERS_31 "abcdefghijklmnopqrstuvwxyzabcde"
#define LETTERS_32 LETTERS_31 "f"

enum { TEXT_SIZE = 512 };

static void append_hex(char out[TEXT_SIZE], wire_bytes_t bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        snprintf(out + strlen(out), TEXT_SIZE - strlen(out), "%02x", bytes.data[i]);
}

/* Reads one value by the function for that type. out is what it gave, as text, and untouched where the
 * function left its outputs alone. */
static bool read_as(wire_type_t type, wire_reader_t *reader, char out[TEXT_SIZE])
{
    bool flag = false;
    int64_t number = 0;
    double real = 0.0;
    wire_text_t text = {"", 0};
    wire_bytes_t bytes = {NULL, 0};
    uint32_t count = 0;
    int8_t code = 0;
    bool ok = false;
    char got[TEXT_SIZE] = "";
    switch (type) {
    case WIRE_NIL:
        ok = wire_reader_nil(reader);
        break;
    case WIRE_BOOL:
        ok = wire_reader_bool(reader, &flag);
        snprintf(got, sizeof got, "%s", flag ? "true" : "false");
        break;
    case WIRE_INT:
        ok = wire_reader_int(reader, &number);
        snprintf(got, sizeof got, "%lld", (long long)number);
        break;
    case WIRE_FLOAT:
        ok = wire_reader_float(reader, &real);
        snprintf(got, sizeof got, "%.17g", real);
        break;
    case WIRE_TEXT:
        ok = wire_reader_text(reader, &text);
        snprintf(got, sizeof got, "%.*s", (int)text.size, text.data);
        break;
    case WIRE_BYTES:
        ok = wire_reader_bytes(reader, &bytes);
        append_hex(got, bytes);
        break;
    case WIRE_ARRAY:
        ok = wire_reader_array(reader, &count);
        snprintf(got, sizeof got, "%u", count);
        break;
    case WIRE_MAP:
        ok = wire_reader_map(reader, &count);
        snprintf(got, sizeof got, "%u", count);
        break;
    case WIRE_EXT:
        ok = wire_reader_ext(reader, &code, &bytes);
        snprintf(got, sizeof got, "%d:", code);
        append_hex(got, bytes);
        break;
    case WIRE_NOTHING:
        break;
    }
    if (ok)
        snprintf(out, TEXT_SIZE, "%s", got);
    return ok;
}

typedef struct {
    wire_type_t type; /* of the function */
    const char *bytes;
    size_t size;
    const char *value; /* as read_as prints it */
} row_t;

/* Every form that a value may have, at both ends of its range. */
static const row_t values[] = {
    {WIRE_NIL, BYTES("\xc0"), ""},
    {WIRE_BOOL, BYTES("\xc2"), "false"},
    {WIRE_BOOL, BYTES("\xc3"), "true"},
    {WIRE_INT, BYTES("\x00"), "0"},
    {WIRE_INT, BYTES("\x7f"), "127"},
    {WIRE_INT, BYTES("\xe0"), "-32"},
    {WIRE_INT, BYTES("\xff"), "-1"},
    {WIRE_INT, BYTES("\xcc\x00"), "0"},
    {WIRE_INT, BYTES("\xcc\xff"), "255"},
    {WIRE_INT, BYTES("\xcd\x00\x00"), "0"},
    {WIRE_INT, BYTES("\xcd\xff\xfe"), "65534"},
    {WIRE_INT, BYTES("\xce\x00\x00\x00\x01"), "1"},
    {WIRE_INT, BYTES("\xce\xff\xff\xff\xff"), "4294967295"},
    {WIRE_INT, BYTES("\xcf" ZEROS_4 ZEROS_4), "0"},
    {WIRE_INT, BYTES("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"), "9223372036854775807"},
    {WIRE_INT, BYTES("\xd0\x7f"), "127"},
    {WIRE_INT, BYTES("\xd0\x80"), "-128"},
    {WIRE_INT, BYTES("\xd1\x7f\xff"), "32767"},
    {WIRE_INT, BYTES("\xd1\x80\x00"), "-32768"},
    {WIRE_INT, BYTES("\xd2\x7f\xff\xff\xff"), "2147483647"},
    {WIRE_INT, BYTES("\xd2\x80\x00\x00\x00"), "-2147483648"},
    {WIRE_INT, BYTES("\xd3\x7f\xff\xff\xff\xff\xff\xff\xff"), "9223372036854775807"},
    {WIRE_INT, BYTES("\xd3\x80" ZEROS_4 "\0\0\0"), "-9223372036854775808"},
    {WIRE_INT, BYTES("\xd3\xff\xff\xff\xff\xff\xff\xff\xff"), "-1"},
    {WIRE_FLOAT, BYTES("\xca\x3f\x00\x00\x00"), "0.5"},
    {WIRE_FLOAT, BYTES("\xca\x80\x00\x00\x00"), "-0"},
    {WIRE_FLOAT, BYTES("\xca\x7f\x80\x00\x00"), "inf"},
    {WIRE_FLOAT, BYTES("\xca\x7f\xc0\x00\x00"), "nan"},
    {WIRE_FLOAT, BYTES("\xcb\xbf\xf8" ZEROS_4 "\0\0"), "-1.5"},
    {WIRE_FLOAT, BYTES("\xcb\x7f\xef\xff\xff\xff\xff\xff\xff"), "1.7976931348623157e+308"},
    {WIRE_FLOAT, BYTES("\xcb" ZEROS_4 "\0\0\0\x01"), "4.9406564584124654e-324"},
    {WIRE_FLOAT, BYTES("\xcb\xff\xf0" ZEROS_4 "\0\0"), "-inf"},
    {WIRE_TEXT, BYTES("\xa0"), ""},
    {WIRE_TEXT, BYTES("\xa1z"), "z"},
    {WIRE_TEXT, BYTES("\xbf" LETTERS_31), LETTERS_31},
    {WIRE_TEXT, BYTES("\xd9\x00"), ""},
    {WIRE_TEXT, BYTES("\xd9\x20" LETTERS_32), LETTERS_32},
    {WIRE_TEXT, BYTES("\xda\x00\x02\xc3\xbc"), "\xc3\xbc"},
    {WIRE_TEXT, BYTES("\xdb\x00\x00\x00\x01q"), "q"},
    {WIRE_BYTES, BYTES("\xc4\x00"), ""},
    {WIRE_BYTES, BYTES("\xc4\x02\x00\xff"), "00ff"},
    {WIRE_BYTES, BYTES("\xc5\x00\x01\x80"), "80"},
    {WIRE_BYTES, BYTES("\xc6\x00\x00\x00\x03\x01\x02\x03"), "010203"},
    {WIRE_EXT, BYTES("\xd4\x03\xaa"), "3:aa"},
    {WIRE_EXT, BYTES("\xd5\x80\x01\x02"), "-128:0102"},
    {WIRE_EXT, BYTES("\xd6\xff" ZEROS_4), "-1:00000000"},
    {WIRE_EXT, BYTES("\xd7\x7f" ZEROS_4 ZEROS_4), "127:0000000000000000"},
    {WIRE_EXT, BYTES("\xd8\x00" ZEROS_4 ZEROS_4 ZEROS_4 ZEROS_4), "0:00000000000000000000000000000000"},
    {WIRE_EXT, BYTES("\xc7\x00\x05"), "5:"},
    {WIRE_EXT, BYTES("\xc7\x03\x05\x01\x02\x03"), "5:010203"},
    {WIRE_EXT, BYTES("\xc8\x00\x01\x05\x09"), "5:09"},
    {WIRE_EXT, BYTES("\xc9\x00\x00\x00\x02\x05\x09\x08"), "5:0908"},
};

static void test_every_form_of_a_value_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        const row_t *row = &values[i];
        char got[TEXT_SIZE] = "(nothing)";
        wire_reader_t reader;
        frame_t frame = frame_of_bytes(row->bytes, row->size);
        wire_reader_init(&reader, frame.data, frame.size);
        assert_int_equal(wire_reader_peek(&reader), row->type);
        assert_true(read_as(row->type, &reader, got));
        assert_string_equal(got, row->value);
        assert_int_equal(wire_reader_peek(&reader), WIRE_NOTHING);
        assert_int_equal(wire_reader_finish(&reader, "x", NULL), WG_OK);
        frame_free(&frame);
    }
}

static void test_an_int_may_stand_for_a_float(void **state)
{
    (void)state;
    static const row_t rows[] = {
        {WIRE_FLOAT, BYTES("\x03"), "3"},
        {WIRE_FLOAT, BYTES("\xe0"), "-32"},
        {WIRE_FLOAT, BYTES("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"), "9.2233720368547758e+18"},
        {WIRE_FLOAT, BYTES("\xd3\x80" ZEROS_4 "\0\0\0"), "-9.2233720368547758e+18"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char got[TEXT_SIZE] = "(nothing)";
        wire_reader_t reader;
        wire_reader_init(&reader, rows[i].bytes, rows[i].size);
        assert_true(read_as(rows[i].type, &reader, got));
        assert_string_equal(got, rows[i].value);
        assert_int_equal(wire_reader_finish(&reader, "x", NULL), WG_OK);
    }
}

static void test_skip_and_raw_take_the_value_and_no_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        uint8_t two[64];
        wire_reader_t reader;
        wire_bytes_t raw;
        memcpy(two, values[i].bytes, values[i].size);
        two[values[i].size] = 0xc3;
        wire_reader_init(&reader, two, values[i].size + 1);
        assert_true(wire_reader_raw(&reader, &raw));
        assert_ptr_equal(raw.data, two);
        assert_int_equal(raw.size, values[i].size);
        assert_int_equal(wire_reader_peek(&reader), WIRE_BOOL);
        assert_true(wire_reader_skip(&reader));
        assert_int_equal(wire_reader_finish(&reader, "x", NULL), WG_OK);
    }
}

static void test_a_truncated_value_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        for (size_t cut = 0; cut < values[i].size; cut++) {
            char got[TEXT_SIZE] = "untouched";
            wire_reader_t reader;
            frame_t frame = frame_of_bytes(values[i].bytes, cut);
            wire_reader_init(&reader, frame.data, cut);
            assert_false(read_as(values[i].type, &reader, got));
            assert_string_equal(got, "untouched");
            if (values[i].type != WIRE_NIL)
                assert_int_equal(wire_reader_finish(&reader, "x", NULL), WG_E_DECODE);
            wire_reader_init(&reader, frame.data, cut);
            assert_false(wire_reader_skip(&reader));
            assert_int_equal(wire_reader_finish(&reader, "x", NULL), WG_E_DECODE);
            assert_true(reader.fault_at <= cut);
            frame_free(&frame);
        }
    }
}

/* For each function the fault that it records on a value of another type. */
static void test_a_value_of_another_type_is_refused(void **state)
{
    (void)state;
    static const struct {
        wire_type_t type;
        const char *fault;
    } functions[] = {
        {WIRE_BOOL, "not a boolean"}, {WIRE_INT, "not an integer"},      {WIRE_FLOAT, "not a number"},
        {WIRE_TEXT, "not a string"},  {WIRE_BYTES, "not a byte string"}, {WIRE_ARRAY, "not an array"},
        {WIRE_MAP, "not a map"},      {WIRE_EXT, "not an extension"},
    };
    for (size_t f = 0; f < COUNT_OF(functions); f++) {
        for (size_t i = 0; i < COUNT_OF(values); i++) {
            char got[TEXT_SIZE] = "untouched";
            wire_reader_t reader;
            bool same = values[i].type == functions[f].type;
            if (same || (functions[f].type == WIRE_FLOAT && values[i].type == WIRE_INT))
                continue;
            wire_reader_init(&reader, values[i].bytes, values[i].size);
            assert_false(read_as(functions[f].type, &reader, got));
            assert_string_equal(got, "untouched");
            assert_string_equal(reader.fault, functions[f].fault);
            assert_int_equal(reader.fault_at, 0);
        }
    }
}

static void test_a_count_is_held_against_the_bytes_left(void **state)
{
    (void)state;
    static const struct {
        row_t row;
        size_t fault_at; /* 0: none */
    } rows[] = {
        {{WIRE_ARRAY, BYTES("\x90"), "0"}, 0},
        {{WIRE_ARRAY, BYTES("\x93\x01\x02\x03"), "3"}, 0},
        {{WIRE_ARRAY, BYTES("\x94\x01\x02\x03"), NULL}, 1},
        {{WIRE_ARRAY, BYTES("\x9f\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"), "15"}, 0},
        {{WIRE_ARRAY, BYTES("\xdc\x00\x02\x01\x02"), "2"}, 0},
        {{WIRE_ARRAY, BYTES("\xdc\x00\x03\x01\x02"), NULL}, 3},
        {{WIRE_ARRAY, BYTES("\xdd\x00\x00\x00\x01\x01"), "1"}, 0},
        {{WIRE_ARRAY, BYTES("\xdd\x00\x00\x00\x02\x01"), NULL}, 5},
        {{WIRE_ARRAY, BYTES("\xdd\xff\xff\xff\xff"), NULL}, 5},
        {{WIRE_MAP, BYTES("\x80"), "0"}, 0},
        {{WIRE_MAP, BYTES("\x81\x01\x02"), "1"}, 0},
        {{WIRE_MAP, BYTES("\x81\x01"), NULL}, 1},
        {{WIRE_MAP, BYTES("\x82\x01\x02\x03"), NULL}, 1},
        {{WIRE_MAP, BYTES("\xde\x00\x02\x01\x02\x03\x04"), "2"}, 0},
        {{WIRE_MAP, BYTES("\xde\x00\x03\x01\x02\x03\x04\x05"), NULL}, 3},
        {{WIRE_MAP, BYTES("\xdf\x00\x00\x00\x01\x01\x02"), "1"}, 0},
        {{WIRE_MAP, BYTES("\xdf\x80\x00\x00\x00\x01\x02"), NULL}, 5},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const row_t *row = &rows[i].row;
        char got[TEXT_SIZE] = "untouched";
        wire_reader_t reader;
        frame_t frame = frame_of_bytes(row->bytes, row->size);
        wire_reader_init(&reader, frame.data, frame.size);
        assert_int_equal(wire_reader_peek(&reader), row->type);
        assert_int_equal(read_as(row->type, &reader, got), row->value != NULL);
        assert_string_equal(got, row->value ? row->value : "untouched");
        if (!row->value)
            assert_string_equal(reader.fault, "a count is larger than the frame");
        assert_int_equal(reader.fault_at, rows[i].fault_at);
        frame_free(&frame);
    }
}

static void test_errors_stick(void **state)
{
    (void)state;
    static const wire_type_t types[] = {WIRE_NIL,   WIRE_BOOL,  WIRE_INT, WIRE_FLOAT, WIRE_TEXT,
                                        WIRE_BYTES, WIRE_ARRAY, WIRE_MAP, WIRE_EXT};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        char got[TEXT_SIZE] = "untouched";
        wire_bytes_t raw = {NULL, 77};
        wire_reader_t reader;
        wire_reader_init(&reader, values[i].bytes, values[i].size);
        assert_false(wire_reader_fail(&reader, "the first"));
        assert_false(wire_reader_fail(&reader, "the second"));
        for (size_t type = 0; type < COUNT_OF(types); type++)
            assert_false(read_as(types[type], &reader, got));
        assert_string_equal(got, "untouched");
        assert_false(wire_reader_skip(&reader));
        assert_false(wire_reader_raw(&reader, &raw));
        assert_int_equal(raw.size, 77);
        assert_int_equal(wire_reader_peek(&reader), WIRE_NOTHING);
        assert_int_equal(reader.at, 0);
        wg_error_t error;
        assert_decode_error(wire_reader_finish(&reader, "Thing", &error), &error, "Thing", 0, "the first");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_form_of_a_value_is_read),
        cmocka_unit_test(test_an_int_may_stand_for_a_float),
        cmocka_unit_test(test_skip_and_raw_take_the_value_and_no_more),
        cmocka_unit_test(test_a_truncated_value_is_refused),
        cmocka_unit_test(test_a_value_of_another_type_is_refused),
        cmocka_unit_test(test_a_count_is_held_against_the_bytes_left),
        cmocka_unit_test(test_errors_stick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
