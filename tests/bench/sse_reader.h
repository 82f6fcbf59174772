/* sse_reader.h: server-sent events out of a body that arrives in pieces. Knows what Wavegate sends, and takes
 * nothing else: events of one data line, and comments. Owned by its user. Tests:
 * tests/integration/test_bench.py */
#ifndef WG_TESTS_BENCH_SSE_READER_H
#define WG_TESTS_BENCH_SSE_READER_H

#include "tests/bench/line_reader.h"

typedef struct {
    line_reader_t lines;
    bool is_inside;    /* an event or comment, whose blank line has not come */
    const char *fault; /* a static text, after SSE_NEXT_MALFORMED */
} sse_reader_t;

typedef enum {
    SSE_NEXT_MORE, /* *input is empty */
    SSE_NEXT_DATA, /* *data is an event's; valid until the next call, or until *input's bytes go */
    SSE_NEXT_MALFORMED,
} sse_next_t;

void sse_reader_begin(sse_reader_t *reader); /* for the next body; all zero before the first */
void sse_reader_free(sse_reader_t *reader);

sse_next_t sse_reader_next(sse_reader_t *reader, bytes_t *input, bytes_t *data);

/* Nothing is missing, if this is where the body ends. */
bool sse_reader_is_complete(const sse_reader_t *reader);

#endif
