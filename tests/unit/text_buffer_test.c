#include "common/text_buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_holds(const text_buffer_t *buffer, const char *expected)
{
    assert_false(buffer->failed);
    assert_int_equal(buffer->size, strlen(expected));
    assert_memory_equal(buffer->data, expected, buffer->size);
}

static void all_zero_is_an_empty_buffer_that_grows(void **state)
{
    (void)state;
    text_buffer_t buffer = {0};
    text_buffer_text(&buffer, "tokens: ");
    text_buffer_int(&buffer, 42);
    text_buffer_format(&buffer, " of %d, %s", 64, "done");
    text_buffer_bytes(&buffer, "\n", 1);
    assert_holds(&buffer, "tokens: 42 of 64, done\n");
    text_buffer_free(&buffer);
    assert_null(buffer.data);
}

static void nothing_appended_allocates_nothing(void **state)
{
    (void)state;
    text_buffer_t buffer = {0};
    text_buffer_text(&buffer, "");
    text_buffer_bytes(&buffer, NULL, 0);
    assert_null(buffer.data);
    text_buffer_free(&buffer);
}

static void clear_keeps_the_memory(void **state)
{
    (void)state;
    text_buffer_t buffer = {0};
    text_buffer_text(&buffer, "first");
    const char *data = buffer.data;
    text_buffer_clear(&buffer);
    assert_int_equal(buffer.size, 0);
    text_buffer_text(&buffer, "second");
    assert_ptr_equal(buffer.data, data);
    assert_holds(&buffer, "second");
    text_buffer_free(&buffer);
}

static void bytes_survive_many_growths(void **state)
{
    (void)state;
    text_buffer_t buffer = {0};
    for (size_t i = 0; i < 100000; i++) {
        char byte = (char)('a' + i % 26);
        text_buffer_bytes(&buffer, &byte, 1);
    }
    assert_int_equal(buffer.size, 100000);
    for (size_t i = 0; i < buffer.size; i++)
        assert_int_equal(buffer.data[i], 'a' + (int)(i % 26));
    assert_true(buffer.capacity <= 2 * buffer.size);
    text_buffer_free(&buffer);
}

static void reserve_makes_room_and_leaves_the_size(void **state)
{
    (void)state;
    text_buffer_t buffer = {0};
    text_buffer_text(&buffer, "ab");
    char *end = text_buffer_reserve(&buffer, 1000);
    assert_non_null(end);
    assert_int_equal(buffer.size, 2);
    memset(end, 'c', 1000);
    buffer.size += 1000;
    assert_memory_equal(buffer.data, "abcc", 4);
    text_buffer_free(&buffer);
}

static void integers_at_their_limits(void **state)
{
    (void)state;
    text_buffer_t buffer = {0};
    text_buffer_int(&buffer, 0);
    text_buffer_text(&buffer, " ");
    text_buffer_int(&buffer, -7);
    text_buffer_text(&buffer, " ");
    text_buffer_int(&buffer, INT64_MAX);
    text_buffer_text(&buffer, " ");
    text_buffer_int(&buffer, INT64_MIN);
    assert_holds(&buffer, "0 -7 9223372036854775807 -9223372036854775808");
    text_buffer_free(&buffer);
}

static void a_format_longer_than_the_buffer_is_whole(void **state)
{
    (void)state;
    text_buffer_t buffer = {0};
    text_buffer_format(&buffer, "%01000d|", 5);
    assert_int_equal(buffer.size, 1001);
    assert_memory_equal(buffer.data + 998, "05|", 3);
    text_buffer_free(&buffer);
}

static void a_size_beyond_all_memory_fails_and_keeps_what_there_was(void **state)
{
    (void)state;
    text_buffer_t buffer = {0};
    text_buffer_text(&buffer, "kept");
    assert_null(text_buffer_reserve(&buffer, SIZE_MAX - 2));
    assert_true(buffer.failed);
    text_buffer_text(&buffer, ", and nothing after it");
    assert_int_equal(buffer.size, 4);
    assert_memory_equal(buffer.data, "kept", 4);
    text_buffer_clear(&buffer);
    text_buffer_text(&buffer, "usable again");
    assert_holds(&buffer, "usable again");
    text_buffer_free(&buffer);
}

static void assert_json(const char *text, size_t size, const char *expected)
{
    text_buffer_t buffer = {0};
    text_buffer_json(&buffer, text, size);
    assert_holds(&buffer, expected);
    text_buffer_free(&buffer);
}

static void json_escapes_what_it_must(void **state)
{
    (void)state;
    assert_json("", 0, "\"\"");
    assert_json("plain", 5, "\"plain\"");
    assert_json("\"a\\b\"", 5, "\"\\\"a\\\\b\\\"\"");
    assert_json("\0\x1f\n\x7f", 4, "\"\\u0000\\u001f\\u000a\x7f\"");
}

static void json_passes_utf8_through(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "\xc2\x80",         "\xdf\xbf",         "\xe0\xa0\x80",
        "\xed\x9f\xbf",     "\xee\x80\x80",     "\xef\xbf\xbf",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "z\xc3\xbcrich \xe6\x9d\xb1",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "\"%s\"", texts[i]);
        assert_json(texts[i], strlen(texts[i]), expected);
    }
}

#define REPLACEMENT "\xef\xbf\xbd"

static void json_replaces_what_is_not_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bad; /* how many bytes are replaced, each by one character */
    } rows[] = {
        {"\x80", 1},         {"\xff", 1},         {"\xc0\xaf", 2},         {"\xc1\xbf", 2},
        {"\xe0\x9f\x80", 3}, {"\xed\xa0\x80", 3}, {"\xf0\x8f\xbf\xbf", 4}, {"\xf4\x90\x80\x80", 4},
        {"\xc3", 1},         {"\xe6\x9d", 2},     {"\xf0\x90\x80", 3},     {"\xf5\x80\x80\x80", 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        text_buffer_t expected = {0};
        text_buffer_text(&expected, "\"");
        for (size_t k = 0; k < rows[i].bad; k++)
            text_buffer_text(&expected, REPLACEMENT);
        text_buffer_bytes(&expected, "\"", 2);
        assert_json(rows[i].text, strlen(rows[i].text), expected.data);
        text_buffer_free(&expected);
    }
    assert_json("\xc3(", 2, "\"" REPLACEMENT "(\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_zero_is_an_empty_buffer_that_grows),
        cmocka_unit_test(nothing_appended_allocates_nothing),
        cmocka_unit_test(clear_keeps_the_memory),
        cmocka_unit_test(bytes_survive_many_growths),
        cmocka_unit_test(reserve_makes_room_and_leaves_the_size),
        cmocka_unit_test(integers_at_their_limits),
        cmocka_unit_test(a_format_longer_than_the_buffer_is_whole),
        cmocka_unit_test(a_size_beyond_all_memory_fails_and_keeps_what_there_was),
        cmocka_unit_test(json_escapes_what_it_must),
        cmocka_unit_test(json_passes_utf8_through),
        cmocka_unit_test(json_replaces_what_is_not_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
