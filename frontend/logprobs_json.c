#include "frontend/logprobs_json.h"

#include <float.h>

#define LEAST_LOGPROB (-9999.0f) /* vLLM's */

static void write_value(text_buffer_t *out, float value)
{
    if (!(value > LEAST_LOGPROB)) /* NaN, too */
        value = LEAST_LOGPROB;
    if (value > FLT_MAX) /* an engine may be told to report logits, which can be anything */
        value = FLT_MAX;
    text_buffer_format(out, "%.9g", (double)value);
}

static void write_token(text_buffer_t *out, int64_t id)
{
    text_buffer_text(out, "\"token_id:");
    text_buffer_int(out, id);
    text_buffer_text(out, "\"");
}

static void separate(text_buffer_t *out)
{
    if (out->size > 0)
        text_buffer_text(out, ",");
}

/* The entries of a row that are shown: the first, then those that do not repeat it. */
typedef struct {
    const wire_logprobs_t *logprobs;
    uint32_t row;
    uint32_t column; /* of the entry, once next_entry was true */
    int64_t left;    /* negative: no limit */
    bool begun;
} row_cursor_t;

static bool next_entry(row_cursor_t *cursor)
{
    const wire_logprobs_t *logprobs = cursor->logprobs;
    if (cursor->left == 0)
        return false;
    int64_t first = wire_logprobs_id(logprobs, cursor->row, 0);
    do {
        cursor->column = cursor->begun ? cursor->column + 1 : 0;
        cursor->begun = true;
        if (cursor->column >= logprobs->width)
            return false;
    } while (cursor->column > 0 && wire_logprobs_id(logprobs, cursor->row, cursor->column) == first);
    cursor->left -= cursor->left > 0;
    return true;
}

void logprobs_json_content(text_buffer_t *out, const wire_logprobs_t *logprobs, int64_t top)
{
    for (uint32_t row = 0; row < logprobs->positions; row++) {
        row_cursor_t cursor = {.logprobs = logprobs, .row = row, .left = top};
        text_buffer_text(out, row > 0 ? ",{\"token\":" : "{\"token\":");
        write_token(out, wire_logprobs_id(logprobs, row, 0));
        text_buffer_text(out, ",\"logprob\":");
        write_value(out, wire_logprobs_value(logprobs, row, 0));
        text_buffer_text(out, ",\"top_logprobs\":[");
        while (next_entry(&cursor)) {
            text_buffer_text(out, cursor.column > 0 ? ",{\"token\":" : "{\"token\":");
            write_token(out, wire_logprobs_id(logprobs, row, cursor.column));
            text_buffer_text(out, ",\"logprob\":");
            write_value(out, wire_logprobs_value(logprobs, row, cursor.column));
            text_buffer_text(out, "}");
        }
        text_buffer_text(out, "]}");
    }
}

void logprobs_json_lists_add(logprobs_json_lists_t *lists, const wire_logprobs_t *logprobs, int64_t top)
{
    for (uint32_t row = 0; row < logprobs->positions; row++) {
        row_cursor_t cursor = {.logprobs = logprobs, .row = row, .left = top};
        separate(&lists->tokens);
        write_token(&lists->tokens, wire_logprobs_id(logprobs, row, 0));
        separate(&lists->values);
        write_value(&lists->values, wire_logprobs_value(logprobs, row, 0));
        separate(&lists->offsets);
        text_buffer_text(&lists->offsets, "0");
        separate(&lists->tops);
        text_buffer_text(&lists->tops, "{");
        while (next_entry(&cursor)) {
            text_buffer_text(&lists->tops, cursor.column > 0 ? "," : "");
            write_token(&lists->tops, wire_logprobs_id(logprobs, row, cursor.column));
            text_buffer_text(&lists->tops, ":");
            write_value(&lists->tops, wire_logprobs_value(logprobs, row, cursor.column));
        }
        text_buffer_text(&lists->tops, "}");
    }
}

void logprobs_json_lists_write(text_buffer_t *out, const logprobs_json_lists_t *lists)
{
    const struct {
        const char *before;
        const text_buffer_t *list;
    } parts[] = {
        {"{\"tokens\":[", &lists->tokens},
        {"],\"token_logprobs\":[", &lists->values},
        {"],\"top_logprobs\":[", &lists->tops},
        {"],\"text_offset\":[", &lists->offsets},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        text_buffer_text(out, parts[i].before);
        text_buffer_bytes(out, parts[i].list->data, parts[i].list->size);
        out->failed |= parts[i].list->failed;
    }
    text_buffer_text(out, "]}");
}

void logprobs_json_lists_clear(logprobs_json_lists_t *lists)
{
    text_buffer_clear(&lists->tokens);
    text_buffer_clear(&lists->values);
    text_buffer_clear(&lists->tops);
    text_buffer_clear(&lists->offsets);
}

void logprobs_json_lists_free(logprobs_json_lists_t *lists)
{
    text_buffer_free(&lists->tokens);
    text_buffer_free(&lists->values);
    text_buffer_free(&lists->tops);
    text_buffer_free(&lists->offsets);
}

void logprobs_json_prompt(text_buffer_t *out, const wire_logprobs_t *logprobs, int64_t top)
{
    for (uint32_t row = 0; row < logprobs->positions; row++) {
        /* the token itself is shown beside the likeliest ones, whose ranks are their places */
        row_cursor_t cursor = {.logprobs = logprobs, .row = row, .left = top < 0 ? -1 : top + 1};
        text_buffer_text(out, ",{");
        while (next_entry(&cursor)) {
            uint32_t column = cursor.column;
            text_buffer_text(out, column > 0 ? ",\"" : "\"");
            text_buffer_int(out, wire_logprobs_id(logprobs, row, column));
            text_buffer_text(out, "\":{\"logprob\":");
            write_value(out, wire_logprobs_value(logprobs, row, column));
            text_buffer_text(out, ",\"rank\":");
            text_buffer_int(out, column > 0 ? column : wire_logprobs_rank(logprobs, row));
            text_buffer_text(out, ",\"decoded_token\":null}");
        }
        text_buffer_text(out, "}");
    }
}
