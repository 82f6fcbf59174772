#include "tests/bench/http_reader.h"

#include <string.h>
#include <strings.h>

#define LINE_MOST 8192u
#define LENGTH_MOST (INT64_C(1) << 40)

void http_reader_begin(http_reader_t *reader)
{
    line_reader_reset(&reader->lines);
    *reader = (http_reader_t){.lines = reader->lines, .left = -1, .keeps_connection = true};
}

void http_reader_free(http_reader_t *reader)
{
    line_reader_free(&reader->lines);
}

static http_next_t malformed(http_reader_t *reader, const char *fault)
{
    reader->fault = fault;
    return HTTP_NEXT_MALFORMED;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 16;
}

/* -1 unless it is a number, and not absurdly large. */
static int64_t number(bytes_t text, int base)
{
    int64_t value = 0;
    for (size_t i = 0; i < text.size; i++) {
        int digit = digit_value(text.data[i]);
        if (digit >= base || value > LENGTH_MOST)
            return -1;
        value = value * base + digit;
    }
    return text.size > 0 ? value : -1;
}

static bool is_name(bytes_t text, const char *name)
{
    return text.size == strlen(name) && strncasecmp(text.data, name, text.size) == 0;
}

static const char *read_status(http_reader_t *reader, bytes_t line)
{
    if (!bytes_start_with(line, "HTTP/1.1 ") || line.size < sizeof "HTTP/1.1 200" - 1)
        return "no HTTP/1.1 status line";
    int64_t status = number((bytes_t){line.data + sizeof "HTTP/1.1 " - 1, 3}, 10);
    if (status < 200 || status > 599)
        return "an HTTP status that no answer has";
    reader->status = (int)status;
    reader->state = HTTP_HEADERS;
    return NULL;
}

static const char *end_head(http_reader_t *reader)
{
    if (reader->is_chunked == (reader->left >= 0))
        return "not exactly one of Content-Length and Transfer-Encoding";
    reader->state = reader->is_chunked ? HTTP_CHUNK_SIZE : HTTP_BODY;
    return NULL;
}

static const char *read_header(http_reader_t *reader, bytes_t line)
{
    if (line.size == 0)
        return end_head(reader);
    const char *colon = memchr(line.data, ':', line.size);
    if (!colon)
        return "a header without a colon";
    bytes_t name = bytes_take(&line, (size_t)(colon - line.data));
    bytes_take(&line, 1);
    while (line.size > 0 && *line.data == ' ')
        bytes_take(&line, 1);
    if (is_name(name, "content-length")) {
        if (reader->left >= 0)
            return "two lengths";
        reader->left = number(line, 10);
        return reader->left < 0 ? "a length that is not a number" : NULL;
    }
    if (is_name(name, "transfer-encoding")) {
        reader->is_chunked = is_name(line, "chunked");
        return reader->is_chunked ? NULL : "an unknown transfer encoding";
    }
    if (is_name(name, "connection") && is_name(line, "close"))
        reader->keeps_connection = false;
    return NULL;
}

static const char *read_chunk_size(http_reader_t *reader, bytes_t line)
{
    reader->left = number(line, 16);
    if (reader->left < 0)
        return "a chunk size that is not a number";
    reader->state = reader->left > 0 ? HTTP_CHUNK : HTTP_TRAILER;
    return NULL;
}

static const char *read_line(http_reader_t *reader, bytes_t line)
{
    if (line.size == 0 || line.data[line.size - 1] != '\r')
        return "a line that does not end with CR LF";
    line.size--;
    switch (reader->state) {
    case HTTP_STATUS_LINE:
        return read_status(reader, line);
    case HTTP_HEADERS:
        return read_header(reader, line);
    case HTTP_CHUNK_SIZE:
        return read_chunk_size(reader, line);
    case HTTP_CHUNK_END:
        reader->state = HTTP_CHUNK_SIZE;
        return line.size > 0 ? "a chunk longer than its size" : NULL;
    default: /* HTTP_TRAILER */
        reader->state = HTTP_DONE;
        return line.size > 0 ? "a trailer" : NULL;
    }
}

static http_next_t take_piece(http_reader_t *reader, bytes_t *input, bytes_t *piece)
{
    if (input->size == 0)
        return HTTP_NEXT_MORE;
    size_t size = (uint64_t)reader->left < input->size ? (size_t)reader->left : input->size;
    *piece = bytes_take(input, size);
    reader->left -= (int64_t)size;
    if (reader->left == 0 && reader->state == HTTP_CHUNK)
        reader->state = HTTP_CHUNK_END;
    return HTTP_NEXT_PIECE;
}

http_next_t http_reader_next(http_reader_t *reader, bytes_t *input, bytes_t *piece)
{
    for (;;) {
        if (reader->state == HTTP_BODY && reader->left == 0)
            reader->state = HTTP_DONE;
        if (reader->state == HTTP_DONE)
            return HTTP_NEXT_END;
        if (reader->state == HTTP_BODY || reader->state == HTTP_CHUNK)
            return take_piece(reader, input, piece);
        bytes_t line;
        line_result_t result = line_reader_next(&reader->lines, LINE_MOST, input, &line);
        if (result == LINE_MORE)
            return HTTP_NEXT_MORE;
        const char *fault = result == LINE_TOO_LONG ? "too long a line" : read_line(reader, line);
        if (fault)
            return malformed(reader, fault);
    }
}
