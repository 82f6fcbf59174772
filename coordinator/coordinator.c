#include "coordinator/coordinator_parts.h"

#include "common/exposure.h"
#include "common/log.h"
#include "coordinator/startup_report.h"
#include "coordinator/status_http.h"

/* --- a rank's state --- */

static void on_rank_changed(void *context, uint32_t rank, wg_rank_state_t before)
{
    coordinator_t *self = context;
    wg_rank_state_t state = rank_table_get(self->ranks, rank)->state;
    log_notice("rank changed rank=%u state=%s was=%s", rank, wg_rank_state_name(state),
               wg_rank_state_name(before));
    /* What was reported of a rank before its HELLO is of an engine that an earlier life of ours knew. */
    bool outdated = state == WG_RANK_LOST || (state == WG_RANK_HELLO && before == WG_RANK_ABSENT);
    if (outdated)
        load_board_clear(self->loads, rank);
    if (outdated && self->publisher)
        publisher_loads_changed(self->publisher);
    if (self->engine_publisher)
        engine_publisher_ranks_changed(self->engine_publisher);
    if (self->waves && state == WG_RANK_READY)
        wave_driver_rank_changed(self->waves);
    control_rank_changed(self->control, rank);
    if (startup_deadline_rank_changed(self->startup, rank, before))
        log_notice("every rank has started");
}

/* A frontend knows of a rank what we do not: we were restarted, and its engine will not register again. */
static void on_learned_rank(void *context, const wire_control_entry_t *known)
{
    coordinator_t *self = context;
    startup_deadline_learned(self->startup, known->rank, known->number);
    if (!rank_table_learn(self->ranks, known, zclock_mono()))
        return;
    log_notice("rank learned from a frontend rank=%u", known->rank);
    control_rank_changed(self->control, known->rank); /* the others may lack its response */
}

static void on_learned_wave(void *context, int64_t wave)
{
    coordinator_t *self = context;
    if (self->waves)
        wave_driver_join(self->waves, wave);
}

static const control_events_t control_events = {
    .on_learned_rank = on_learned_rank,
    .on_learned_wave = on_learned_wave,
};

/* --- the client slot --- */

/* Lockstep ranks report the size of their group, independent ones 1 (protocol.md 4). */
static void warn_of_other_mode(const coordinator_t *self, uint32_t rank)
{
    int64_t size = rank_table_get(self->ranks, rank)->registration.data_parallel_size;
    bool lockstep = self->config->ranks.lockstep;
    if (size == WIRE_UNKNOWN || (lockstep ? size == self->config->ranks.count : size == 1))
        return;
    log_warning("data_parallel_size does not fit ranks.lockstep rank=%u data_parallel_size=%lld lockstep=%s",
                rank, (long long)size, lockstep ? "true" : "false");
}

static void on_registration(void *context, uint32_t rank, wire_bytes_t payload)
{
    coordinator_t *self = context;
    wg_error_t error;
    if (rank_table_register(self->ranks, rank, payload, zclock_mono(), &error) != WG_OK) {
        faults_report_rank(self->faults, FAULTS_INPUT, rank, &error);
        return;
    }
    warn_of_other_mode(self, rank);
    if (self->engine_publisher)
        engine_publisher_ranks_changed(self->engine_publisher);
}

static void on_route(void *context, uint32_t rank, bool up)
{
    coordinator_t *self = context;
    rank_table_route(self->ranks, rank, up, zclock_mono());
    if (up)
        rank_probe_route_up(self->probe, rank);
    else
        handshake_rank_lost(self->handshake, rank);
    if (self->engine_publisher)
        engine_publisher_ranks_changed(self->engine_publisher);
}

static void on_answer(coordinator_t *self, uint32_t rank, int64_t call_id)
{
    if (rank >= self->config->ranks.count)
        return;
    rank_table_answered(self->ranks, rank, zclock_mono());
    if (self->waves)
        wave_driver_pong(self->waves, rank, call_id);
}

/* As client 0 the slot gets the stats of steps without outputs, which the reports have, too. It sends no
 * requests, so request outputs and waves are on the wrong path. */
static bool on_slot_outputs(void *context, const wire_bytes_t *frames, size_t count)
{
    coordinator_t *self = context;
    wire_outputs_t outputs;
    wg_error_t error;
    (void)count;
    wg_status_t status = wire_outputs_decode(&outputs, frames[0].data, frames[0].size, &error);
    if (status == WG_OK && (outputs.output_count > 0 || outputs.finished_count > 0))
        status = WG_FAIL(&error, UNEXPECTED_DISPATCHER_OUTPUT, outputs.engine_index, "outputs of a request");
    else if (status == WG_OK && (outputs.has_wave_complete || outputs.has_start_wave))
        status = WG_FAIL(&error, UNEXPECTED_DISPATCHER_OUTPUT, outputs.engine_index, "a wave");
    if (status != WG_OK)
        faults_report_rank(self->faults, FAULTS_OUTPUT, outputs.engine_index, &error);
    else if (outputs.has_utility &&
             outputs.utility.call_id >= 0) /* negative: notices that nobody asked for */
        on_answer(self, outputs.engine_index, outputs.utility.call_id);
    return true; /* no request of ours waits for outputs */
}

