#include "common/model_files.h"
#include "common/process.h"
#include "frontend/frontend.h"

static wg_status_t open_frontend(void **self, process_t *process, const wg_config_t *config, const char *name,
                                 wg_error_t *error)
{
    return frontend_new((frontend_t **)self, process_loop(process), config, name, error);
}

static void on_drained(void *context)
{
    process_end(context);
}

static void stop_frontend(void *self, process_t *process)
{
    frontend_drain(self, on_drained, process);
}

static void close_frontend(void **self)
{
    frontend_destroy((frontend_t **)self);
}

int main(int argc, char **argv)
{
    static const process_program_t program = {
        .program = "wavegate-frontend",
        .log_name = "frontend",
        .summary = "Serves HTTP for a subset of the engine ranks of a cluster.",
        .takes_name = true,
        .complete = model_files_apply,
        .open = open_frontend,
        .stop = stop_frontend,
        .close = close_frontend,
    };
    return process_main(&program, argc, argv);
}
