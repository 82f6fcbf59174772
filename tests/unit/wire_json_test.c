/* Free-form values as JSON: each type byte for byte, and random values as jansson reads them again, with
 * msgpack-c as the oracle. Frames that were made to hurt are wire_hostile_test.c's. */
#include "common/wire_json.h"
#include "tests/unit/wire_random.h"

#include <math.h>

static text_buffer_t json_of(const void *data, size_t size)
{
    text_buffer_t out = {0};
    wire_json_write(&out, (wire_bytes_t){data, size});
    assert_false(out.failed);
    return out;
}

static void assert_json(const void *data, size_t size, const char *expected)
{
    frame_t frame = frame_of_bytes(data, size);
    text_buffer_t out = json_of(frame.data, frame.size);
    if (out.size != strlen(expected) || memcmp(out.data, expected, out.size) != 0)
        fail_msg("%.*s, expected: %s", (int)out.size, out.data, expected);
    text_buffer_free(&out);
    frame_free(&frame);
}

typedef struct {
    const char *bytes;
    size_t size;
    const char *json;
} row_t;

#define ROW(literal, json)                                                                                   \
    {                                                                                                        \
        literal, sizeof(literal) - 1, json                                                                   \
    }

static void assert_rows(const row_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_json(rows[i].bytes, rows[i].size, rows[i].json);
}

static void test_integers_of_every_width_are_exact(void **state)
{
    (void)state;
    static const row_t rows[] = {
        ROW("\x00", "0"),
        ROW("\x7f", "127"),
        ROW("\xff", "-1"),
        ROW("\xe0", "-32"),
        ROW("\xcc\xff", "255"),
        ROW("\xcd\xff\xff", "65535"),
        ROW("\xce\xff\xff\xff\xff", "4294967295"),
        ROW("\xcf\x00\x00\x00\x00\x00\x00\x00\x07", "7"),                /* wider than it must be */
        ROW("\xcf\x00\x20\x00\x00\x00\x00\x00\x01", "9007199254740993"), /* no double is that */
        ROW("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", "9223372036854775807"),
        ROW("\xcf\x80\x00\x00\x00\x00\x00\x00\x00", "9223372036854775808"),
        ROW("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615"),
        ROW("\xd0\x80", "-128"),
        ROW("\xd1\x80\x00", "-32768"),
        ROW("\xd2\x80\x00\x00\x00", "-2147483648"),
        ROW("\xd3\x80\x00\x00\x00\x00\x00\x00\x00", "-9223372036854775808"),
        ROW("\xd3\x00\x00\x00\x00\x00\x00\x00\x07", "7"),
    };
    assert_rows(rows, COUNT_OF(rows));
}

static void test_floats_stay_floats_and_are_exact(void **state)
{
    (void)state;
    static const row_t rows[] = {
        ROW("\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00", "1.0"),
        ROW("\xca\x3f\x80\x00\x00", "1.0"),
        ROW("\xcb\x80\x00\x00\x00\x00\x00\x00\x00", "-0.0"),
        ROW("\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a", "0.10000000000000001"),
        ROW("\xca\x3d\xcc\xcc\xcd", "0.10000000149011612"), /* a float32's own value */
        ROW("\xcb\x43\x40\x00\x00\x00\x00\x00\x00", "9007199254740992.0"),
        ROW("\xcb\x44\xb5\x2d\x02\xc7\xe1\x4a\xf6", "9.9999999999999992e+22"),
        ROW("\xcb\x7f\xef\xff\xff\xff\xff\xff\xff", "1.7976931348623157e+308"),
        ROW("\xcb\x00\x00\x00\x00\x00\x00\x00\x01", "4.9406564584124654e-324"),
        ROW("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", "null"), /* what JSON cannot say */
        ROW("\xcb\xff\xf0\x00\x00\x00\x00\x00\x00", "null"),
        ROW("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", "null"),
        ROW("\xca\x7f\x80\x00\x00", "null"),
        ROW("\xca\xff\xc0\x00\x01", "null"),
    };
    assert_rows(rows, COUNT_OF(rows));
}