static const engine_link_events_t slot_events = {
    .on_registration = on_registration,
    .on_outputs = on_slot_outputs,
    .on_route = on_route,
};

/* --- stats and waves --- */

static void on_report(void *context, const wire_outputs_t *report)
{
    coordinator_t *self = context;
    self->reports++;
    if (report->has_stats) {
        bool fresh = load_board_report(self->loads, report->engine_index, &report->stats, zclock_mono());
        self->stale_reports += !fresh;
        publisher_loads_changed(self->publisher);
    }
    if (self->waves)
        wave_driver_report(self->waves, report);
}

/* Independent ranks have no waves, so a frontend of ours sends none; one of vLLM's might. */
static void on_notice(void *context, int64_t rank, int64_t wave)
{
    coordinator_t *self = context;
    (void)rank;
    if (self->waves)
        wave_driver_notice(self->waves, wave);
}

static void on_group_started(void *context)
{
    coordinator_t *self = context;
    if (self->waves)
        wave_driver_group_started(self->waves);
}

/* --- birth and death --- */

static int on_waiting_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    const coordinator_t *self = context;
    text_buffer_t line = {0};
    if (startup_report(&line, self->config, self->ranks, zclock_mono()) && !line.failed)
        log_notice("waiting: %.*s", (int)line.size, line.data);
    text_buffer_free(&line);
    return 0;
}

/* Once: the ranks that are missing then are shown by the status route, and by the waiting line. */
static int on_startup_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    coordinator_t *self = context;
    int64_t now_ms = zclock_mono();
    uint64_t subscriptions =
        self->engine_publisher ? engine_publisher_subscriptions(self->engine_publisher) : 0;
    wg_error_t error;
    self->startup_timer = -1;
    if (!startup_deadline_passed(self->startup, now_ms))
        return 0;
    for (startup_phase_t phase = 0; phase < STARTUP_PHASE_COUNT; phase++) {
        if (startup_deadline_fault(self->startup, phase, subscriptions, now_ms, &error))
            log_error("%s: %s", wg_status_name(error.status), error.message);
    }
    bool ends = startup_deadline_ends(self->startup, now_ms);
    log_error(
        "not all ranks have started in time missing=%u limit=%lld ms; %s; if engines need longer, raise "
        "timeouts.startup_ms",
        startup_deadline_missing(self->startup), (long long)self->config->timeouts.startup_ms,
        ends ? "giving up (timeouts.on_startup_timeout)" : "going on, and waiting for the others");
    if (ends)
        self->on_give_up(self->context);
    return 0;
}

static wg_status_t open_slot(coordinator_t *self, wg_error_t *error)
{
    const wg_config_t *config = self->config;
    const engine_link_options_t options = {
        .input = &config->coordinator.input,
        .output = &config->coordinator.output,
        .ranks = self->all_ranks,
        .rank_count = config->ranks.count,
        .heartbeat_interval_ms = config->timeouts.heartbeat_interval_ms,
        .heartbeat_timeout_ms = config->timeouts.heartbeat_timeout_ms,
        .max_output_bytes = config->limits.max_output_bytes,
        .send_hwm = 1000,
        .faults = self->faults,
        .events = &slot_events,
        .context = self,
    };
    wg_status_t status = engine_link_new(&self->slot, self->loop, &options, error);
    for (uint32_t rank = 0; status == WG_OK && rank < config->ranks.count; rank++)
        engine_link_watch(self->slot, rank); /* engines that run already will not register again */
    return status;
}

static wg_status_t open_wave_sockets(coordinator_t *self, wg_error_t *error)
{
    const wg_config_t *config = self->config;
    if (!config->coordinator.engine_publish.address[0])
        return WG_OK;
    wg_status_t status = engine_publisher_new(&self->engine_publisher, self->loop, config, self->ranks,
                                              self->faults, on_group_started, self, error);
    if (status == WG_OK)
        status = publisher_new(&self->publisher, self->loop, config, self->loads, self->faults, on_notice,
                               self, error);
    const wave_driver_options_t options = {.config = config,
                                           .engines = self->engine_publisher,
                                           .frontends = self->publisher,
                                           .slot = self->slot,
                                           .ranks = self->ranks};
    if (status == WG_OK && config->ranks.lockstep)
        status = wave_driver_new(&self->waves, self->loop, &options, error);
    if (status == WG_OK)
        status = engine_reports_new(&self->engine_reports, self->loop, config, self->faults, on_report, self,
                                    error);
    return status;
}

