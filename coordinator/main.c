#include "common/process.h"
#include "coordinator/coordinator.h"

static void on_give_up(void *context)
{
    process_fail(context);
}

static wg_status_t open_coordinator(void **self, process_t *process, const wg_config_t *config,
                                    const char *name, wg_error_t *error)
{
    (void)name;
    return coordinator_new((coordinator_t **)self, process_loop(process), config, on_give_up, process, error);
}

/* Nobody waits for an answer from the coordinator, so there is nothing to finish. */
static void stop_coordinator(void *self, process_t *process)
{
    (void)self;
    process_end(process);
}

static void close_coordinator(void **self)
{
    coordinator_destroy((coordinator_t **)self);
}

int main(int argc, char **argv)
{
    static const process_program_t program = {
        .program = "wavegate-coordinator",
        .log_name = "coordinator",
        .summary = "Starts the engine ranks of a cluster and tells its frontends of them.",
        .open = open_coordinator,
        .stop = stop_coordinator,
        .close = close_coordinator,
    };
    return process_main(&program, argc, argv);
}
