/* Free-form JSON as MessagePack: the bytes themselves, and what is too long for that through our own
 * reader. */
#include "frontend/json_pack.h"
#include "tests/unit/json_text.h"

#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static msgpack_sbuffer packed_of(const char *json)
{
    msgpack_sbuffer out;
    wire_pack_t pack;
    char *text = json_text(json);
    json_t *value = json_loadb(text, strlen(json), JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    msgpack_sbuffer_init(&out);
    wire_pack_init(&pack, &out);
    json_pack_value(&pack, value);
    assert_int_equal(wire_pack_finish(&pack, "value", NULL), WG_OK);
    json_decref(value);
    free(text);
    return out;
}

static void test_each_kind_of_value_is_packed_in_its_shortest_form(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        size_t size;
        const char *bytes;
    } rows[] = {
        {"null", 1, "\xc0"},
        {"false", 1, "\xc2"},
        {"true", 1, "\xc3"},
        {"0", 1, "\x00"},
        {"127", 1, "\x7f"},
        {"-32", 1, "\xe0"},
        {"128", 2, "\xcc\x80"},
        {"65536", 5, "\xce\x00\x01\x00\x00"},
        {"9223372036854775807", 9, "\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"},
        {"-9223372036854775808", 9, "\xd3\x80\x00\x00\x00\x00\x00\x00\x00"},
        {"1.0", 9, "\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"}, /* a float stays one */
        {"-0.0", 9, "\xcb\x80\x00\x00\x00\x00\x00\x00\x00"},
        {"''", 1, "\xa0"},
        {"'a\\u00e9\\ud83d\\ude00'", 8,
         "\xa7"
         "a\xc3\xa9\xf0\x9f\x98\x80"},
        {"[]", 1, "\x90"},
        {"{}", 1, "\x80"},
        {"[1,[2]]", 4, "\x92\x01\x91\x02"},
        {"{'a':{'':null}}", 6,
         "\x81\xa1"
         "a\x81\xa0\xc0"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        msgpack_sbuffer packed = packed_of(rows[i].json);
        assert_int_equal(packed.size, rows[i].size);
        assert_memory_equal(packed.data, rows[i].bytes, rows[i].size);
        msgpack_sbuffer_destroy(&packed);
    }
}

static void test_members_keep_their_order(void **state)
{
    (void)state;
    msgpack_sbuffer packed = packed_of("{'z':1,'a':2,'m':3}");
    static const char wanted[] = "\x83\xa1z\x01\xa1"
                                 "a\x02\xa1m\x03";
    assert_int_equal(packed.size, sizeof wanted - 1);
    assert_memory_equal(packed.data, wanted, sizeof wanted - 1);
    msgpack_sbuffer_destroy(&packed);
}

/* As deep as the configuration lets a body be. */
static void test_the_deepest_value_is_sound(void **state)
{
    (void)state;
    char json[256] = "";
    const size_t depth = 60;
    memset(json, '[', depth);
    memset(json + depth, ']', depth);
    msgpack_sbuffer packed = packed_of(json);
    wire_reader_t reader;
    assert_int_equal(packed.size, depth);
    wire_reader_init(&reader, packed.data, packed.size);
    assert_true(wire_reader_skip(&reader));
    assert_int_equal(wire_reader_finish(&reader, "value", NULL), WG_OK);
    msgpack_sbuffer_destroy(&packed);
}

static void test_many_members_and_long_texts_are_sound(void **state)
{
    (void)state;
    enum { MANY = 70000 };
    json_t *object = json_object();
    char text[300];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (unsigned i = 0; i < MANY; i++) {
        char key[16];
        snprintf(key, sizeof key, "%u", i);
        json_object_set_new(object, key, i % 1000 == 0 ? json_string(text) : json_integer(i));
    }
    msgpack_sbuffer packed;
    wire_pack_t pack;
    msgpack_sbuffer_init(&packed);
    wire_pack_init(&pack, &packed);
    json_pack_value(&pack, object);
    assert_int_equal(wire_pack_finish(&pack, "value", NULL), WG_OK);
    wire_reader_t reader;
    uint32_t count = 0;
    wire_reader_init(&reader, packed.data, packed.size);
    assert_true(wire_reader_map(&reader, &count));
    assert_int_equal(count, MANY);
    for (uint32_t i = 0; i < 2 * count; i++)
        assert_true(wire_reader_skip(&reader));
    assert_int_equal(wire_reader_finish(&reader, "value", NULL), WG_OK);
    msgpack_sbuffer_destroy(&packed);
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind_of_value_is_packed_in_its_shortest_form),
        cmocka_unit_test(test_members_keep_their_order),
        cmocka_unit_test(test_the_deepest_value_is_sound),
        cmocka_unit_test(test_many_members_and_long_texts_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
