#include "tests/bench/sse_reader.h"

#include <string.h>

#define LINE_MOST ((size_t)64 * 1024 * 1024) /* all the tokens of a reader that lags may come as one event */
#define DATA "data: "

void sse_reader_begin(sse_reader_t *reader)
{
    line_reader_reset(&reader->lines);
    reader->is_inside = false;
    reader->fault = NULL;
}

void sse_reader_free(sse_reader_t *reader)
{
    line_reader_free(&reader->lines);
}

bool sse_reader_is_complete(const sse_reader_t *reader)
{
    return !reader->is_inside && !line_reader_is_inside(&reader->lines);
}

static sse_next_t malformed(sse_reader_t *reader, const char *fault)
{
    reader->fault = fault;
    return SSE_NEXT_MALFORMED;
}

sse_next_t sse_reader_next(sse_reader_t *reader, bytes_t *input, bytes_t *data)
{
    for (;;) {
        bytes_t line;
        line_result_t result = line_reader_next(&reader->lines, LINE_MOST, input, &line);
        if (result == LINE_MORE)
            return SSE_NEXT_MORE;
        if (result == LINE_TOO_LONG)
            return malformed(reader, "too long an event");
        bool is_blank = line.size == 0;
        if (is_blank != reader->is_inside)
            return malformed(reader,
                             is_blank ? "a blank line without an event" : "an event of more than one line");
        reader->is_inside = !is_blank;
        if (is_blank || bytes_start_with(line, ":"))
            continue;
        if (!bytes_start_with(line, DATA))
            return malformed(reader, "a line that is neither data nor a comment");
        bytes_take(&line, strlen(DATA));
        *data = line;
        return SSE_NEXT_DATA;
    }
}
