#include "tests/fake_engine/options.h"

#include "common/engine_id.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: wavegate-fake-engine --handshake ADDRESS --ranks RANKS [OPTION]...\n"
    "\n"
    "Plays data parallel ranks towards a coordinator and its frontends, without a model: the new\n"
    "tokens are a function of the prompt and the position (tests/fake_engine/tokens.h).\n"
    "\n"
    "  --handshake ADDRESS    where to send HELLO, e.g. tcp://127.0.0.1:29550\n"
    "  --ranks RANKS          e.g. 0-3 or 0,2\n"
    "  --step-ms N            time from one step to the next; default 5; in a lockstep group rank 0's holds\n"
    "  --tokens-per-step N    new tokens of each running request per step; default 1\n"
    "  --max-num-seqs N       requests that run at once on one rank, the others wait; default 256\n"
    "  --max-model-len N      prompt and new tokens of one request; default 4096\n"
    "  --vocab-size N         ids are below it; default 32000\n"
    "  --load-ms N            time from INIT to the connections to the clients; default 0\n"
    "  --abort-silent         an aborted request is only named in finished_requests\n"
    "  --collective-timeout-ms N  in a lockstep group, how long a rank waits for the others before the\n"
    "                         process ends with status 7; default 20000\n"
    "  --pause-silent         pause_scheduler aborts requests without any output\n"
    "  --dead-on-term         SIGTERM and SIGINT send ENGINE_CORE_DEAD to every client first\n"
    "  --events               print one JSON line per event on standard output, which must be read\n"
    "  --help, --version      print this, or the version, and exit\n"
    "\n"
    "Exit status: 0 after SIGTERM or SIGINT, 1 when the system refuses something or no INIT comes for\n"
    "5 minutes, 2 for a wrong command line, 3 after a frame that would end a real rank, 7 when a rank of\n"
    "a lockstep group waited too long for others to step with it (both said on standard error).\n";

void options_print_help(FILE *stream)
{
    fputs(help, stream);
}

static wg_status_t parse_number(const char *name, const char *text, int64_t least, int64_t most, int64_t *out,
                                wg_error_t *error)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < least || value > most)
        return wg_invalid_field(error, name, "`%s` is not a number from %lld to %lld", text, (long long)least,
                                (long long)most);
    *out = value;
    return WG_OK;
}

/* One "3" or "0-3" up to a comma or the end, marked in `wanted`; NULL unless it is that. */
static const char *parse_range(const char *text, bool *wanted)
{
    char *end;
    if (*text < '0' || *text > '9')
        return NULL;
    unsigned long first = strtoul(text, &end, 10);
    unsigned long last = first;
    if (*end == '-') {
        if (end[1] < '0' || end[1] > '9')
            return NULL;
        last = strtoul(end + 1, &end, 10);
    }
    if (first > last || last > WG_RANK_MAX || (*end && *end != ','))
        return NULL;
    for (unsigned long rank = first; rank <= last; rank++)
        wanted[rank] = true;
    return end;
}

static wg_status_t parse_ranks(options_t *options, const char *text, wg_error_t *error)
{
    bool *wanted = calloc(WG_RANK_MAX + 1, sizeof *wanted);
    uint32_t *ranks = calloc(WG_RANK_MAX + 1, sizeof *ranks);
    const char *at = wanted && ranks ? parse_range(text, wanted) : NULL;
    while (at && *at == ',')
        at = parse_range(at + 1, wanted);
    if (!at) {
        free(wanted);
        free(ranks);
        return wg_invalid_field(error, "--ranks", "`%s` is not a list such as 0-3 or 0,2 of ranks up to %u",
                                text, WG_RANK_MAX);
    }
    options->rank_count = 0;
    for (uint32_t rank = 0; rank <= WG_RANK_MAX; rank++) {
        if (wanted[rank])
            ranks[options->rank_count++] = rank;
    }
    free(wanted);
    free(options->ranks);
    options->ranks = ranks;
    return WG_OK;
}

enum {
    OPTION_HANDSHAKE = 1,
    OPTION_RANKS,
    OPTION_STEP_MS,
    OPTION_TOKENS_PER_STEP,
    OPTION_MAX_NUM_SEQS,
    OPTION_MAX_MODEL_LEN,
    OPTION_VOCAB_SIZE,
    OPTION_LOAD_MS,
    OPTION_COLLECTIVE_TIMEOUT_MS,
    OPTION_ABORT_SILENT,
    OPTION_PAUSE_SILENT,
    OPTION_DEAD_ON_TERM,
    OPTION_EVENTS,
    OPTION_HELP,
    OPTION_VERSION,
};

