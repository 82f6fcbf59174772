/* answer.h: what the bytes of one answer of /inference/v1/generate mean: its tokens, each compared with what
 * it has to be, and its one end. Pure: no socket, no clock. Owned by its stream. Tests:
 * tests/integration/test_bench.py */
#ifndef WG_TESTS_BENCH_ANSWER_H
#define WG_TESTS_BENCH_ANSWER_H

#include "tests/bench/http_reader.h"
#include "tests/bench/outcome.h"
#include "tests/bench/sse_reader.h"

typedef struct {
    uint64_t prompt_h; /* tests/fake_engine/tokens.h */
    int64_t max_tokens;
    uint32_t vocab_size;
    bool is_stream;
    bool is_checked;
} answer_wanted_t;

typedef struct {
    int64_t position;
    int64_t got;    /* -1: missing; */
    int64_t wanted; /* -1: there should be none */
} answer_wrong_t;

typedef struct {
    answer_wanted_t wanted;
    http_reader_t http;
    sse_reader_t sse;
    text_buffer_t body; /* of all but streams */
    int64_t tokens;
    int64_t token_events; /* events with tokens; 0 of an answer that is no stream */
    int64_t wrong_tokens; /* wrong, missing or too many */
    answer_wrong_t first_wrong;
    bool is_finished;   /* by a finish reason */
    bool is_failed;     /* by an error, */
    char code[80];      /* with this code */
    bool is_terminated; /* [DONE] has come */
    bool has_begun;     /* any byte has come */
    bool is_over;       /* *outcome says how; nothing more is to be fed */
    outcome_t outcome;
} answer_t; /* all zero before the first */

void answer_begin(answer_t *answer, const answer_wanted_t *wanted);
void answer_free(answer_t *answer);

void answer_feed(answer_t *answer, const char *data, size_t size);

/* After the end: another request may follow on its connection. */
bool answer_keeps_connection(const answer_t *answer);

#endif
