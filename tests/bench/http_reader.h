/* http_reader.h: one HTTP/1.1 answer out of bytes that arrive in pieces. Strict, for it reads the server
 * under test: what a lenient client would forgive is a fault here. Owned by its user. Tests:
 * tests/integration/test_bench.py */
#ifndef WG_TESTS_BENCH_HTTP_READER_H
#define WG_TESTS_BENCH_HTTP_READER_H

#include "tests/bench/line_reader.h"

#include <stdint.h>

typedef enum {
    HTTP_STATUS_LINE,
    HTTP_HEADERS,
    HTTP_BODY,
    HTTP_CHUNK_SIZE,
    HTTP_CHUNK,
    HTTP_CHUNK_END,
    HTTP_TRAILER,
    HTTP_DONE,
} http_state_t;

typedef struct {
    http_state_t state;
    line_reader_t lines;
    int status;
    int64_t left; /* of the body or the chunk; -1: no length was given */
    bool is_chunked;
    bool keeps_connection;
    const char *fault; /* a static text, after HTTP_NEXT_MALFORMED */
} http_reader_t;

typedef enum {
    HTTP_NEXT_MORE,  /* *input is empty, and the answer not complete */
    HTTP_NEXT_PIECE, /* *piece is of the body */
    HTTP_NEXT_END,
    HTTP_NEXT_MALFORMED,
} http_next_t;

void http_reader_begin(http_reader_t *reader); /* for the next answer; all zero before the first */
void http_reader_free(http_reader_t *reader);

http_next_t http_reader_next(http_reader_t *reader, bytes_t *input, bytes_t *piece);

#endif
