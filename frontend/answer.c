#include "frontend/answer.h"

#include "common/wire_json.h"

#include <stdlib.h>

bool answer_init(answer_t *answer, uint32_t choice_count)
{
    *answer = (answer_t){.choice_count = choice_count};
    answer->choices = calloc(choice_count, sizeof *answer->choices);
    return answer->choices != NULL;
}

void answer_free(answer_t *answer)
{
    for (uint32_t i = 0; answer->choices && i < answer->choice_count; i++) {
        text_buffer_free(&answer->choices[i].ids);
        text_buffer_free(&answer->choices[i].content);
        text_buffer_free(&answer->choices[i].prompt_logprobs);
        logprobs_json_lists_free(&answer->choices[i].lists);
    }
    free(answer->choices);
    text_buffer_free(&answer->kv_transfer_params);
    text_buffer_free(&answer->ec_transfer_params);
    *answer = (answer_t){0};
}

static const char *finish_name(wire_finish_t finish)
{
    switch (finish) {
    case WIRE_FINISH_STOP:
        return "stop";
    case WIRE_FINISH_LENGTH:
        return "length";
    case WIRE_FINISH_REPETITION:
        return "repetition";
    default: /* these end in an error, not in a reason */
        return NULL;
    }
}

static void add_ids(text_buffer_t *out, const wire_output_t *output)
{
    wire_reader_t tokens = output->tokens;
    for (uint32_t i = 0; i < output->token_count; i++) {
        int64_t id;
        if (!wire_reader_int(&tokens, &id))
            return; /* cannot be: the decoder has read them all */
        if (out->size > 0)
            text_buffer_text(out, ",");
        text_buffer_int(out, id);
    }
}

/* The last word of the engine on it counts. */
static void set_params(text_buffer_t *out, wire_bytes_t params)
{
    if (params.size == 0)
        return;
    text_buffer_clear(out);
    wire_json_write(out, params);
}

void answer_add(answer_t *answer, const answer_form_t *form, uint32_t number, const client_output_t *output)
{
    answer_choice_t *choice = &answer->choices[number];
    const wire_output_t *wire = output->wire;
    add_ids(&choice->ids, wire);
    if (output->logprobs)
        form->add_logprobs(choice, output->logprobs, answer->top_logprobs);
    if (output->prompt_logprobs)
        logprobs_json_prompt(&choice->prompt_logprobs, output->prompt_logprobs, answer->top_prompt_logprobs);
    set_params(&answer->kv_transfer_params, wire->kv_transfer_params);
    set_params(&answer->ec_transfer_params, wire->ec_transfer_params);
    /* a prompt counts once, however many choices it has */
    if (wire->cached_tokens >= 0 && !choice->is_prefilled && number % answer->choices_per_prompt == 0)
        answer->cached_tokens += (size_t)wire->cached_tokens;
    choice->is_prefilled = choice->is_prefilled || wire->cached_tokens >= 0;
    answer->completion_tokens += wire->token_count;
    choice->finish_reason = finish_name(wire->finish);
    choice->is_pending = choice->is_pending || wire->token_count > 0 || choice->finish_reason;
}

void answer_sent(answer_choice_t *choice)
{
    text_buffer_clear(&choice->ids);
    text_buffer_clear(&choice->content);
    logprobs_json_lists_clear(&choice->lists);
    choice->is_pending = false;
}

size_t answer_pending_bytes(const answer_t *answer)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < answer->choice_count; i++) {
        const answer_choice_t *choice = &answer->choices[i];
        bytes += choice->ids.size + choice->content.size + choice->lists.tokens.size +
                 choice->lists.values.size + choice->lists.tops.size + choice->lists.offsets.size;
    }
    return bytes;
}

bool answer_failed(const answer_t *answer)
{
    bool failed = answer->kv_transfer_params.failed || answer->ec_transfer_params.failed;
    for (uint32_t i = 0; i < answer->choice_count; i++) {
        const answer_choice_t *choice = &answer->choices[i];
        failed = failed || choice->ids.failed || choice->content.failed || choice->prompt_logprobs.failed ||
                 choice->lists.tokens.failed || choice->lists.values.failed || choice->lists.tops.failed ||
                 choice->lists.offsets.failed;
    }
    return failed;
}

void answer_write_usage(text_buffer_t *out, const answer_t *answer)
{
    text_buffer_format(out, "\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,\"total_tokens\":%zu",
                       answer->prompt_tokens, answer->completion_tokens,
                       answer->prompt_tokens + answer->completion_tokens);
    if (answer->cached_tokens > 0)
        text_buffer_format(out, ",\"prompt_tokens_details\":{\"cached_tokens\":%zu}", answer->cached_tokens);
    text_buffer_text(out, "}");
}

void answer_write_prompt_logprobs(text_buffer_t *out, const answer_t *answer, const answer_choice_t *choice)
{
    if (!answer->has_prompt_logprobs) {
        text_buffer_text(out, "null");
        return;
    }
    text_buffer_text(out, "[null"); /* nothing comes before the first position that it could follow from */
    text_buffer_bytes(out, choice->prompt_logprobs.data, choice->prompt_logprobs.size);
    text_buffer_text(out, "]");
}

static void write_params(text_buffer_t *out, const char *name, const text_buffer_t *params)
{
    text_buffer_text(out, name);
    if (params->size > 0)
        text_buffer_bytes(out, params->data, params->size);
    else
        text_buffer_text(out, "null");
}

void answer_write_transfer_params(text_buffer_t *out, const answer_t *answer)
{
    write_params(out, "\"kv_transfer_params\":", &answer->kv_transfer_params);
    write_params(out, ",\"ec_transfer_params\":", &answer->ec_transfer_params);
}

void answer_write_event_end(text_buffer_t *out, const answer_t *answer, uint32_t choice)
{
    bool has_params = answer->kv_transfer_params.size + answer->ec_transfer_params.size > 0;
    if (answer->choices[choice].finish_reason && has_params) {
        text_buffer_text(out, ",");
        answer_write_transfer_params(out, answer);
    }
    if (answer->continuous_usage) {
        text_buffer_text(out, ",");
        answer_write_usage(out, answer);
    }
    text_buffer_text(out, "}");
}
