/* text_buffer.h: bytes that grow at the end: for JSON, logs and stream events. Not for the wire, where
 * msgpack-c's sbuffer serves. Owned by its user. Running out of memory sets `failed` and keeps what there
 * was, so that a writer checks once, at its end. Tests: tests/unit/text_buffer_test.c */
#ifndef WG_COMMON_TEXT_BUFFER_H
#define WG_COMMON_TEXT_BUFFER_H

#include "common/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *data; /* not NUL-terminated */
    size_t size;
    size_t capacity;
    bool failed;
} text_buffer_t; /* all zero is an empty buffer */

void text_buffer_clear(text_buffer_t *buffer); /* keeps the memory */
void text_buffer_free(text_buffer_t *buffer);  /* back to all zero */

/* Makes room for `more` bytes at the end and returns where they go, or NULL (failed). Size is unchanged. */
char *text_buffer_reserve(text_buffer_t *buffer, size_t more);

void text_buffer_bytes(text_buffer_t *buffer, const void *data, size_t size);
void text_buffer_text(text_buffer_t *buffer, const char *text);
void text_buffer_int(text_buffer_t *buffer, int64_t value);
void text_buffer_format(text_buffer_t *buffer, const char *format, ...) WG_PRINTF(2, 3);

/* A JSON string with its quotes. What is not UTF-8 (a message that was cut, a header as a client sent it)
 * becomes U+FFFD, byte by byte, so that the result always is. */
void text_buffer_json(text_buffer_t *buffer, const char *text, size_t size);

#endif
