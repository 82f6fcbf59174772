#include "tests/bench/line_reader.h"

#include <string.h>

bytes_t bytes_take(bytes_t *input, size_t size)
{
    bytes_t taken = {input->data, size};
    input->data += size;
    input->size -= size;
    return taken;
}

bool bytes_equal(bytes_t bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

bool bytes_start_with(bytes_t bytes, const char *text)
{
    size_t size = strlen(text);
    return bytes.size >= size && memcmp(bytes.data, text, size) == 0;
}

void line_reader_reset(line_reader_t *reader)
{
    text_buffer_clear(&reader->kept);
    reader->is_given = false;
}

bool line_reader_is_inside(const line_reader_t *reader)
{
    return reader->kept.size > 0 && !reader->is_given;
}

line_result_t line_reader_next(line_reader_t *reader, size_t most, bytes_t *input, bytes_t *line)
{
    if (reader->is_given)
        line_reader_reset(reader);
    if (input->size == 0)
        return LINE_MORE;
    const char *end = memchr(input->data, '\n', input->size);
    size_t size = end ? (size_t)(end - input->data) : input->size;
    if (size > most - reader->kept.size)
        return LINE_TOO_LONG;
    bytes_t part = bytes_take(input, size);
    if (end)
        bytes_take(input, 1);
    /* Most lines come whole, and need no copy. */
    if (end && reader->kept.size == 0) {
        *line = part;
        return LINE_WHOLE;
    }
    text_buffer_bytes(&reader->kept, part.data, part.size);
    if (reader->kept.failed)
        return LINE_TOO_LONG;
    if (!end)
        return LINE_MORE;
    reader->is_given = true;
    *line = (bytes_t){reader->kept.data, reader->kept.size};
    return LINE_WHOLE;
}

void line_reader_free(line_reader_t *reader)
{
    text_buffer_free(&reader->kept);
    reader->is_given = false;
}
