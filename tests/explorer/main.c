/* wave-explorer: shows by enumeration that the wave rules leave no rank stuck, and that each of them is needed.
 * Every row of the table is one configuration. With all rules on there must be no finding; with one off there must be one, and
 * the shortest trace to it is printed. `--large` adds configurations that take minutes and gigabytes. */
#include "tests/explorer/graph.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    const char *what;
    model_config_t config;
    bool large;
} row_t;

#define GROUP(r, f, q) .ranks = (r), .frontends = (f), .requests = (q)

#define ALL .rules = RULES_ALL
#define COORDINATOR_DIES .coordinator_deaths = 1, .unread = 1
/* However many messages it had read: what the rules leave is the watchdog's. */
#define COORDINATOR_DIES_AND_FORGETS .coordinator_deaths = 1, .unread = UINT8_MAX, .watchdog = true

static const row_t sound[] = {
    {"none", {GROUP(2, 2, 3), ALL}, false},
    {"none", {GROUP(3, 1, 3), ALL}, false},
    {"none", {GROUP(3, 2, 2), ALL}, false},
    {"a pause", {GROUP(2, 2, 2), .pauses = 1, ALL}, false},
    {"a pause", {GROUP(3, 1, 2), .pauses = 1, ALL}, false},
    {"a frontend dies", {GROUP(2, 2, 2), .frontend_deaths = 1, ALL}, false},
    {"a START is lost", {GROUP(2, 2, 2), .lost_starts = 1, ALL}, false},
    {"a START is lost", {GROUP(3, 1, 2), .lost_starts = 1, ALL}, false},
    {"a frontend dies, a START is lost",
     {GROUP(2, 1, 2), .frontend_deaths = 1, .lost_starts = 1, ALL},
     false},
    {"a frontend dies, a pause", {GROUP(2, 1, 2), .frontend_deaths = 1, .pauses = 1, ALL}, false},
    {"the coordinator dies", {GROUP(2, 1, 2), COORDINATOR_DIES, ALL}, false},
    {"the coordinator dies", {GROUP(2, 2, 1), COORDINATOR_DIES, ALL}, false},
    {"the coordinator dies", {GROUP(3, 1, 1), COORDINATOR_DIES, ALL}, false},
    {"the coordinator dies, frontends reach a part",
     {GROUP(2, 1, 2), COORDINATOR_DIES, .partial_routes = true, ALL},
     false},
    {"the coordinator dies, a pause", {GROUP(2, 1, 2), COORDINATOR_DIES, .pauses = 1, ALL}, false},
    {"the coordinator and a frontend die, a START is lost",
     {GROUP(2, 1, 1), COORDINATOR_DIES, .frontend_deaths = 1, .lost_starts = 1, ALL},
     false},
    {"the coordinator dies and forgets", {GROUP(2, 1, 2), COORDINATOR_DIES_AND_FORGETS, ALL}, false},
    {"the coordinator dies and forgets", {GROUP(3, 1, 1), COORDINATOR_DIES_AND_FORGETS, ALL}, false},
    {"the coordinator dies and forgets, a frontend dies, a START is lost",
     {GROUP(2, 1, 1), COORDINATOR_DIES_AND_FORGETS, .frontend_deaths = 1, .lost_starts = 1, ALL},
     false},
    {"a frontend dies", {GROUP(3, 2, 2), .frontend_deaths = 1, ALL}, true},
    {"none", {GROUP(3, 2, 3), ALL}, true},
    {"a frontend dies, a START is lost", {GROUP(2, 2, 2), .frontend_deaths = 1, .lost_starts = 1, ALL}, true},
    {"a frontend dies, a START is lost, a pause",
     {GROUP(2, 2, 2), .frontend_deaths = 1, .lost_starts = 1, .pauses = 1, ALL},
     true},
    {"the coordinator dies", {GROUP(2, 2, 2), COORDINATOR_DIES, ALL}, true},
    {"the coordinator dies, a START is lost",
     {GROUP(3, 1, 2), COORDINATOR_DIES, .lost_starts = 1, ALL},
     true},
    {"the coordinator and a frontend die, a START is lost",
     {GROUP(2, 1, 2), COORDINATOR_DIES, .frontend_deaths = 1, .lost_starts = 1, ALL},
     true},
};

#define WITHOUT(rule) (RULES_ALL & ~(rule))

static const row_t broken[] = {
    {"rule 1 off, a frontend dies",
     {GROUP(2, 1, 1), .frontend_deaths = 1, .rules = WITHOUT(RULE_EXCLUDE_NOBODY)},
     false},
    {"rule 2 off, a START is lost", {GROUP(2, 1, 1), .lost_starts = 1, .rules = WITHOUT(RULE_REPEAT)}, false},
    {"rule 3 off, a frontend dies",
     {GROUP(2, 1, 1), .frontend_deaths = 1, .rules = WITHOUT(RULE_EVIDENCE)},
     false},
    {"rule 4 off, the coordinator and a frontend die",
     {GROUP(2, 1, 1), COORDINATOR_DIES, .frontend_deaths = 1, .first_wave = 1,
      .rules = WITHOUT(RULE_WRITE_AHEAD)},
     false},
    {"rule 5 off, the coordinator and a frontend die",
     {GROUP(2, 1, 1), COORDINATOR_DIES, .frontend_deaths = 1, .rules = WITHOUT(RULE_ASSUME_RUNNING)},
     false},
    {"all rules, no watchdog, the coordinator dies and forgets",
     {GROUP(2, 1, 1), .coordinator_deaths = 1, .unread = UINT8_MAX, ALL},
     false},
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* True where the row is as it must be. */
static bool run(const row_t *row, bool must_hold, uint32_t max_states)
{
    char *text = NULL;
    size_t size = 0;
    FILE *trace = open_memstream(&text, &size);
    double began = now();
    graph_result_t result = graph_explore(&row->config, max_states, trace);
    fclose(trace);
    bool found = result.fault || result.stuck > 0;
    bool good = !result.too_large && found != must_hold;
    printf("| %u | %u | %u | %s | %u | %llu | %u | %.1f |%s\n", row->config.ranks, row->config.frontends,
           row->config.requests, row->what, result.states, (unsigned long long)result.transitions,
           result.stuck, now() - began,
           result.too_large ? " TOO LARGE"
           : good           ? ""
                            : " NOT AS IT MUST BE");
    if (result.fault)
        printf("    %s\n", result.fault);
    if (found)
        printf("    the shortest trace:\n%s", text);
    fflush(stdout);
    free(text);
    return good;
}

int main(int argc, char **argv)
{
    bool large = argc > 1 && strcmp(argv[1], "--large") == 0;
    if (argc > 2 || (argc > 1 && !large)) {
        fprintf(stderr, "usage: wave-explorer [--large]\n");
        return 2;
    }
    uint32_t max_states = large ? 100000000 : 6000000;
    unsigned passed = 0;
    unsigned failed = 0;
    printf("| ranks | frontends | requests | faults | states | transitions | stuck | seconds |\n"
           "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (unsigned i = 0; i < sizeof sound / sizeof *sound; i++) {
        if (sound[i].large && !large)
            continue;
        run(&sound[i], true, max_states) ? passed++ : failed++;
    }
    for (unsigned i = 0; i < sizeof broken / sizeof *broken; i++)
        run(&broken[i], false, max_states) ? passed++ : failed++;
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0;
}
