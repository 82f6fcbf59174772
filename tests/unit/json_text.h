/* json_text.h: JSON in C literals without a backslash at each quote: ' stands for ". */
#ifndef WG_TESTS_JSON_TEXT_H
#define WG_TESTS_JSON_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* Of strlen (text) bytes and not one more, so that the sanitizer sees a read behind the end. The caller
 * frees. */
static inline char *json_text(const char *text)
{
    size_t size = strlen(text);
    char *out = malloc(size);
    assert_non_null(out);
    for (size_t i = 0; i < size; i++)
        out[i] = (char)(text[i] == '\'' ? '"' : text[i]);
    return out;
}

#endif
