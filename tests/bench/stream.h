/* stream.h: one connection to a frontend, and the request that is on it, if any. Owned by the loop; one
 * thread. Tests: tests/integration/test_bench.py
 *
 *   IDLE        no request; the connection of the last one may be kept
 *   CONNECTING  a new connection is on its way
 *   SENDING     a part of the request has not been taken yet; an answer may come early
 *   READING     the rest of the answer has not come; of a slow reader it is read on ticks
 *
 * Each request ends with exactly one call of the host's on_end, in IDLE. It may come out of any function
 * here; on_end must not begin the next request, for its caller may still hold events of this turn. */
#ifndef WG_TESTS_BENCH_STREAM_H
#define WG_TESTS_BENCH_STREAM_H

#include "tests/bench/answer.h"
#include "tests/bench/plan.h"
#include "tests/bench/statistics.h"

#include <sys/queue.h>

typedef struct stream stream_t;

/* What all streams of a loop share. */
typedef struct {
    const options_t *options;
    statistics_t *statistics;
    int epoll; /* events carry the stream's pointer */
    char *buffer;
    size_t buffer_size;
    void (*on_end)(void *context, stream_t *stream, outcome_kind_t kind);
    void *context;
} stream_host_t;

typedef enum {
    STREAM_IDLE,
    STREAM_CONNECTING,
    STREAM_SENDING,
    STREAM_READING,
} stream_state_t;

struct stream {
    TAILQ_ENTRY(stream) link; /* the loop's: of what is in flight, idle, or resting after a failure */
    int64_t rested_us;        /* the loop's */
    const stream_host_t *host;
    size_t target;
    stream_state_t state;
    int fd;           /* -1: none */
    uint32_t watched; /* events at epoll; 0: not there */
    plan_t plan;
    text_buffer_t request;
    size_t sent;
    answer_t answer;
    int64_t begun_us; /* when it was due */
    int64_t token_us; /* when tokens came last */
    int64_t moved_us; /* when anything moved last */
};

WG_MUST_CHECK stream_t *stream_new(const stream_host_t *host, size_t target); /* NULL without memory */
void stream_destroy(stream_t **stream); /* also with a request on it, which then has no end */

/* Only in IDLE. due_us: from when its times count, now or earlier; monotonic. */
void stream_begin(stream_t *stream, uint64_t number, int64_t due_us);

void stream_on_events(stream_t *stream, uint32_t events);
void stream_read_slowly(stream_t *stream); /* a tick of one that is read slowly; else does nothing */
void stream_give_up(stream_t *stream);     /* not in IDLE: it has stalled */

int64_t stream_now_us(void); /* monotonic */

#endif
