/* process.h: what both programs are around their own parts: the command line, the loop, the signals, the end.
 * Used by main only. Tests: tests/integration/test_config.py */
#ifndef WG_COMMON_PROCESS_H
#define WG_COMMON_PROCESS_H

#include "common/config.h"

#include <czmq.h>

typedef struct process process_t;

typedef struct {
    const char *program;  /* "wavegate-frontend" */
    const char *log_name; /* "frontend": log lines begin with it, and with the name where there is one */
    const char *summary;  /* one sentence for --help */
    bool takes_name;      /* has and needs -n NAME, a frontend of the configuration */

    /* Completes the configuration after it was read; NULL: nothing to do. Failing ends the process with 2. */
    wg_status_t (*complete)(wg_config_t *config, wg_error_t *error);
    /* Opens the program's parts in process_loop; name is NULL unless takes_name. Failing ends the process. */
    wg_status_t (*open)(void **self, process_t *process, const wg_config_t *config, const char *name,
                        wg_error_t *error);
    /* The first SIGTERM or SIGINT: finish, then call process_end. More of them change nothing, but a second
     * SIGINT ends the process at once. */
    void (*stop)(void *self, process_t *process);
    void (*close)(void **self);
} process_program_t;

/* Returns what main is to return: 0, 1 where it could not start or failed, 2 for a fault of the command line
 * or the configuration. The reason is on standard error. */
int process_main(const process_program_t *program, int argc, char **argv);

zloop_t *process_loop(const process_t *process);

/* Ends the loop after this turn. */
void process_end(process_t *process);

/* The same, and the exit status is 1. The caller has logged why. */
void process_fail(process_t *process);

#endif
