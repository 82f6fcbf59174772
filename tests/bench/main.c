/* wavegate-bench: load for frontends, in front of fake or real engines, and what became of it. One process,
 * one loop, any number of streams. */
#include "tests/bench/load.h"

#include <stdlib.h>
#include <sys/resource.h>

#define EXIT_USAGE 2

/* Each stream has a descriptor. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int run(const options_t *options)
{
    wg_error_t error;
    statistics_t *statistics;
    double seconds;
    raise_descriptor_limit();
    wg_status_t status = statistics_new(&statistics, &error);
    if (status == WG_OK)
        status = load_run(options, statistics, &seconds, &error);
    bool is_good = false;
    if (status == WG_OK) {
        statistics_print(statistics, options, seconds);
        is_good = statistics_are_good(statistics);
    } else {
        fprintf(stderr, "wavegate-bench: %s\n", error.message);
    }
    statistics_destroy(&statistics);
    return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    options_t options;
    wg_error_t error;
    int exit_status = EXIT_SUCCESS;
    if (options_parse(&options, argc, argv, &error) != WG_OK) {
        fprintf(stderr, "wavegate-bench: %s (see --help)\n", error.message);
        exit_status = EXIT_USAGE;
    } else if (options.help) {
        options_print_help(stdout);
    } else if (options.version) {
        puts("wavegate-bench " WG_VERSION);
    } else {
        exit_status = run(&options);
    }
    options_free(&options);
    return exit_status;
}
