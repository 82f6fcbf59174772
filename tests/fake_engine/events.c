#include "tests/fake_engine/events.h"

#include <stdio.h>

void events_free(events_t *events)
{
    text_buffer_free(&events->line);
}

static void begin(events_t *events, const char *name, uint32_t rank)
{
    text_buffer_clear(&events->line);
    text_buffer_format(&events->line, "{\"event\":\"%s\",\"rank\":%u", name, rank);
}

static void add_int(events_t *events, const char *key, int64_t value)
{
    text_buffer_format(&events->line, ",\"%s\":", key);
    text_buffer_int(&events->line, value);
}

static void add_request(events_t *events, wire_text_t id, uint32_t client_index)
{
    text_buffer_text(&events->line, ",\"request_id\":");
    text_buffer_json(&events->line, id.data, id.size);
    add_int(events, "client_index", client_index);
}

/* A reader that went away is no reason to stop serving, so a failed write is not looked at. */
static void end(events_t *events)
{
    text_buffer_text(&events->line, "}\n");
    if (events->line.failed)
        return;
    fwrite(events->line.data, 1, events->line.size, stdout);
    fflush(stdout);
}

void events_rank(events_t *events, const char *name, uint32_t rank)
{
    if (!events->on)
        return;
    begin(events, name, rank);
    end(events);
}

void events_init(events_t *events, uint32_t rank, uint32_t client_count)
{
    if (!events->on)
        return;
    begin(events, "init", rank);
    add_int(events, "clients", client_count);
    end(events);
}

void events_add(events_t *events, uint32_t rank, const engine_request_t *request)
{
    if (!events->on)
        return;
    begin(events, "add", rank);
    add_request(events, request->id, request->client_index);
    add_int(events, "prompt_tokens", request->prompt_tokens);
    add_int(events, "max_tokens", request->max_tokens);
    end(events);
}

void events_abort(events_t *events, uint32_t rank, const engine_request_t *request)
{
    if (!events->on)
        return;
    begin(events, "abort", rank);
    add_request(events, request->id, request->client_index);
    add_int(events, "tokens", request->generated);
    end(events);
}

void events_abort_unknown(events_t *events, uint32_t rank, wire_text_t request_id, uint32_t client_index)
{
    if (!events->on)
        return;
    begin(events, "abort_unknown", rank);
    add_request(events, request_id, client_index);
    end(events);
}

void events_finish(events_t *events, uint32_t rank, const engine_output_t *output)
{
    if (!events->on)
        return;
    begin(events, "finish", rank);
    add_request(events, output->request->id, output->request->client_index);
    add_int(events, "finish_reason", output->finish);
    add_int(events, "tokens", output->request->generated);
    end(events);
}

void events_finished(events_t *events, uint32_t rank, const engine_t *engine)
{
    size_t count;
    const engine_output_t *outputs = engine_outputs(engine, &count);
    for (size_t i = 0; events->on && i < count; i++) {
        bool by_abort = outputs[i].finish == ENGINE_FINISH_ABORT && !outputs[i].request->abort_immediately;
        if (outputs[i].finish != ENGINE_FINISH_NONE && !by_abort)
            events_finish(events, rank, &outputs[i]);
    }
}

void events_wave(events_t *events, const char *name, uint32_t rank, int64_t wave, uint64_t step)
{
    if (!events->on)
        return;
    begin(events, name, rank);
    add_int(events, "wave", wave);
    add_int(events, "step", (int64_t)step);
    end(events);
}
