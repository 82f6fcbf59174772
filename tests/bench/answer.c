#include "tests/bench/answer.h"

#include "tests/fake_engine/tokens.h"

#include <jansson.h>
#include <stdio.h>

#define BODY_MOST ((size_t)256 * 1024 * 1024)

void answer_begin(answer_t *answer, const answer_wanted_t *wanted)
{
    http_reader_begin(&answer->http);
    sse_reader_begin(&answer->sse);
    text_buffer_clear(&answer->body);
    *answer = (answer_t){.wanted = *wanted, .http = answer->http, .sse = answer->sse, .body = answer->body};
}

void answer_free(answer_t *answer)
{
    http_reader_free(&answer->http);
    sse_reader_free(&answer->sse);
    text_buffer_free(&answer->body);
}

bool answer_keeps_connection(const answer_t *answer)
{
    return answer->is_over && answer->outcome.kind != OUTCOME_MALFORMED && answer->http.keeps_connection;
}

static void end(answer_t *answer, outcome_kind_t kind, const char *detail)
{
    answer->is_over = true;
    answer->outcome = outcome_of(kind, detail);
    answer->outcome.status = answer->http.status;
}

static void malformed(answer_t *answer, const char *fault)
{
    end(answer, OUTCOME_MALFORMED, fault);
}

/* --- tokens --- */

static void note_wrong(answer_t *answer, int64_t count, answer_wrong_t wrong)
{
    if (count > 0 && answer->wrong_tokens == 0)
        answer->first_wrong = wrong;
    answer->wrong_tokens += count;
}

static void take_token(answer_t *answer, int64_t token)
{
    const answer_wanted_t *wanted = &answer->wanted;
    int64_t position = answer->tokens++;
    if (!wanted->is_checked)
        return;
    int64_t right = position < wanted->max_tokens
                        ? tokens_at(wanted->prompt_h, (uint64_t)position, wanted->vocab_size)
                        : -1;
    if (token != right)
        note_wrong(answer, 1, (answer_wrong_t){position, token, right});
}

static void finish(answer_t *answer)
{
    const answer_wanted_t *wanted = &answer->wanted;
    answer->is_finished = true;
    if (wanted->is_checked && answer->tokens < wanted->max_tokens) {
        int64_t right = tokens_at(wanted->prompt_h, (uint64_t)answer->tokens, wanted->vocab_size);
        note_wrong(answer, wanted->max_tokens - answer->tokens, (answer_wrong_t){answer->tokens, -1, right});
    }
}

/* NULL, or the fault. */
static const char *take_choices(answer_t *answer, const json_t *root)
{
    const json_t *choices = json_object_get(root, "choices");
    const json_t *choice = json_array_get(choices, 0);
    const json_t *ids = json_object_get(choice, "token_ids");
    const json_t *reason = json_object_get(choice, "finish_reason");
    bool has_reason = reason && !json_is_null(reason);
    if (json_array_size(choices) != 1 || !json_is_array(ids) || (has_reason && !json_is_string(reason)))
        return "a choice that is not one";
    size_t count = json_array_size(ids);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id))
            return "a token that is no number";
        take_token(answer, json_integer_value(id));
    }
    if (count > 0)
        answer->token_events++;
    if (has_reason)
        finish(answer);
    return NULL;
}

/* --- errors --- */

/* False unless it is an error in the form that all have. */
static bool take_error(answer_t *answer, const json_t *root)
{
    const char *code = json_string_value(json_object_get(json_object_get(root, "error"), "code"));
    if (!code)
        return false;
    snprintf(answer->code, sizeof answer->code, "%s", code);
    answer->is_failed = true;
    return true;
}

/* --- streams --- */

/* NULL, or the fault. */
static const char *take_event(answer_t *answer, bytes_t data)
{
    bool has_ended = answer->is_finished || answer->is_failed;
    if (answer->is_terminated)
        return "an event after [DONE]";
    if (bytes_equal(data, "[DONE]")) {
        answer->is_terminated = true;
        return has_ended ? NULL : "[DONE] before the end";
    }
    if (has_ended)
        return "an event after the end";
    json_t *root = json_loadb(data.data, data.size, JSON_REJECT_DUPLICATES, NULL);
    const char *fault = NULL;
    if (!root)
        fault = "an event that is not JSON";
    else if (!take_error(answer, root))
        fault = take_choices(answer, root);
    json_decref(root);
    return fault;
}

static void take_stream(answer_t *answer, bytes_t piece)
{
    bytes_t data;
    sse_next_t next;
    while ((next = sse_reader_next(&answer->sse, &piece, &data)) == SSE_NEXT_DATA) {
        const char *fault = take_event(answer, data);
        if (fault) {
            malformed(answer, fault);
            return;
        }
    }
    if (next == SSE_NEXT_MALFORMED)
        malformed(answer, answer->sse.fault);
}

static void end_stream(answer_t *answer)
{
    if (!answer->is_terminated || !sse_reader_is_complete(&answer->sse))
        malformed(answer, "a stream that ends without [DONE]");
    else if (answer->is_failed)
        end(answer, OUTCOME_ERROR_EVENT, answer->code);
    else
        end(answer, OUTCOME_OK, NULL);
}

/* --- whole answers --- */

static void take_body(answer_t *answer, bytes_t piece)
{
    if (piece.size <= BODY_MOST - answer->body.size)
        text_buffer_bytes(&answer->body, piece.data, piece.size);
    else
        answer->body.failed = true;
    if (answer->body.failed)
        malformed(answer, "too large a body");
}

static void end_whole(answer_t *answer)
{
    json_t *root = json_loadb(answer->body.data ? answer->body.data : "", answer->body.size,
                              JSON_REJECT_DUPLICATES, NULL);
    const char *fault = NULL;
    if (answer->http.status != 200)
        fault = take_error(answer, root) ? NULL : "an error of no known form";
    else
        fault = take_choices(answer, root);
    json_decref(root);
    answer->token_events = 0;
    if (fault)
        malformed(answer, fault);
    else if (answer->is_failed)
        end(answer, OUTCOME_HTTP, answer->code);
    else if (answer->is_finished)
        end(answer, OUTCOME_OK, NULL);
    else
        malformed(answer, "an answer without a finish reason");
}

/* --- all --- */

void answer_feed(answer_t *answer, const char *data, size_t size)
{
    bytes_t input = {data, size};
    bytes_t piece;
    http_next_t next = HTTP_NEXT_MORE;
    answer->has_begun = true;
    while (!answer->is_over && (next = http_reader_next(&answer->http, &input, &piece)) == HTTP_NEXT_PIECE) {
        if (answer->wanted.is_stream && answer->http.status == 200)
            take_stream(answer, piece);
        else
            take_body(answer, piece);
    }
    if (answer->is_over || next == HTTP_NEXT_MORE)
        return;
    if (next == HTTP_NEXT_MALFORMED)
        malformed(answer, answer->http.fault);
    else if (input.size > 0)
        malformed(answer, "bytes after the end");
    else if (answer->wanted.is_stream && answer->http.status == 200)
        end_stream(answer);
    else
        end_whole(answer);
}
