/* The answers of POST /inference/v1/generate: vLLM's GenerateResponse. */
#include "frontend/answer.h"

#include <inttypes.h>
#include <string.h>

static void add_logprobs(answer_choice_t *choice, const wire_logprobs_t *logprobs, int64_t top)
{
    if (choice->content.size > 0)
        text_buffer_text(&choice->content, ",");
    logprobs_json_content(&choice->content, logprobs, top);
}

static void write_id(text_buffer_t *out, const answer_t *answer)
{
    text_buffer_text(out, "{\"request_id\":");
    text_buffer_json(out, answer->id, strlen(answer->id));
}

static void write_ids(text_buffer_t *out, const answer_t *answer, uint32_t number)
{
    const answer_choice_t *choice = &answer->choices[number];
    text_buffer_text(out, "{\"index\":");
    text_buffer_int(out, number);
    text_buffer_text(out, ",\"token_ids\":[");
    text_buffer_bytes(out, choice->ids.data, choice->ids.size);
    text_buffer_text(out, "]");
}

static void write_logprobs(text_buffer_t *out, const answer_choice_t *choice)
{
    text_buffer_text(out, ",\"logprobs\":{\"content\":[");
    text_buffer_bytes(out, choice->content.data, choice->content.size);
    text_buffer_text(out, "]}");
}

static void write_event(text_buffer_t *out, const answer_t *answer, uint32_t number)
{
    const answer_choice_t *choice = &answer->choices[number];
    write_id(out, answer);
    text_buffer_text(out, ",\"choices\":[");
    write_ids(out, answer, number);
    if (choice->finish_reason)
        text_buffer_format(out, ",\"finish_reason\":\"%s\"", choice->finish_reason);
    if (answer->has_logprobs)
        write_logprobs(out, choice);
    text_buffer_text(out, "}]");
    answer_write_event_end(out, answer, number);
}

static void write_usage_event(text_buffer_t *out, const answer_t *answer)
{
    write_id(out, answer);
    text_buffer_text(out, ",\"choices\":[],");
    answer_write_usage(out, answer);
    text_buffer_text(out, "}");
}

static void write_whole(text_buffer_t *out, const answer_t *answer)
{
    write_id(out, answer);
    text_buffer_text(out, ",\"model\":");
    text_buffer_json(out, answer->model, strlen(answer->model));
    text_buffer_format(out, ",\"created\":%" PRId64 ",\"choices\":[", answer->created);
    for (uint32_t i = 0; i < answer->choice_count; i++) {
        if (i > 0)
            text_buffer_text(out, ",");
        write_ids(out, answer, i);
        text_buffer_format(out, ",\"finish_reason\":\"%s\"", answer->choices[i].finish_reason);
        if (answer->has_logprobs)
            write_logprobs(out, &answer->choices[i]);
        else
            text_buffer_text(out, ",\"logprobs\":null");
        text_buffer_text(out, "}");
    }
    text_buffer_text(out, "],");
    answer_write_usage(out, answer);
    text_buffer_text(out, ",\"prompt_logprobs\":");
    answer_write_prompt_logprobs(out, answer, &answer->choices[0]);
    text_buffer_text(out, ",");
    answer_write_transfer_params(out, answer);
    text_buffer_text(out, "}\n");
}

const answer_form_t generate_form = {
    .add_logprobs = add_logprobs,
    .write_event = write_event,
    .write_usage_event = write_usage_event,
    .write_whole = write_whole,
};
