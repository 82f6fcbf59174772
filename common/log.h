/* log.h: one line an event, on standard error, by way of czmq's zsys: a level, the process's name, an
 * event, then key=value fields. Values that peers or users chose are cut and made printable.
 * Both processes; called from the loop only. Tests: tests/unit/log_test.c */
#ifndef WG_COMMON_LOG_H
#define WG_COMMON_LOG_H

#include "common/status.h"

#include <stddef.h>

typedef enum { WG_LOG_ERROR, WG_LOG_WARNING, WG_LOG_NOTICE, WG_LOG_DEBUG } log_level_t;

/* name: of the process, e.g. "frontend/fe0"; copied. Lines below `least` urgency are left out. Also turns off
 * czmq's own signal handler, so it must come before the first socket (design.md 8). */
void log_open(const char *name, log_level_t least);

/* "error", "warning", "notice" or "debug". False for any other text. */
WG_MUST_CHECK bool log_level_parse(const char *text, log_level_t *out);

void log_line(log_level_t level, const char *format, ...) WG_PRINTF(2, 3);

#define log_error(...) log_line(WG_LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(WG_LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(WG_LOG_NOTICE, __VA_ARGS__)
#define log_debug(...) log_line(WG_LOG_DEBUG, __VA_ARGS__)

/* Copies at most LOG_TEXT_SIZE - 1 bytes of untrusted text; anything but printable ASCII becomes '?'. */
#define LOG_TEXT_SIZE 128u
const char *log_text(char out[LOG_TEXT_SIZE], const char *text, size_t size);

#endif
