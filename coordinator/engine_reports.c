#include "coordinator/engine_reports.h"

#include "common/receiver.h"

enum { MESSAGE_MAX = 1 << 24 };

struct engine_reports {
    const wg_config_t *config;
    faults_t *faults;
    engine_reports_fn *on_report;
    void *context;
    receiver_t *receiver;
};

static wg_status_t check(const engine_reports_t *self, const message_t *message, wire_outputs_t *report,
                         wg_error_t *error)
{
    if (message->count != 1)
        return WG_FAIL(error, DECODE, "EngineCoreOutputs", (size_t)0, "not one frame");
    wg_status_t status = wire_outputs_decode(report, message->frames[0].data, message->frames[0].size, error);
    if (status != WG_OK)
        return status;
    const char *fault = NULL;
    if (report->engine_index >= self->config->ranks.count)
        fault = "a rank that is not in the configuration";
    else if (report->output_count > 0 || report->finished_count > 0)
        fault = "request outputs";
    else if (report->has_utility)
        fault = "a utility output";
    else if ((report->has_wave_complete || report->has_start_wave) && !self->config->ranks.lockstep)
        fault = "a wave, although the ranks are independent";
    return fault ? WG_FAIL(error, UNEXPECTED_COORDINATOR_OUTPUT, report->engine_index, fault) : WG_OK;
}

static void on_message(void *context, const message_t *message)
{
    engine_reports_t *self = context;
    wire_outputs_t report = {0};
    wg_error_t error;
    if (check(self, message, &report, &error) == WG_OK)
        self->on_report(self->context, &report);
    else
        faults_report_rank(self->faults, FAULTS_ENGINE_OUTPUT, report.engine_index, &error);
}

wg_status_t engine_reports_new(engine_reports_t **out, zloop_t *loop, const wg_config_t *config,
                               faults_t *faults, engine_reports_fn *on_report, void *context,
                               wg_error_t *error)
{
    engine_reports_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return WG_FAIL(error, SYSTEM, "engine reports", "out of memory");
    self->config = config;
    self->faults = faults;
    self->on_report = on_report;
    self->context = context;
    const socket_options_t pull = {
        .type = ZMQ_PULL,
        .heartbeat_interval_ms = config->timeouts.heartbeat_interval_ms,
        .heartbeat_timeout_ms = config->timeouts.heartbeat_timeout_ms,
        .max_message_bytes = MESSAGE_MAX,
    };
    wg_status_t status = receiver_bind(&self->receiver, loop, &pull, &config->coordinator.engine_output,
                                       on_message, self, error);
    if (status == WG_OK)
        *out = self;
    else
        engine_reports_destroy(&self);
    return status;
}

void engine_reports_destroy(engine_reports_t **reports)
{
    engine_reports_t *self = *reports;
    if (!self)
        return;
    receiver_destroy(&self->receiver);
    free(self);
    *reports = NULL;
}
