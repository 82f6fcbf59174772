#include "tests/bench/plan.h"

#include "tests/fake_engine/tokens.h"

static plan_fate_t random_phase(const options_t *options, random_t *random)
{
    unsigned phases = options->no_stream ? 2 : options->max_tokens < 3 ? 3 : 4;
    return (plan_fate_t)(PLAN_DROP_CONNECTING + random_below(random, phases));
}

plan_t plan_make(const options_t *options, uint64_t number)
{
    plan_t plan = {.number = number, .prompt = random_seeded((uint64_t)options->seed, 2 * number)};
    random_t random = random_seeded((uint64_t)options->seed, 2 * number + 1);
    plan.is_slow = random_chance(&random, options->slow);
    if (random_chance(&random, options->drop))
        plan.fate = random_phase(options, &random);
    if (plan.fate == PLAN_DROP_IN_THE_MIDDLE)
        plan.drop_tokens = 2 + (int64_t)random_below(&random, (uint64_t)options->max_tokens - 2);
    /* Half of each: servers learn of the two in different ways. */
    plan.resets = random_chance(&random, 0.5);
    return plan;
}

const char *plan_fate_name(plan_fate_t fate)
{
    static const char *const names[] = {
        [PLAN_KEEP] = "kept",
        [PLAN_DROP_CONNECTING] = "connecting",
        [PLAN_DROP_AFTER_REQUEST] = "after_request",
        [PLAN_DROP_AFTER_FIRST_EVENT] = "after_first_event",
        [PLAN_DROP_IN_THE_MIDDLE] = "in_the_middle",
    };
    return names[fate];
}

uint64_t plan_write_body(const plan_t *plan, const options_t *options, text_buffer_t *out)
{
    random_t random = plan->prompt;
    uint64_t h = TOKENS_EMPTY_PROMPT;
    text_buffer_text(out, "{\"token_ids\":[");
    for (int64_t i = 0; i < options->prompt_tokens; i++) {
        uint32_t id = (uint32_t)random_below(&random, (uint64_t)options->vocab_size);
        if (i > 0)
            text_buffer_text(out, ",");
        text_buffer_int(out, id);
        h = tokens_prompt(h, id);
    }
    text_buffer_format(out, "],\"stream\":%s,\"sampling_params\":{\"max_tokens\":%lld,\"ignore_eos\":true}}",
                       options->no_stream ? "false" : "true", (long long)options->max_tokens);
    return h;
}