/* To each rank the handshake, the slot's input and output, publish and reports; to each frontend the control
 * link and the publisher. */
enum { CONNECTIONS_PER_RANK = 5, CONNECTIONS_PER_FRONTEND = 2 };

static wg_status_t open_http(coordinator_t *self, wg_error_t *error)
{
    http_server_options_t options = {
        .listen = self->config->coordinator.http,
        .routes = status_http_routes,
        .route_count = status_http_route_count,
        .context = self,
    };
    size_t peers = (size_t)CONNECTIONS_PER_RANK * self->config->ranks.count +
                   (size_t)CONNECTIONS_PER_FRONTEND * self->config->frontend_count;
    wg_status_t status = http_server_set_limits(&options, self->config, peers, error);
    return status == WG_OK ? http_server_new(&self->http, self->loop, &options, error) : status;
}

/* The handshake comes last: whoever can dial it finds every address of its INIT bound. */
static wg_status_t open_all(coordinator_t *self, wg_error_t *error)
{
    wg_status_t status = open_slot(self, error);
    if (status == WG_OK)
        status = rank_probe_new(&self->probe, self->loop, self->ranks, self->slot, error);
    if (status == WG_OK)
        status = open_wave_sockets(self, error);
    if (status == WG_OK)
        status = control_new(&self->control, self->loop, self->config, self->ranks, self->faults,
                             &control_events, self, error);
    if (status == WG_OK)
        status = open_http(self, error);
    const handshake_options_t options = {
        .config = self->config, .ranks = self->ranks, .slot = self->slot, .faults = self->faults};
    if (status == WG_OK)
        status = handshake_new(&self->handshake, self->loop, &options, error);
    return status;
}

wg_status_t coordinator_new(coordinator_t **out, zloop_t *loop, const wg_config_t *config,
                            coordinator_give_up_fn *on_give_up, void *context, wg_error_t *error)
{
    wg_status_t status = WG_FAIL(error, SYSTEM, "coordinator", "out of memory");
    coordinator_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return status;
    self->config = config;
    self->loop = loop;
    self->on_give_up = on_give_up;
    self->context = context;
    self->waiting_timer = -1;
    self->startup_timer = -1;
    self->faults = faults_new();
    self->loads = load_board_new(config->ranks.count, config->ranks.lockstep);
    self->all_ranks = malloc(config->ranks.count * sizeof *self->all_ranks);
    for (uint32_t rank = 0; self->all_ranks && rank < config->ranks.count; rank++)
        self->all_ranks[rank] = rank;
    if (self->faults && self->loads && self->all_ranks)
        status = rank_table_new(&self->ranks, config->ranks.count, config->ranks.lockstep, on_rank_changed,
                                self, error);
    if (status == WG_OK) {
        self->startup = startup_deadline_new(config, self->ranks, zclock_mono());
        status =
            self->startup ? open_all(self, error) : WG_FAIL(error, SYSTEM, "coordinator", "out of memory");
    }
    if (status != WG_OK) {
        coordinator_destroy(&self);
        return status;
    }
    size_t period_ms = (size_t)config->timeouts.waiting_log_ms;
    self->waiting_timer = zloop_timer(loop, period_ms, 0, on_waiting_timer, self);
    if (config->timeouts.startup_ms > 0)
        self->startup_timer =
            zloop_timer(loop, (size_t)config->timeouts.startup_ms, 1, on_startup_timer, self);
    log_notice("listening handshake=%s http=%s:%u ranks=%u lockstep=%s", config->coordinator.handshake.bind,
               config->coordinator.http.host, http_server_port(self->http), config->ranks.count,
               config->ranks.lockstep ? "true" : "false");
    exposure_warn(config, NULL);
    *out = self;
    return WG_OK;
}

void coordinator_destroy(coordinator_t **coordinator)
{
    coordinator_t *self = *coordinator;
    if (!self)
        return;
    if (self->waiting_timer != -1)
        zloop_timer_end(self->loop, self->waiting_timer);
    if (self->startup_timer != -1)
        zloop_timer_end(self->loop, self->startup_timer);
    http_server_destroy(&self->http);
    handshake_destroy(&self->handshake);
    wave_driver_destroy(&self->waves);
    rank_probe_destroy(&self->probe);
    engine_link_destroy(&self->slot);
    engine_reports_destroy(&self->engine_reports);
    engine_publisher_destroy(&self->engine_publisher);
    publisher_destroy(&self->publisher);
    control_destroy(&self->control);
    startup_deadline_destroy(&self->startup);
    rank_table_destroy(&self->ranks);
    load_board_destroy(&self->loads);
    faults_destroy(&self->faults);
    free(self->all_ranks);
    free(self);
    *coordinator = NULL;
}