static void test_texts_are_escaped(void **state)
{
    (void)state;
    static const row_t rows[] = {
        ROW("\xa0", "\"\""),
        ROW("\xa1"
            "a",
            "\"a\""),
        ROW("\xa4\"\\\n\x01", "\"\\\"\\\\\\u000a\\u0001\""),
        ROW("\xa3"
            "a\0b",
            "\"a\\u0000b\""),
        ROW("\xa4\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""),
        ROW("\xd9\x01x", "\"x\""),
        ROW("\xda\x00\x01x", "\"x\""),
        ROW("\xdb\x00\x00\x00\x01x", "\"x\""),
    };
    assert_rows(rows, COUNT_OF(rows));
}

static void test_byte_strings_are_base64(void **state)
{
    (void)state;
    static const row_t rows[] = {
        ROW("\xc4\x00", "\"\""),
        ROW("\xc4\x01\x00", "\"AA==\""),
        ROW("\xc4\x01\xff", "\"/w==\""),
        ROW("\xc4\x02\xff\xff", "\"//8=\""),
        ROW("\xc4\x03\xfb\xef\xbe", "\"++++\""),
        ROW("\xc5\x00\x04\x00\x10\x83\x10", "\"ABCDEA==\""),
        ROW("\xc6\x00\x00\x00\x05hello", "\"aGVsbG8=\""),
        ROW("\x81\xc4\x02hi\x01", "{\"\\\"aGk=\\\"\":1}"),
    };
    assert_rows(rows, COUNT_OF(rows));
}

static void test_arrays_maps_and_words(void **state)
{
    (void)state;
    static const row_t rows[] = {
        ROW("\xc0", "null"),
        ROW("\xc2", "false"),
        ROW("\xc3", "true"),
        ROW("\x90", "[]"),
        ROW("\x80", "{}"),
        ROW("\x93\x01\x02\x03", "[1,2,3]"),
        ROW("\x92\x90\x80", "[[],{}]"),
        ROW("\x92\x91\x91\x90\x91\x80", "[[[[]]],[{}]]"),
        ROW("\x82\xa1"
            "a\x01\xa1"
            "b\x92\xc0\xc3",
            "{\"a\":1,\"b\":[null,true]}"),
        ROW("\x81\xa1"
            "a\x81\xa1"
            "b\x80",
            "{\"a\":{\"b\":{}}}"),
        ROW("\xdc\x00\x02\x01\xc0", "[1,null]"),
        ROW("\xdd\x00\x00\x00\x01\xc2", "[false]"),
        ROW("\xde\x00\x01\xa1k\x05", "{\"k\":5}"),
        ROW("\xdf\x00\x00\x00\x01\xa1k\x05", "{\"k\":5}"),
    };
    assert_rows(rows, COUNT_OF(rows));
}

static void test_keys_that_are_no_texts_become_texts(void **state)
{
    (void)state;
    static const row_t rows[] = {
        ROW("\x81\x07\x01", "{\"7\":1}"),
        ROW("\x81\xff\x01", "{\"-1\":1}"),
        ROW("\x81\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x01", "{\"18446744073709551615\":1}"),
        ROW("\x81\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\x01", "{\"1.0\":1}"),
        ROW("\x81\xca\x7f\x80\x00\x00\x01", "{\"null\":1}"),
        ROW("\x81\xc0\x01", "{\"null\":1}"),
        ROW("\x81\xc3\x01", "{\"true\":1}"),
        ROW("\x81\xd4\x05\x01\x01", "{\"null\":1}"),
        ROW("\x81\x92\x01\x02\x03", "{\"\":3}"),
        ROW("\x81\x81\x01\x02\x90", "{\"\":[]}"),
        ROW("\x81\xa0\x81\xa0\x90", "{\"\":{\"\":[]}}"),
        ROW("\x82\x01\x02\x01\x03", "{\"1\":2,\"1\":3}"), /* as often as it stands there */
    };
    assert_rows(rows, COUNT_OF(rows));
}

static void test_extensions_are_null(void **state)
{
    (void)state;
    static const row_t rows[] = {
        ROW("\xd4\x03\xff", "null"),
        ROW("\xc7\x03\x01"
            "abc",
            "null"),
        ROW("\x92\xd5\xff\x01\x02\x07", "[null,7]"),
    };
    assert_rows(rows, COUNT_OF(rows));
}

static void test_what_is_not_one_sound_value_is_null(void **state)
{
    (void)state;
    static const row_t rows[] = {
        ROW("", "null"),
        ROW("\xc1", "null"),
        ROW("\x91", "null"),
        ROW("\x91\xc1", "null"),
        ROW("\x92\x01", "null"),
        ROW("\x81\xa1k", "null"),
        ROW("\xa1\xff", "null"),             /* not UTF-8 */
        ROW("\x82\x01\x02\xa1\x80", "null"), /* and a half is not begun either */
        ROW("\x01\x02", "null"),             /* two values */
        ROW("\x90\xc0", "null"),
        ROW("\xdd\xff\xff\xff\xff", "null"),
    };
    assert_rows(rows, COUNT_OF(rows));
    text_buffer_t out = json_of(NULL, 0);
    assert_int_equal(out.size, 4);
    assert_memory_equal(out.data, "null", 4);
    text_buffer_free(&out);
}

static void test_writing_appends(void **state)
{
    (void)state;
    text_buffer_t out = {0};
    text_buffer_text(&out, "a:");
    wire_json_write(&out, (wire_bytes_t){(const uint8_t *)"\x91\x01", 2});
    wire_json_write(&out, (wire_bytes_t){(const uint8_t *)"\xc3", 1});
    assert_int_equal(out.size, 9);
    assert_memory_equal(out.data, "a:[1]true", 9);
    text_buffer_free(&out);
}

/* --- depth --- */

static text_buffer_t nested_json(const char *opening, size_t size, size_t depth, const char *leaf)
{
    frame_t frame = frame_of_size(size * depth + 1);
    for (size_t i = 0; i < depth; i++)
        memcpy(frame.data + i * size, opening, size);
    frame.data[size * depth] = (uint8_t)*leaf;
    text_buffer_t out = json_of(frame.data, frame.size);
    frame_free(&frame);
    return out;
}

static void test_values_may_nest_64_deep_and_no_deeper(void **state)
{
    (void)state;
    text_buffer_t out = nested_json("\x91", 1, WIRE_DEPTH_MAX, "\x07");
    assert_int_equal(out.size, 2 * WIRE_DEPTH_MAX + 1);
    assert_int_equal(out.data[WIRE_DEPTH_MAX], '7');
    text_buffer_free(&out);
    out = nested_json("\x81\x01", 2, WIRE_DEPTH_MAX, "\xc3");
    assert_int_equal(out.size, 6 * WIRE_DEPTH_MAX + 4);
    text_buffer_free(&out);
    out = nested_json("\x91", 1, WIRE_DEPTH_MAX + 1, "\x07");
    assert_int_equal(out.size, 4);
    text_buffer_free(&out);
    out = nested_json("\x81\x01", 2, WIRE_DEPTH_MAX, "\x90");
    assert_int_equal(out.size, 4);
    text_buffer_free(&out);
}

/* A key that is one byte is the worst: false, as a text. */
static void test_the_text_is_at_most_eight_times_the_frame(void **state)
{
    (void)state;
    enum { PAIRS = 60000 };
    frame_t frame = frame_of_size(3 + 2 * PAIRS);
    memset(frame.data, 0xc2, frame.size);
    memcpy(frame.data, (const uint8_t[]){0xde, PAIRS >> 8, PAIRS & 0xff}, 3);
    text_buffer_t out = json_of(frame.data, frame.size);
    assert_true(out.size <= 8 * frame.size && out.size > 6 * frame.size);
    assert_true(out.capacity <= 16 * frame.size + 4096);
    text_buffer_free(&out);
    frame_free(&frame);
}

/* --- random values --- */

/* With integers as reals: jansson has none beyond int64. The rows above say what is exact. */
static json_t *parse(const text_buffer_t *out, bool *has_nul_key)
{
    json_error_t fault;
    json_t *value =
        json_loadb(out->data, out->size, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &fault);
    *has_nul_key = !value && json_error_code(&fault) == json_error_null_byte_in_key;
    if (!value && !*has_nul_key) /* which jansson refuses, although JSON has them */
        fail_msg("not JSON: %s: %.*s", fault.text, (int)out->size, out->data);
    return value;
}

static void assert_same(const json_t *json, const msgpack_object *object);

static void assert_same_number(const json_t *json, double expected)
{
    if (!isfinite(expected))
        assert_true(json_is_null(json));
    else
        assert_true(json_is_real(json) && json_real_value(json) >= expected &&
                    json_real_value(json) <= expected);
}

static bool is_same_key(const msgpack_object *a, const msgpack_object *b)
{
    return b->type == MSGPACK_OBJECT_STR && a->via.str.size == b->via.str.size &&
           memcmp(a->via.str.ptr, b->via.str.ptr, a->via.str.size) == 0;
}

/* The keys that are texts; jansson keeps the last of those that are alike. */
static void assert_same_map(const json_t *json, const msgpack_object_map *map)
{
    assert_true(json_is_object(json));
    assert_true(json_object_size(json) <= map->size);
    for (uint32_t i = 0; i < map->size; i++) {
        const msgpack_object *key = &map->ptr[i].key;
        bool is_last = key->type == MSGPACK_OBJECT_STR && key->via.str.size > 0;
        for (uint32_t j = i + 1; is_last && j < map->size; j++)
            is_last = !is_same_key(key, &map->ptr[j].key);
        if (is_last) {
            char *name = strndup(key->via.str.ptr, key->via.str.size);
            assert_non_null(name);
            assert_same(json_object_get(json, name), &map->ptr[i].val);
            free(name);
        }
    }
}

static void assert_same(const json_t *json, const msgpack_object *object)
{
    switch (object->type) {
    case MSGPACK_OBJECT_BOOLEAN:
        assert_true(json_is_boolean(json) && json_is_true(json) == object->via.boolean);
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        assert_same_number(json, (double)object->via.u64);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        assert_same_number(json, (double)object->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        assert_same_number(json, object->via.f64);
        break;
    case MSGPACK_OBJECT_STR:
        assert_int_equal(json_string_length(json), object->via.str.size);
        assert_memory_equal(json_string_value(json), object->via.str.ptr, object->via.str.size);
        break;
    case MSGPACK_OBJECT_BIN:
        assert_int_equal(json_string_length(json), (object->via.bin.size + 2) / 3 * 4);
        break;
    case MSGPACK_OBJECT_ARRAY:
        assert_int_equal(json_array_size(json), object->via.array.size);
        for (uint32_t i = 0; i < object->via.array.size; i++)
            assert_same(json_array_get(json, i), &object->via.array.ptr[i]);
        break;
    case MSGPACK_OBJECT_MAP:
        assert_same_map(json, &object->via.map);
        break;
    default: /* nil, an extension */
        assert_true(json_is_null(json));
        break;
    }
}

static void test_random_values_are_what_msgpack_c_reads(void **state)
{
    (void)state;
    enum { TREES = 4000 };
    random_seed = 11;
    for (int i = 0; i < TREES; i++) {
        frame_t frame = random_frame();
        text_buffer_t out = json_of(frame.data, frame.size);
        bool has_nul_key;
        json_t *json = parse(&out, &has_nul_key);
        msgpack_unpacked result;
        msgpack_unpacked_init(&result);
        size_t taken = 0;
        assert_int_equal(msgpack_unpack_next(&result, (const char *)frame.data, frame.size, &taken),
                         MSGPACK_UNPACK_SUCCESS);
        assert_false(has_nul_key); /* none of the random letters is NUL */
        assert_same(json, &result.data);
        msgpack_unpacked_destroy(&result);
        json_decref(json);
        text_buffer_free(&out);
        frame_free(&frame);
    }
}

static void test_random_damage_still_gives_json(void **state)
{
    (void)state;
    enum { ROUNDS = 20000 };
    size_t written = 0;
    random_seed = 12;
    for (int i = 0; i < ROUNDS; i++) {
        frame_t whole = random_frame();
        frame_t damaged = frame_of_bytes(whole.data, damage_randomly(whole.data, whole.size));
        text_buffer_t out = json_of(damaged.data, damaged.size);
        bool has_nul_key;
        json_t *json = parse(&out, &has_nul_key);
        written += out.size > 4;
        json_decref(json);
        text_buffer_free(&out);
        frame_free(&damaged);
        frame_free(&whole);
    }
    assert_true(written > ROUNDS / 10 && written < ROUNDS); /* else nothing was tested */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers_of_every_width_are_exact),
        cmocka_unit_test(test_floats_stay_floats_and_are_exact),
        cmocka_unit_test(test_texts_are_escaped),
        cmocka_unit_test(test_byte_strings_are_base64),
        cmocka_unit_test(test_arrays_maps_and_words),
        cmocka_unit_test(test_keys_that_are_no_texts_become_texts),
        cmocka_unit_test(test_extensions_are_null),
        cmocka_unit_test(test_what_is_not_one_sound_value_is_null),
        cmocka_unit_test(test_writing_appends),
        cmocka_unit_test(test_values_may_nest_64_deep_and_no_deeper),
        cmocka_unit_test(test_the_text_is_at_most_eight_times_the_frame),
        cmocka_unit_test(test_random_values_are_what_msgpack_c_reads),
        cmocka_unit_test(test_random_damage_still_gives_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
