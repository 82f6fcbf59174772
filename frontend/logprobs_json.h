/* logprobs_json.h: rows of logprobs as the two routes show them. A token has no text here, so it is written
 * `token_id:5`, as vLLM does where no text is wanted. Logprobs below -9999 (-inf: the token was impossible)
 * and NaN, which JSON lacks, are written as -9999. No state; the loop. Tests: tests/unit/logprobs_json_test.c
 *
 * `top`: how many of the row's entries are shown, from the first one on, which is the token itself; negative:
 * all. A row can be wider than was asked for, since an engine pads it to the widest of its batch. */
#ifndef WG_FRONTEND_LOGPROBS_JSON_H
#define WG_FRONTEND_LOGPROBS_JSON_H

#include "common/text_buffer.h"
#include "common/wire_logprobs.h"

/* Appends one element per row, with commas between them:
 * {"token":"token_id:5","logprob":-0.1,"top_logprobs":[{"token":"token_id:5","logprob":-0.1},...]} */
void logprobs_json_content(text_buffer_t *out, const wire_logprobs_t *logprobs, int64_t top);

/* The arrays of OpenAI's completions, without their brackets. */
typedef struct {
    text_buffer_t tokens;
    text_buffer_t values;
    text_buffer_t tops;
    text_buffer_t offsets; /* into a text that is always empty */
} logprobs_json_lists_t;

void logprobs_json_lists_add(logprobs_json_lists_t *lists, const wire_logprobs_t *logprobs, int64_t top);
/* {"tokens":[...],"token_logprobs":[...],"top_logprobs":[...],"text_offset":[...]} */
void logprobs_json_lists_write(text_buffer_t *out, const logprobs_json_lists_t *lists);
void logprobs_json_lists_clear(logprobs_json_lists_t *lists);
void logprobs_json_lists_free(logprobs_json_lists_t *lists);

/* Appends one element per row, each with a comma before it (the first position of a prompt has none, and is
 * null): {"5":{"logprob":-0.1,"rank":1,"decoded_token":null},...} */
void logprobs_json_prompt(text_buffer_t *out, const wire_logprobs_t *logprobs, int64_t top);

#endif
