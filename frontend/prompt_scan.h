/* prompt_scan.h: one pass over the text of a body before jansson sees it. It bounds nesting and the number of
 * values, and cuts out the prompt: the array of ids (or of such arrays) that is the value of one top-level
 * member is packed in place, without a JSON value per id (design.md 8), and a string takes its place.
 *
 * What it cannot scan it leaves to jansson, and with that the exact words of the error. No state but one
 * random string per process; the loop. Tests: tests/unit/prompt_scan_test.c, tests/fuzz/fuzz_request_body.c
 */
#ifndef WG_FRONTEND_PROMPT_SCAN_H
#define WG_FRONTEND_PROMPT_SCAN_H

#include "common/status.h"
#include "common/text_buffer.h"
#include "common/wire_prompt.h"

#define PROMPT_SCAN_VALUES_MAX 100000u /* JSON values besides the prompt */

typedef struct {
    const char *member; /* "token_ids" */
    bool allows_lists;  /* an array of arrays, too */
    size_t max_lists;   /* of those */
    int64_t vocabulary; /* ids are below it */
    unsigned max_depth;
} prompt_scan_rules_t;

/* One prompt in the packed buffer. */
typedef struct {
    size_t start;
    size_t size;
    size_t count;
} prompt_span_t;

typedef struct {
    bool is_cut;
    text_buffer_t rest; /* what jansson is to parse, if is_cut */
    size_t cut_at;      /* where in both texts the string, and the array, begin */
    size_t cut_size;    /* of the array; the string has PROMPT_SCAN_MARK_SIZE */
    prompt_span_t *spans;
    size_t span_count;
} prompt_scan_t;

#define PROMPT_SCAN_MARK_SIZE 34u /* with its quotes */

/* Packs into *packed. *out is always valid to free. WG_E_INVALID_REQUEST beyond a bound, and for what is
 * wrong with an array too long for jansson; WG_E_SYSTEM without memory. */
WG_MUST_CHECK wg_status_t prompt_scan(prompt_scan_t *out, const prompt_scan_rules_t *rules, const char *text,
                                      size_t size, msgpack_sbuffer *packed, wg_error_t *error);
void prompt_scan_free(prompt_scan_t *scan);

/* Is that the string that stands for the prompt? */
bool prompt_scan_is_mark(const char *text, size_t size);

/* Adds one more span to a list that has room for one, two, four, ... of them. False without memory. */
WG_MUST_CHECK bool prompt_scan_add_span(prompt_scan_t *scan, prompt_span_t span);

#endif
