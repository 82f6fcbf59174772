/* line_reader.h: lines out of bytes that arrive in pieces. Owned by its user. Tests:
 * tests/integration/test_bench.py, whose slow readers get pieces of any size */
#ifndef WG_TESTS_BENCH_LINE_READER_H
#define WG_TESTS_BENCH_LINE_READER_H

#include "common/text_buffer.h"

typedef struct {
    const char *data;
    size_t size;
} bytes_t;

bytes_t bytes_take(bytes_t *input, size_t size); /* the first `size` bytes, which leave *input */
bool bytes_equal(bytes_t bytes, const char *text);
bool bytes_start_with(bytes_t bytes, const char *text);

typedef struct {
    text_buffer_t kept; /* the start of a line whose end has not come */
    bool is_given;      /* `kept` was a line that has been given */
} line_reader_t;        /* all zero is at the start of a line */

typedef enum {
    LINE_MORE,     /* *input is empty, and the line not complete */
    LINE_WHOLE,    /* *line is one, without its \n; valid until the next call, or until *input's bytes go */
    LINE_TOO_LONG, /* more than `most` bytes, or than there is memory for */
} line_result_t;

line_result_t line_reader_next(line_reader_t *reader, size_t most, bytes_t *input, bytes_t *line);
bool line_reader_is_inside(const line_reader_t *reader); /* of a line */
void line_reader_reset(line_reader_t *reader);           /* keeps the memory */
void line_reader_free(line_reader_t *reader);

#endif
