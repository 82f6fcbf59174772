/* wavegate-fake-engine: data parallel ranks without a model, for tests and demos. One process, one loop, any
 * number of ranks; one timer steps all independent ones, and stands still while none has work. Those of a
 * lockstep group step with it (rank_lockstep.h). */
#include "common/log.h"
#include "tests/fake_engine/collective.h"
#include "tests/fake_engine/rank_io.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define INIT_TIMEOUT_MS 300000 /* how long an engine waits for INIT */
#define NO_TIMER (-1)

typedef struct {
    options_t options;
    rank_host_t host;
    rank_io_t **ranks;
    zmq_pollitem_t signals;
    int step_timer;
} fleet_t;

static int on_step(zloop_t *loop, int timer, void *argument)
{
    fleet_t *fleet = argument;
    bool busy = false;
    for (size_t i = 0; i < fleet->options.rank_count; i++) {
        if (!rank_io_step(fleet->ranks[i]))
            return -1;
        busy = busy || rank_io_busy(fleet->ranks[i]);
    }
    if (!busy) {
        zloop_timer_end(loop, timer);
        fleet->step_timer = NO_TIMER;
    }
    return 0;
}

static void on_work(void *context)
{
    fleet_t *fleet = context;
    if (fleet->step_timer == NO_TIMER)
        fleet->step_timer = zloop_timer(fleet->host.loop, fleet->options.step_ms, 0, on_step, fleet);
}

static int on_init_timeout(zloop_t *loop, int timer, void *argument)
{
    (void)loop;
    (void)timer;
    fleet_t *fleet = argument;
    for (size_t i = 0; i < fleet->options.rank_count; i++) {
        if (rank_io_waits_for_init(fleet->ranks[i])) {
            log_error("no_init rank=%u waited_ms=%d", fleet->options.ranks[i], INIT_TIMEOUT_MS);
            fleet->host.exit_status = RANK_EXIT_SYSTEM;
            return -1;
        }
    }
    return 0;
}

static int on_signal(zloop_t *loop, zmq_pollitem_t *item, void *argument)
{
    (void)loop;
    (void)item;
    fleet_t *fleet = argument;
    for (size_t i = 0; fleet->options.dead_on_term && i < fleet->options.rank_count; i++)
        rank_io_say_dead(fleet->ranks[i]);
    return -1;
}

/* A thousand ranks with three clients each need some 16,000 descriptors. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Blocked and read from a descriptor, for any caught signal would end zloop_start by itself. */
static wg_status_t watch_signals(fleet_t *fleet, wg_error_t *error)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    signal(SIGPIPE, SIG_IGN);
    fleet->signals.events = ZMQ_POLLIN;
    if (sigprocmask(SIG_BLOCK, &stop, NULL) == 0)
        fleet->signals.fd = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fleet->signals.fd < 0 || zloop_poller(fleet->host.loop, &fleet->signals, on_signal, fleet))
        return WG_FAIL(error, SYSTEM, "watching signals", strerror(errno));
    return WG_OK;
}

static wg_status_t start_ranks(fleet_t *fleet, wg_error_t *error)
{
    fleet->ranks = calloc(fleet->options.rank_count, sizeof(rank_io_t *));
    if (!fleet->ranks)
        return WG_FAIL(error, SYSTEM, "starting the ranks", strerror(errno));
    for (size_t i = 0; i < fleet->options.rank_count; i++) {
        wg_status_t status = rank_io_new(&fleet->ranks[i], &fleet->host, fleet->options.ranks[i], error);
        if (status != WG_OK)
            return status;
    }
    if (zloop_timer(fleet->host.loop, INIT_TIMEOUT_MS, 1, on_init_timeout, fleet) < 0)
        return WG_FAIL(error, SYSTEM, "starting a timer", strerror(ENOMEM));
    return WG_OK;
}

static wg_status_t start(fleet_t *fleet, wg_error_t *error)
{
    fleet->host.loop = zloop_new();
    wg_status_t status = watch_signals(fleet, error);
    if (status == WG_OK)
        status = socket_set_new(&fleet->host.sockets, fleet->host.loop, error);
    return status == WG_OK ? start_ranks(fleet, error) : status;
}

static void stop(fleet_t *fleet)
{
    for (size_t i = 0; fleet->ranks && i < fleet->options.rank_count; i++)
        rank_io_destroy(&fleet->ranks[i]);
    free(fleet->ranks);
    collective_destroy(&fleet->host.collective);
    rank_output_buffers_free(&fleet->host.buffers);
    socket_set_destroy(&fleet->host.sockets);
    zloop_destroy(&fleet->host.loop);
    if (fleet->signals.fd >= 0)
        close(fleet->signals.fd);
    events_free(&fleet->host.events);
    zsys_shutdown();
}

static int run(fleet_t *fleet)
{
    wg_error_t error;
    raise_descriptor_limit();
    log_open("fake-engine", WG_LOG_NOTICE);
    zsys_set_max_sockets(0);
    fleet->signals.fd = -1;
    fleet->step_timer = NO_TIMER;
    fleet->host.options = &fleet->options;
    fleet->host.events.on = fleet->options.events;
    fleet->host.on_work = on_work;
    fleet->host.context = fleet;
    if (start(fleet, &error) == WG_OK) {
        zloop_start(fleet->host.loop);
    } else {
        log_error("start_failed reason=\"%s\"", error.message);
        fleet->host.exit_status = RANK_EXIT_SYSTEM;
    }
    stop(fleet);
    return fleet->host.exit_status;
}

int main(int argc, char **argv)
{
    fleet_t fleet = {0};
    wg_error_t error;
    int exit_status = 0;
    if (options_parse(&fleet.options, argc, argv, &error) != WG_OK) {
        fprintf(stderr, "wavegate-fake-engine: %s (see --help)\n", error.message);
        exit_status = EXIT_USAGE;
    } else if (fleet.options.help) {
        options_print_help(stdout);
    } else if (fleet.options.version) {
        puts("wavegate-fake-engine " WG_VERSION);
    } else {
        exit_status = run(&fleet);
    }
    options_free(&fleet.options);
    return exit_status;
}
