/* answer.h: what a request's client is told: the choices as they grow, and the two forms in which a route
 * shows them. No HTTP, no client; owned by its generation. The loop.
 * Tests: tests/integration/test_generate.py, test_completions.py, test_logprobs.py */
#ifndef WG_FRONTEND_ANSWER_H
#define WG_FRONTEND_ANSWER_H

#include "frontend/client.h"
#include "frontend/logprobs_json.h"

/* What was not sent yet: all of it where the answer is whole, in a stream what the next event will carry. */
typedef struct {
    text_buffer_t ids;             /* with commas between them */
    text_buffer_t content;         /* logprobs in generate's form, */
    logprobs_json_lists_t lists;   /* or in that of completions */
    text_buffer_t prompt_logprobs; /* with a comma before each */
    const char *finish_reason;     /* NULL: more will come */
    bool is_prefilled;             /* its engine has said how much of the prompt was cached */
    bool is_pending;               /* in a stream: there is something to send */
} answer_choice_t;

typedef struct {
    const char *id; /* these two belong to the generation */
    const char *model;
    int64_t created; /* seconds, Unix */
    answer_choice_t *choices;
    uint32_t choice_count;
    uint32_t choices_per_prompt;
    bool has_logprobs; /* asked for; the same for the prompt's */
    bool has_prompt_logprobs;
    int64_t top_logprobs; /* how many are shown of each row; negative: all */
    int64_t top_prompt_logprobs;
    bool continuous_usage; /* on every event */
    size_t prompt_tokens;
    size_t completion_tokens;
    size_t cached_tokens;             /* of the prompts */
    text_buffer_t kv_transfer_params; /* JSON; empty: none */
    text_buffer_t ec_transfer_params;
} answer_t;

/* How a route writes it. All append to *out; a text that ran out of memory is `failed`. */
typedef struct {
    /* Of the choice; the rows are those of one output. */
    void (*add_logprobs)(answer_choice_t *choice, const wire_logprobs_t *logprobs, int64_t top);
    /* The JSON object of one event, with what the choice has pending. */
    void (*write_event)(text_buffer_t *out, const answer_t *answer, uint32_t choice);
    void (*write_usage_event)(text_buffer_t *out, const answer_t *answer);
    void (*write_whole)(text_buffer_t *out, const answer_t *answer);
} answer_form_t;

extern const answer_form_t generate_form;    /* generate_form.c: POST /inference/v1/generate */
extern const answer_form_t completions_form; /* completions_form.c: POST /v1/completions */

/* Room for choices; false without memory. The other members are the caller's to set. */
WG_MUST_CHECK bool answer_init(answer_t *answer, uint32_t choice_count);
void answer_free(answer_t *answer);

/* Takes in one output of a choice. */
void answer_add(answer_t *answer, const answer_form_t *form, uint32_t choice, const client_output_t *output);
/* What was pending is sent. */
void answer_sent(answer_choice_t *choice);
/* How much is pending over all choices, in bytes. */
size_t answer_pending_bytes(const answer_t *answer);
/* Out of memory anywhere, so that something is missing. */
bool answer_failed(const answer_t *answer);

/* --- for the forms --- */

void answer_write_usage(text_buffer_t *out, const answer_t *answer); /* "usage":{...} */
/* [null,{...},...] or null */
void answer_write_prompt_logprobs(text_buffer_t *out, const answer_t *answer, const answer_choice_t *choice);
/* "kv_transfer_params":{...},"ec_transfer_params":{...}, or null for each. */
void answer_write_transfer_params(text_buffer_t *out, const answer_t *answer);
/* What stands behind the choice of an event, where there is any of it, and the closing brace. */
void answer_write_event_end(text_buffer_t *out, const answer_t *answer, uint32_t choice);

#endif
