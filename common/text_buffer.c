#include "common/text_buffer.h"

#include "common/wire_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALLEST_CAPACITY 256u
#define INT64_DIGITS 20u /* with the sign */

void text_buffer_clear(text_buffer_t *buffer)
{
    buffer->size = 0;
    buffer->failed = false;
}

void text_buffer_free(text_buffer_t *buffer)
{
    free(buffer->data);
    *buffer = (text_buffer_t){0};
}

static bool grow(text_buffer_t *buffer, size_t more)
{
    if (more > SIZE_MAX / 2 - buffer->size)
        return false;
    size_t wanted = buffer->size + more;
    size_t capacity = buffer->capacity > SMALLEST_CAPACITY ? buffer->capacity : SMALLEST_CAPACITY;
    while (capacity < wanted)
        capacity *= 2;
    char *data = realloc(buffer->data, capacity);
    if (!data)
        return false;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

char *text_buffer_reserve(text_buffer_t *buffer, size_t more)
{
    /* After a failure nothing is added any more: a text with a hole in it would be worse than a short one. */
    if (buffer->failed)
        return NULL;
    if ((!buffer->data || more > buffer->capacity - buffer->size) && !grow(buffer, more)) {
        buffer->failed = true;
        return NULL;
    }
    return buffer->data + buffer->size;
}

void text_buffer_bytes(text_buffer_t *buffer, const void *data, size_t size)
{
    if (size == 0)
        return;
    char *end = text_buffer_reserve(buffer, size);
    if (end) {
        memcpy(end, data, size);
        buffer->size += size;
    }
}

void text_buffer_text(text_buffer_t *buffer, const char *text)
{
    text_buffer_bytes(buffer, text, strlen(text));
}

/* By hand, for every token of every stream passes here and snprintf takes several times as long. */
void text_buffer_int(text_buffer_t *buffer, int64_t value)
{
    char digits[INT64_DIGITS];
    size_t at = sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0)
        digits[--at] = '-';
    text_buffer_bytes(buffer, digits + at, sizeof digits - at);
}

void text_buffer_format(text_buffer_t *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        buffer->failed = true;
        return;
    }
    char *end = text_buffer_reserve(buffer, (size_t)length + 1);
    if (!end)
        return;
    va_start(arguments, format);
    vsnprintf(end, (size_t)length + 1, format, arguments);
    va_end(arguments);
    buffer->size += (size_t)length;
}

/* Bytes that a JSON string cannot hold as they are, or that need a look. Everything else is copied in runs.
 */
static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

static size_t escape(text_buffer_t *buffer, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";
    if (byte >= 0x20)
        text_buffer_bytes(buffer, (char[]){'\\', (char)byte}, 2);
    else
        text_buffer_bytes(buffer, (char[]){'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]}, 6);
    return 1;
}

static size_t utf8(text_buffer_t *buffer, const unsigned char *text, size_t size)
{
    size_t length = wire_utf8_sequence(text, size);
    text_buffer_bytes(buffer, length ? (const void *)text : "\xef\xbf\xbd", length ? length : 3);
    return length ? length : 1;
}

void text_buffer_json(text_buffer_t *buffer, const char *text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text;
    text_buffer_bytes(buffer, "\"", 1);
    for (size_t at = 0; at < size;) {
        size_t run = at;
        while (at < size && is_plain(bytes[at]))
            at++;
        text_buffer_bytes(buffer, bytes + run, at - run);
        if (at < size)
            at += bytes[at] < 0x80 ? escape(buffer, bytes[at]) : utf8(buffer, bytes + at, size - at);
    }
    text_buffer_bytes(buffer, "\"", 1);
}
