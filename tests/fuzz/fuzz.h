/* fuzz.h: what the fuzz targets share. Each decodes an input, reads everything that came out of it, and
 * holds it against what the decoder's header promises; the sanitizers watch the rest. */
#ifndef WG_TESTS_FUZZ_H
#define WG_TESTS_FUZZ_H

#include "common/status.h"
#include "common/wire_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert, which a release build would leave out. */
#define FUZZ_CHECK(condition)                                                                                \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition);                  \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* Reads each byte, so that one outside of its block is seen. */
static inline void fuzz_read(const void *data, size_t size)
{
    const volatile uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++)
        (void)bytes[i];
}

static inline void fuzz_text(wire_text_t text)
{
    fuzz_read(text.data, text.size);
    FUZZ_CHECK(!text.data || wire_utf8_valid(text.data, text.size));
}

/* A refusal has its words, and they are a text of their own: nothing of the input is echoed raw. */
static inline void fuzz_refusal(wg_status_t status, const wg_error_t *error)
{
    FUZZ_CHECK(error->status == status);
    FUZZ_CHECK(memchr(error->message, '\0', sizeof error->message));
    FUZZ_CHECK(error->message[0] != '\0');
    for (const char *at = error->message; *at; at++)
        FUZZ_CHECK(*at >= ' ' && *at <= '~');
}

#endif
