/* memory_log.h: the process's log in memory, for tests of what it says. Open it after test_loop_init, which
 * sends the log to standard error. */
#ifndef WG_TESTS_MEMORY_LOG_H
#define WG_TESTS_MEMORY_LOG_H

#include "common/log.h"

#include <czmq.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

typedef struct {
    FILE *stream;
    char *lines;
    size_t size;
} memory_log_t;

static inline void memory_log_open(memory_log_t *log)
{
    log->stream = open_memstream(&log->lines, &log->size);
    assert_non_null(log->stream);
    log_open("test", WG_LOG_WARNING);
    zsys_set_logstream(log->stream);
}

static inline void memory_log_close(memory_log_t *log)
{
    zsys_set_logstream(stderr);
    fclose(log->stream);
    free(log->lines);
}

/* That text stands in it exactly once. */
static inline void assert_logged_once(memory_log_t *log, const char *text)
{
    fflush(log->stream);
    const char *at = strstr(log->lines, text);
    if (!at || strstr(at + 1, text))
        fail_msg("%s: %s\nin: %s", at ? "not only once" : "not logged", text, log->lines);
}

#endif