static const struct option long_options[] = {
    {"handshake", required_argument, NULL, OPTION_HANDSHAKE},
    {"ranks", required_argument, NULL, OPTION_RANKS},
    {"step-ms", required_argument, NULL, OPTION_STEP_MS},
    {"tokens-per-step", required_argument, NULL, OPTION_TOKENS_PER_STEP},
    {"max-num-seqs", required_argument, NULL, OPTION_MAX_NUM_SEQS},
    {"max-model-len", required_argument, NULL, OPTION_MAX_MODEL_LEN},
    {"vocab-size", required_argument, NULL, OPTION_VOCAB_SIZE},
    {"load-ms", required_argument, NULL, OPTION_LOAD_MS},
    {"collective-timeout-ms", required_argument, NULL, OPTION_COLLECTIVE_TIMEOUT_MS},
    {"abort-silent", no_argument, NULL, OPTION_ABORT_SILENT},
    {"pause-silent", no_argument, NULL, OPTION_PAUSE_SILENT},
    {"dead-on-term", no_argument, NULL, OPTION_DEAD_ON_TERM},
    {"events", no_argument, NULL, OPTION_EVENTS},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

#define DAY_MS 86400000

static wg_status_t set_number(options_t *options, int option, const char *text, wg_error_t *error)
{
    const struct {
        const char *name;
        int64_t least;
        int64_t most;
    } ranges[] = {
        [OPTION_STEP_MS] = {"--step-ms", 0, DAY_MS},
        [OPTION_TOKENS_PER_STEP] = {"--tokens-per-step", 1, 65536},
        [OPTION_MAX_NUM_SEQS] = {"--max-num-seqs", 1, INT32_MAX},
        [OPTION_MAX_MODEL_LEN] = {"--max-model-len", 2, INT32_MAX},
        [OPTION_VOCAB_SIZE] = {"--vocab-size", 1, INT32_MAX},
        [OPTION_LOAD_MS] = {"--load-ms", 0, DAY_MS},
        [OPTION_COLLECTIVE_TIMEOUT_MS] = {"--collective-timeout-ms", 1, DAY_MS},
    };
    int64_t value = 0;
    wg_status_t status =
        parse_number(ranges[option].name, text, ranges[option].least, ranges[option].most, &value, error);
    if (status != WG_OK)
        return status;
    if (option == OPTION_STEP_MS)
        options->step_ms = (size_t)value;
    else if (option == OPTION_TOKENS_PER_STEP)
        options->engine.tokens_per_step = (uint32_t)value;
    else if (option == OPTION_MAX_NUM_SEQS)
        options->engine.max_num_seqs = (uint32_t)value;
    else if (option == OPTION_MAX_MODEL_LEN)
        options->engine.max_model_len = value;
    else if (option == OPTION_VOCAB_SIZE)
        options->engine.vocab_size = (uint32_t)value;
    else if (option == OPTION_LOAD_MS)
        options->load_ms = (size_t)value;
    else
        options->collective_timeout_ms = (size_t)value;
    return WG_OK;
}

static wg_status_t set_option(options_t *options, int option, const char *text, wg_error_t *error)
{
    switch (option) {
    case OPTION_HANDSHAKE:
        options->handshake = text;
        return WG_OK;
    case OPTION_RANKS:
        return parse_ranks(options, text, error);
    case OPTION_ABORT_SILENT:
        options->engine.abort_silent = true;
        return WG_OK;
    case OPTION_PAUSE_SILENT:
        options->pause_silent = true;
        return WG_OK;
    case OPTION_DEAD_ON_TERM:
        options->dead_on_term = true;
        return WG_OK;
    case OPTION_EVENTS:
        options->events = true;
        return WG_OK;
    case OPTION_HELP:
        options->help = true;
        return WG_OK;
    case OPTION_VERSION:
        options->version = true;
        return WG_OK;
    default:
        return set_number(options, option, text, error);
    }
}

wg_status_t options_parse(options_t *out, int argc, char **argv, wg_error_t *error)
{
    *out = (options_t){
        .step_ms = 5,
        .collective_timeout_ms = 20000,
        .engine = {.max_num_seqs = 256,
                   .tokens_per_step = 1,
                   .vocab_size = 32000,
                   .max_model_len = 4096,
                   .kv_cache_tokens = OPTIONS_KV_CACHE_TOKENS},
    };
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return wg_invalid_field(error, argv[optind - 1], "%s",
                                    option == ':' ? "it needs a value" : "there is no such option");
        wg_status_t status = set_option(out, option, optarg, error);
        if (status != WG_OK || out->help || out->version)
            return status;
    }
    if (optind < argc)
        return wg_invalid_field(error, argv[optind], "only options are expected");
    if (!out->handshake)
        return wg_invalid_field(error, "--handshake", "it is missing");
    if (out->rank_count == 0)
        return wg_invalid_field(error, "--ranks", "it is missing");
    return WG_OK;
}

void options_free(options_t *options)
{
    free(options->ranks);
    *options = (options_t){0};
}
