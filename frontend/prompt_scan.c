/* Only the outline of the text is understood here: strings, brackets and commas. Where the text is not JSON,
 * a wrong idea of it does no harm, since jansson reads all of it but an array that is sound by itself. */
#include "frontend/prompt_scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Why an array could not be cut. */
typedef enum { FAULT_NONE, FAULT_ELEMENT, FAULT_LISTS } fault_t;

typedef struct {
    const prompt_scan_rules_t *rules;
    const char *at;
    const char *end;
    msgpack_sbuffer *packed;
    prompt_scan_t *out;
    size_t element; /* that is being scanned, or at fault */
    fault_t fault;
    bool no_memory;
} scanner_t;

static const char *mark(void)
{
    static char text[PROMPT_SCAN_MARK_SIZE + 1];
    uint64_t random[2];
    if (text[0] == '\0' && getrandom(random, sizeof random, 0) == sizeof random)
        snprintf(text, sizeof text, "\"%016" PRIx64 "%016" PRIx64 "\"", random[0], random[1]);
    return text;
}

bool prompt_scan_is_mark(const char *text, size_t size)
{
    return size == PROMPT_SCAN_MARK_SIZE - 2 && memcmp(text, mark() + 1, size) == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_blanks(scanner_t *self)
{
    while (self->at < self->end && is_blank(*self->at))
        self->at++;
}

static bool take(scanner_t *self, char c)
{
    if (self->at == self->end || *self->at != c)
        return false;
    self->at++;
    return true;
}

/* From behind the opening quote to behind the closing one. */
static void skip_string(scanner_t *self)
{
    while (self->at < self->end && *self->at != '"')
        self->at += *self->at == '\\' && self->end - self->at > 1 ? 2 : 1;
    if (self->at < self->end)
        self->at++;
}

/* --- the ids --- */

/* A plain integer of the vocabulary. */
static bool scan_id(scanner_t *self, uint32_t *id)
{
    const char *start = self->at;
    uint64_t value = 0;
    while (self->at < self->end && is_digit(*self->at) && self->at - start < 11)
        value = value * 10 + (uint64_t)(*self->at++ - '0');
    if (self->at == start || (*start == '0' && self->at - start > 1) ||
        value >= (uint64_t)self->rules->vocabulary)
        return false;
    *id = (uint32_t)value;
    return true;
}

/* From the opening bracket to behind the closing one. */
static bool scan_list(scanner_t *self)
{
    wire_prompt_packer_t packer;
    prompt_span_t span;
    uint32_t id;
    self->element = 0;
    if (!take(self, '['))
        return false;
    wire_prompt_begin(&packer, self->packed);
    do {
        skip_blanks(self);
        if (!scan_id(self, &id))
            return false;
        wire_prompt_add(&packer, id);
        self->element++;
        skip_blanks(self);
    } while (take(self, ','));
    if (!take(self, ']'))
        return false;
    self->no_memory = !wire_prompt_end(&packer, &span.start, &span.size, &span.count) ||
                      !prompt_scan_add_span(self->out, span);
    return !self->no_memory;
}

static bool scan_lists(scanner_t *self)
{
    if (!take(self, '['))
        return false;
    do {
        skip_blanks(self);
        if (self->out->span_count == self->rules->max_lists) {
            self->fault = FAULT_LISTS;
            return false;
        }
        if (!scan_list(self))
            return false;
        skip_blanks(self);
    } while (take(self, ','));
    return take(self, ']');
}

static bool scan_prompt(scanner_t *self)
{
    scanner_t ahead = *self;
    take(&ahead, '[');
    skip_blanks(&ahead);
    bool is_nested = ahead.at < ahead.end && *ahead.at == '[';
    return is_nested && self->rules->allows_lists ? scan_lists(self) : scan_list(self);
}

bool prompt_scan_add_span(prompt_scan_t *scan, prompt_span_t span)
{
    size_t count = scan->span_count;
    if ((count & (count - 1)) == 0) {
        prompt_span_t *spans = realloc(scan->spans, (count ? 2 * count : 1) * sizeof *spans);
        if (!spans)
            return false;
        scan->spans = spans;
    }
    scan->spans[scan->span_count++] = span;
    return true;
}

/* --- the outline --- */

/* Behind a string of the top level: is it the member's name, and an array its value? Then it stands before
 * the array. */
static bool is_prompt_next(scanner_t *self, const char *name, size_t size)
{
    scanner_t ahead = *self;
    if (self->out->is_cut || size != strlen(self->rules->member) ||
        memcmp(name, self->rules->member, size) != 0)
        return false;
    skip_blanks(&ahead);
    if (!take(&ahead, ':'))
        return false;
    skip_blanks(&ahead);
    if (ahead.at == ahead.end || *ahead.at != '[')
        return false;
    self->at = ahead.at;
    return true;
}

static void cut_prompt(scanner_t *self, const char *text)
{
    const char *start = self->at;
    size_t packed = self->packed->size;
    self->fault = FAULT_NONE;
    if (scan_prompt(self)) {
        self->out->is_cut = true;
        self->out->cut_at = (size_t)(start - text);
        self->out->cut_size = (size_t)(self->at - start);
        return;
    }
    self->at = start; /* jansson will see it, so it counts like the rest */
    self->packed->size = packed;
    self->out->span_count = 0;
    if (self->fault == FAULT_NONE)
        self->fault = FAULT_ELEMENT;
}

/* Where an array that is no prompt is what makes the text too long for jansson, it is the one to name. */
static wg_status_t fail_values(const scanner_t *self, wg_error_t *error)
{
    const prompt_scan_rules_t *rules = self->rules;
    if (self->fault == FAULT_NONE)
        return wg_invalid_field(error, "body", "has more than %u values besides the prompt, the limit",
                                PROMPT_SCAN_VALUES_MAX);
    if (self->fault == FAULT_LISTS)
        return wg_invalid_field(error, rules->member, "has more than %zu prompts, the limit",
                                rules->max_lists);
    return wg_invalid_field(error, rules->member, "element %zu must be an integer from 0 to %" PRId64,
                            self->element, rules->vocabulary - 1);
}

static wg_status_t write_rest(prompt_scan_t *out, const char *text, size_t size, wg_error_t *error)
{
    size_t behind = out->cut_at + out->cut_size;
    if (!out->is_cut)
        return WG_OK;
    text_buffer_bytes(&out->rest, text, out->cut_at);
    text_buffer_bytes(&out->rest, mark(), PROMPT_SCAN_MARK_SIZE);
    text_buffer_bytes(&out->rest, text + behind, size - behind);
    return out->rest.failed || !mark()[0] ? WG_FAIL(error, SYSTEM, "request body", "out of memory") : WG_OK;
}

wg_status_t prompt_scan(prompt_scan_t *out, const prompt_scan_rules_t *rules, const char *text, size_t size,
                        msgpack_sbuffer *packed, wg_error_t *error)
{
    *out = (prompt_scan_t){0};
    if (size == 0)
        return WG_OK;
    scanner_t self = {.rules = rules, .at = text, .end = text + size, .packed = packed, .out = out};
    size_t values = 0;
    unsigned depth = 0;
    while (self.at < self.end) {
        char c = *self.at++;
        const char *name = self.at;
        if (c == '"') {
            skip_string(&self);
            if (depth == 1 && is_prompt_next(&self, name, (size_t)(self.at - name - 1)))
                cut_prompt(&self, text);
        } else if (c == '[' || c == '{') {
            values++;
            depth++;
        } else if (c == ',') {
            values++;
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
        if (self.no_memory)
            return WG_FAIL(error, SYSTEM, "request body", "out of memory");
        if (depth > rules->max_depth)
            return wg_invalid_field(error, "body", "is nested deeper than %u, the limit", rules->max_depth);
        if (values > PROMPT_SCAN_VALUES_MAX)
            return fail_values(&self, error);
    }
    return write_rest(out, text, size, error);
}

void prompt_scan_free(prompt_scan_t *scan)
{
    text_buffer_free(&scan->rest);
    free(scan->spans);
    *scan = (prompt_scan_t){0};
}
