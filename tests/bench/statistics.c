#include "tests/bench/statistics.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define COMPLAINTS_MOST 10

/* Those with a detail are counted by it. */
static const struct {
    const char *name;
    bool has_detail;
} kinds[OUTCOME_KINDS] = {
    [OUTCOME_OK] = {"ok", false},
    [OUTCOME_HTTP] = {"http", true},
    [OUTCOME_ERROR_EVENT] = {"error_event", true},
    [OUTCOME_DROPPED] = {"dropped", true},
    [OUTCOME_CUT] = {"cut", true},
    [OUTCOME_NOT_CONNECTED] = {"not_connected", true},
    [OUTCOME_MALFORMED] = {"malformed", true},
    [OUTCOME_STALLED] = {"stalled", false},
};

wg_status_t statistics_new(statistics_t **out, wg_error_t *error)
{
    statistics_t *self = calloc(1, sizeof *self);
    if (self)
        self->ends = json_object();
    for (int i = 0; self && i < OUTCOME_KINDS; i++) {
        json_t *value = kinds[i].has_detail ? json_object() : json_integer(0);
        if (json_object_set_new(self->ends, kinds[i].name, value) != 0)
            statistics_destroy(&self);
    }
    *out = self;
    return self ? WG_OK : WG_FAIL(error, SYSTEM, "statistics", strerror(ENOMEM));
}

void statistics_destroy(statistics_t **statistics)
{
    if (!*statistics)
        return;
    json_decref((*statistics)->ends);
    free(*statistics);
    *statistics = NULL;
}

/* Without memory a count is lost; then the sum of the ends is not the number of requests. */
static void count(json_t *object, const char *key)
{
    json_int_t before = json_integer_value(json_object_get(object, key));
    (void)json_object_set_new(object, key, json_integer(before + 1));
}

static json_t *inner(json_t *object, const char *key)
{
    json_t *found = json_object_get(object, key);
    if (!found && json_object_set_new(object, key, json_object()) == 0)
        found = json_object_get(object, key);
    return found;
}

void statistics_end(statistics_t *statistics, const outcome_t *outcome)
{
    const char *name = kinds[outcome->kind].name;
    char status[16];
    snprintf(status, sizeof status, "%d", outcome->status);
    if (outcome->kind == OUTCOME_HTTP)
        count(inner(inner(statistics->ends, name), status), outcome->detail);
    else if (kinds[outcome->kind].has_detail)
        count(inner(statistics->ends, name), outcome->detail);
    else
        count(statistics->ends, name);
    if (outcome->kind == OUTCOME_STALLED || outcome->kind == OUTCOME_MALFORMED)
        statistics->failures++;
}

void statistics_complain(statistics_t *statistics, uint64_t number, const char *format, ...)
{
    if (++statistics->complaints > COMPLAINTS_MOST)
        return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "wavegate-bench: request %llu: ", (unsigned long long)number);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

bool statistics_are_good(const statistics_t *statistics)
{
    return statistics->wrong_tokens == 0 && statistics->failures == 0 && statistics->stray_bytes == 0;
}

/* --- the report --- */

static json_t *times_ms(const histogram_t *times)
{
    if (times->count == 0)
        return json_null();
    return json_pack("{s:I, s:f, s:f, s:f}", "count", (json_int_t)times->count, "median",
                     histogram_quantile_us(times, 0.5) / 1e3, "p99", histogram_quantile_us(times, 0.99) / 1e3,
                     "max", (double)times->max_us / 1e3);
}

static json_t *report(const statistics_t *self, const options_t *options, double seconds)
{
    return json_pack("{s:I, s:I, s:O, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:o, s:o}", "seed",
                     (json_int_t)options->seed, "requests", (json_int_t)self->requests, "ends", self->ends,
                     "most_in_flight", (json_int_t)self->most_in_flight, "connections",
                     (json_int_t)self->connections, "tokens", (json_int_t)self->tokens, "wrong_tokens",
                     (json_int_t)self->wrong_tokens, "stray_bytes", (json_int_t)self->stray_bytes, "seconds",
                     seconds, "requests_per_s", (double)self->requests / seconds, "tokens_per_s",
                     (double)self->tokens / seconds, "first_token_ms", times_ms(&self->first_token), "gap_ms",
                     times_ms(&self->gap), "request_ms", times_ms(&self->whole));
}

static void print_value(const char *key, const json_t *value)
{
    if (json_is_real(value))
        printf("%-16s %.3f\n", key, json_real_value(value));
    else if (json_is_integer(value))
        printf("%-16s %lld\n", key, (long long)json_integer_value(value));
    else
        printf("%-16s none\n", key);
}

static void print_ends(json_t *ends, const char *prefix)
{
    const char *key;
    json_t *value;
    json_object_foreach(ends, key, value)
    {
        char name[256];
        snprintf(name, sizeof name, "%s %s", prefix, key);
        if (json_is_object(value))
            print_ends(value, name);
        else if (json_integer_value(value) > 0)
            printf("%s: %lld\n", name, (long long)json_integer_value(value));
    }
}

static void print_text(json_t *root)
{
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        if (strcmp(key, "ends") == 0)
            print_ends(value, "ended");
        else if (json_is_object(value))
            printf("%-16s median %.3f, p99 %.3f, max %.3f\n", key,
                   json_real_value(json_object_get(value, "median")),
                   json_real_value(json_object_get(value, "p99")),
                   json_real_value(json_object_get(value, "max")));
        else
            print_value(key, value);
    }
}

void statistics_print(const statistics_t *statistics, const options_t *options, double seconds)
{
    json_t *root = report(statistics, options, seconds);
    if (root && options->json) {
        (void)json_dumpf(root, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
        putchar('\n');
    } else if (root) {
        print_text(root);
    } else {
        fputs("wavegate-bench: no memory for the report\n", stderr);
    }
    json_decref(root);
}
