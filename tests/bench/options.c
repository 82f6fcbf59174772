#include "tests/bench/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: wavegate-bench --url URL... (--streams N | --rate R) (--requests N | --seconds S) [OPTION]...\n"
    "\n"
    "Sends requests to /inference/v1/generate of one or more frontends, over connections that are kept and\n"
    "used again, and says how they ended and how long they took.\n"
    "\n"
    "  --url http://HOST:PORT a frontend; may be given more than once, they take turns\n"
    "  --streams N            closed loop: so many requests at a time, the next when one has ended; after a\n"
    "                         failure 100 ms later\n"
    "  --rate R               open loop: so many new requests per second, at random times, whatever became\n"
    "                         of the others; times count from when a request was due\n"
    "  --requests N           end after so many requests\n"
    "  --seconds S            begin requests for so long; those that run then are finished\n"
    "  --prompt-tokens N      default 16\n"
    "  --max-tokens N         new tokens of each request; default 16\n"
    "  --vocab-size N         of the model, for the prompts and --check; default 32000\n"
    "  --no-stream            one answer for each request instead of events\n"
    "  --drop P               fraction of the requests that are left at a random phase: while connecting,\n"
    "                         after the request, after the first event, in the middle\n"
    "  --slow P               fraction of the requests that are read slowly, 10 KiB/s; they count in no "
    "time\n"
    "  --stall-s S            give a request up, as stalled, after so long without a byte; default 60\n"
    "  --seed N               prompts and fates follow from it and the request's number; default 1\n"
    "  --check                compare every token with what wavegate-fake-engine makes\n"
    "                         (tests/fake_engine/tokens.h)\n"
    "  --json                 print one JSON object instead of text\n"
    "  --help, --version      print this, or the version, and exit\n"
    "\n"
    "The first SIGINT or SIGTERM begins no more requests and lets those that run end, the second one kills.\n"
    "Exit status: 0; 1 when a token was wrong or missing, an answer malformed or stalled, or the system\n"
    "refuses something; 2 for a wrong command line. Requests that fail as they may change nothing.\n";

void options_print_help(FILE *stream)
{
    fputs(help, stream);
}

typedef enum {
    KIND_FLAG,  /* bool */
    KIND_COUNT, /* int64_t */
    KIND_REAL,  /* double */
    KIND_URL,
} kind_t;

typedef struct {
    const char *name;
    kind_t kind;
    size_t place; /* in options_t */
    double least;
    double most;
} row_t;

#define MOST_COUNT 1e15 /* exact in a double */
#define DAY_S 86400.0
#define PLACE(field) offsetof(options_t, field)

static const row_t rows[] = {
    {"url", KIND_URL, PLACE(targets), 0, 0},
    {"streams", KIND_COUNT, PLACE(streams), 1, 1e6},
    {"rate", KIND_REAL, PLACE(rate), 1e-3, 1e6},
    {"requests", KIND_COUNT, PLACE(requests), 1, MOST_COUNT},
    {"seconds", KIND_REAL, PLACE(seconds), 1e-3, 30 * DAY_S},
    {"prompt-tokens", KIND_COUNT, PLACE(prompt_tokens), 1, 1e7},
    {"max-tokens", KIND_COUNT, PLACE(max_tokens), 1, 1e7},
    {"vocab-size", KIND_COUNT, PLACE(vocab_size), 1, INT32_MAX},
    {"no-stream", KIND_FLAG, PLACE(no_stream), 0, 0},
    {"drop", KIND_REAL, PLACE(drop), 0, 1},
    {"slow", KIND_REAL, PLACE(slow), 0, 1},
    {"stall-s", KIND_REAL, PLACE(stall_s), 1e-3, DAY_S},
    {"seed", KIND_COUNT, PLACE(seed), 0, MOST_COUNT},
    {"check", KIND_FLAG, PLACE(check), 0, 0},
    {"json", KIND_FLAG, PLACE(json), 0, 0},
    {"help", KIND_FLAG, PLACE(help), 0, 0},
    {"version", KIND_FLAG, PLACE(version), 0, 0},
};
enum { ROWS = sizeof rows / sizeof *rows };

static wg_status_t set_number(const row_t *row, char *place, const char *text, wg_error_t *error)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    bool is_whole = row->kind == KIND_REAL || value == floor(value);
    if (end == text || *end || errno || !is_whole || !(value >= row->least && value <= row->most))
        return wg_invalid_field(error, row->name, "`%s` is not a %snumber from %.16g to %.16g", text,
                                row->kind == KIND_COUNT ? "whole " : "", row->least, row->most);
    if (row->kind == KIND_REAL)
        *(double *)(void *)place = value;
    else
        *(int64_t *)(void *)place = (int64_t)value;
    return WG_OK;
}

static wg_status_t add_target(options_t *options, const char *url, wg_error_t *error)
{
    target_t *targets = reallocarray(options->targets, options->target_count + 1, sizeof *targets);
    if (!targets)
        return WG_FAIL(error, SYSTEM, "reading the options", strerror(errno));
    options->targets = targets;
    return target_parse(&targets[options->target_count++], url, error);
}

static wg_status_t set_option(options_t *options, const row_t *row, const char *text, wg_error_t *error)
{
    char *place = (char *)options + row->place;
    if (row->kind == KIND_URL)
        return add_target(options, text, error);
    if (row->kind != KIND_FLAG)
        return set_number(row, place, text, error);
    *(bool *)place = true;
    return WG_OK;
}

static wg_status_t check_together(const options_t *options, wg_error_t *error)
{
    if (options->target_count == 0)
        return wg_invalid_field(error, "--url", "it is missing");
    if ((options->streams > 0) == (options->rate > 0))
        return wg_invalid_field(error, "--streams", "exactly one of this and --rate is expected");
    if (options->requests == 0 && options->seconds == 0)
        return wg_invalid_field(error, "--requests", "this or --seconds is expected");
    return WG_OK;
}

wg_status_t options_parse(options_t *out, int argc, char **argv, wg_error_t *error)
{
    struct option long_options[ROWS + 1] = {0};
    for (int i = 0; i < ROWS; i++) {
        int argument = rows[i].kind == KIND_FLAG ? no_argument : required_argument;
        long_options[i] = (struct option){rows[i].name, argument, NULL, i + 1};
    }
    *out = (options_t){.prompt_tokens = 16, .max_tokens = 16, .vocab_size = 32000, .stall_s = 60, .seed = 1};
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return wg_invalid_field(error, argv[optind - 1], "%s",
                                    option == ':' ? "it needs a value" : "there is no such option");
        wg_status_t status = set_option(out, &rows[option - 1], optarg, error);
        if (status != WG_OK || out->help || out->version)
            return status;
    }
    if (optind < argc)
        return wg_invalid_field(error, argv[optind], "only options are expected");
    return check_together(out, error);
}

void options_free(options_t *options)
{
    free(options->targets);
    *options = (options_t){0};
}
