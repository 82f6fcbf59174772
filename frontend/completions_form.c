/* The answers of POST /v1/completions: OpenAI's text_completion object, with vLLM's token_ids. There is no
 * text here, so `text` is empty. */
#include "frontend/answer.h"

#include <inttypes.h>
#include <string.h>

static void add_logprobs(answer_choice_t *choice, const wire_logprobs_t *logprobs, int64_t top)
{
    logprobs_json_lists_add(&choice->lists, logprobs, top);
}

static void write_head(text_buffer_t *out, const answer_t *answer)
{
    text_buffer_text(out, "{\"id\":");
    text_buffer_json(out, answer->id, strlen(answer->id));
    text_buffer_format(out,
                       ",\"object\":\"text_completion\",\"created\":%" PRId64 ",\"model\":", answer->created);
    text_buffer_json(out, answer->model, strlen(answer->model));
    text_buffer_text(out, ",\"choices\":[");
}

/* All but its closing brace. */
static void write_choice(text_buffer_t *out, const answer_t *answer, uint32_t number)
{
    const answer_choice_t *choice = &answer->choices[number];
    text_buffer_format(out, "{\"index\":%u,\"text\":\"\",\"token_ids\":[", number);
    text_buffer_bytes(out, choice->ids.data, choice->ids.size);
    text_buffer_text(out, "],\"logprobs\":");
    if (answer->has_logprobs)
        logprobs_json_lists_write(out, &choice->lists);
    else
        text_buffer_text(out, "null");
    text_buffer_text(out, ",\"finish_reason\":");
    if (choice->finish_reason)
        text_buffer_format(out, "\"%s\"", choice->finish_reason);
    else
        text_buffer_text(out, "null");
}

static void write_event(text_buffer_t *out, const answer_t *answer, uint32_t number)
{
    write_head(out, answer);
    write_choice(out, answer, number);
    text_buffer_text(out, "}]");
    answer_write_event_end(out, answer, number);
}

static void write_usage_event(text_buffer_t *out, const answer_t *answer)
{
    write_head(out, answer);
    text_buffer_text(out, "],");
    answer_write_usage(out, answer);
    text_buffer_text(out, "}");
}

static void write_whole(text_buffer_t *out, const answer_t *answer)
{
    write_head(out, answer);
    for (uint32_t i = 0; i < answer->choice_count; i++) {
        if (i > 0)
            text_buffer_text(out, ",");
        write_choice(out, answer, i);
        text_buffer_text(out, ",\"prompt_logprobs\":");
        answer_write_prompt_logprobs(out, answer, &answer->choices[i]);
        text_buffer_text(out, "}");
    }
    text_buffer_text(out, "],");
    answer_write_usage(out, answer);
    text_buffer_text(out, ",");
    answer_write_transfer_params(out, answer);
    text_buffer_text(out, "}\n");
}

const answer_form_t completions_form = {
    .add_logprobs = add_logprobs,
    .write_event = write_event,
    .write_usage_event = write_usage_event,
    .write_whole = write_whole,
};
