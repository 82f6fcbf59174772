#include "common/process.h"

#include "common/log.h"
#include "common/socket.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { EXIT_FAULT = 2 };

static void print_help(const process_program_t *program)
{
    printf("usage: %s -c FILE%s [--check]\n\n%s\n\n", program->program, program->takes_name ? " -n NAME" : "",
           program->summary);
    printf("  -c, --config FILE  the cluster's configuration, the same file on every machine\n");
    if (program->takes_name)
        printf("  -n, --name NAME    which of the file's frontends this process is\n");
    printf("      --check        check the file, print the effective configuration, exit\n"
           "      --keys         print the table of configuration keys, exit\n"
           "  -h, --help         print this, exit\n"
           "  -V, --version      print the version, exit\n");
}

static bool fault(const process_program_t *program, const char *what, int *exit_code)
{
    fprintf(stderr, "%s: %s; see --help\n", program->program, what);
    *exit_code = EXIT_FAULT;
    return false;
}

typedef struct {
    const char *path;
    const char *name;
    bool check;
} arguments_t;

static bool read_arguments(arguments_t *out, const process_program_t *program, int argc, char **argv,
                           int *exit_code)
{
    enum { OPTION_CHECK = 256, OPTION_KEYS };
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"name", required_argument, NULL, 'n'},
        {"check", no_argument, NULL, OPTION_CHECK},
        {"keys", no_argument, NULL, OPTION_KEYS},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option;
    *exit_code = 0;
    while ((option = getopt_long(argc, argv, program->takes_name ? "c:n:hV" : "c:hV", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            out->path = optarg;
            break;
        case 'n':
            out->name = optarg;
            break;
        case OPTION_CHECK:
            out->check = true;
            break;
        case OPTION_KEYS:
            wg_config_print_keys(stdout);
            return false;
        case 'h':
            print_help(program);
            return false;
        case 'V':
            printf("%s %s\n", program->program, WG_VERSION);
            return false;
        default: /* getopt has said what */
            *exit_code = EXIT_FAULT;
            return false;
        }
    }
    if (optind < argc)
        return fault(program, "unexpected argument", exit_code);
    if (!out->path)
        return fault(program, "no configuration file (-c FILE)", exit_code);
    if (out->name && !program->takes_name)
        return fault(program, "-n is for frontends", exit_code);
    if (!out->name && program->takes_name && !out->check)
        return fault(program, "no frontend name (-n NAME)", exit_code);
    return true;
}

/* False where the process is to end now, with *exit_code. */
static bool read_config(wg_config_t **out, const process_program_t *program, const arguments_t *arguments,
                        int *exit_code)
{
    wg_error_t error;
    *exit_code = EXIT_FAULT;
    if (wg_config_load(out, arguments->path, &error) != WG_OK) {
        fprintf(stderr, "%s: %s\n", program->program, error.message);
        return false;
    }
    if (arguments->name && !wg_config_frontend(*out, arguments->name)) {
        fprintf(stderr, "%s: %s has no frontend named \"%s\"\n", program->program, arguments->path,
                arguments->name);
        return false;
    }
    if (program->complete && program->complete(*out, &error) != WG_OK) {
        fprintf(stderr, "%s: %s\n", program->program, error.message);
        return false;
    }
    *exit_code = EXIT_SUCCESS;
    if (arguments->check)
        wg_config_print(*out, stdout);
    return !arguments->check;
}

struct process {
    const process_program_t *program;
    zloop_t *loop;
    void *self;
    zmq_pollitem_t signals;
    bool stopping;
    bool interrupted;
    bool failed;
};

zloop_t *process_loop(const process_t *process)
{
    return process->loop;
}

static int on_end(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    (void)context;
    return -1;
}

void process_end(process_t *process)
{
    zloop_timer(process->loop, 0, 1, on_end, NULL);
}

void process_fail(process_t *process)
{
    process->failed = true;
    process_end(process);
}

static int on_signals(zloop_t *loop, zmq_pollitem_t *item, void *context)
{
    (void)loop;
    process_t *self = context;
    struct signalfd_siginfo info;
    while (read(item->fd, &info, sizeof info) == sizeof info) {
        bool interrupt = info.ssi_signo == SIGINT;
        if (interrupt && self->interrupted)
            return -1;
        self->interrupted = self->interrupted || interrupt;
        if (self->stopping)
            continue;
        self->stopping = true;
        log_notice("stopping signal=%s", interrupt ? "SIGINT" : "SIGTERM");
        self->program->stop(self->self, self);
    }
    return 0;
}

static sigset_t stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

/* Signals are blocked and read from a descriptor: a caught one would end zloop (design.md 8). Before anything
 * else, so that one that comes while the process starts is found when it has; and before the first socket, so
 * that libzmq's threads inherit the mask. */
static void block_signals(void)
{
    sigset_t set = stop_signals();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, SIG_IGN); /* by default these two end a process, and here they mean nothing */
    signal(SIGUSR2, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static int open_signals(void)
{
    sigset_t set = stop_signals();
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        log_warning("descriptor limit stays why=%s", strerror(errno));
}

static void open_log(const process_program_t *program, const char *name, const wg_config_t *config)
{
    char text[80];
    log_level_t level = WG_LOG_NOTICE;
    if (!log_level_parse(config->log_level, &level))
        level = WG_LOG_NOTICE;
    snprintf(text, sizeof text, "%s%s%s", program->log_name, name ? "/" : "", name ? name : "");
    log_open(text, level);
}

static int run(const process_program_t *program, const wg_config_t *config, const char *name)
{
    process_t process = {.program = program};
    wg_error_t error;
    open_log(program, name, config);
    raise_descriptor_limit();
    process.signals = (zmq_pollitem_t){.fd = open_signals(), .events = ZMQ_POLLIN};
    process.loop = zloop_new();
    zsys_set_max_sockets(0);
    socket_set_handshake_limit(config->timeouts.zmq_handshake_ms);
    if (!process.loop || process.signals.fd == -1 ||
        zloop_poller(process.loop, &process.signals, on_signals, &process) != 0) {
        log_error("cannot start why=%s", strerror(errno));
        return EXIT_FAILURE;
    }
    wg_status_t status = program->open(&process.self, &process, config, name, &error);
    if (status == WG_OK)
        zloop_start(process.loop);
    else
        log_error("cannot start why=%s", error.message);
    program->close(&process.self);
    zloop_destroy(&process.loop);
    close(process.signals.fd);
    if (status == WG_OK)
        log_notice("stopped");
    return status == WG_OK && !process.failed ? EXIT_SUCCESS : EXIT_FAILURE;
}

int process_main(const process_program_t *program, int argc, char **argv)
{
    arguments_t arguments = {0};
    wg_config_t *config = NULL;
    int exit_code;
    block_signals();
    if (read_arguments(&arguments, program, argc, argv, &exit_code) &&
        read_config(&config, program, &arguments, &exit_code))
        exit_code = run(program, config, arguments.name);
    wg_config_destroy(&config);
    return exit_code;
}
