#include "coordinator/wave_driver.h"

#include "common/log.h"
#include "common/rank_map.h"
#include "coordinator/wave_file.h"
#include "coordinator/wave_watchdog.h"

/* Any call would do: paused ranks answer it, and it changes nothing. */
#define PING_METHOD "is_scheduler_paused"

struct wave_driver {
    zloop_t *loop;
    wave_driver_options_t options;
    wave_file_t *file;
    wave_watchdog_t *watchdog;
    msgpack_sbuffer payload;
    int timer;
    wave_driver_state_t state;
};

/* To each rank on its request socket, where engines take it, too (protocol.md 5), but do not read before they
 * are through the startup gate. One that has dialled and is not READY has no part in what runs. */
static void start_one_by_one(wave_driver_t *self)
{
    msgpack_sbuffer_clear(&self->payload);
    if (wire_start_encode(&self->payload, self->state.wave.current_wave, NULL) != WG_OK)
        return;
    for (uint32_t rank = 0; rank < self->options.config->ranks.count; rank++) {
        if (rank_table_get(self->options.ranks, rank)->state != WG_RANK_HELLO)
            (void)!engine_link_send(self->options.slot, rank, WIRE_REQUEST_START_DP_WAVE, self->payload.data,
                                    self->payload.size, NULL); /* repeated while the group runs */
    }
}

static void start(wave_driver_t *self)
{
    self->state.starts++;
    if (rank_table_count_in(self->options.ranks, WG_RANK_READY) == self->options.config->ranks.count)
        engine_publisher_start(self->options.engines, self->state.wave.current_wave);
    else
        start_one_by_one(self);
}

/* In the order of the bits: what is said is already written. */
static void act(wave_driver_t *self, wave_actions_t actions)
{
    const wave_t *wave = &self->state.wave;
    wg_error_t error;
    if (actions & WAVE_SAVE) {
        wave_file_state_t saved = {.current_wave = wave->current_wave, .running = wave->running};
        if (wave_file_save(self->file, saved, &error) != WG_OK)
            log_error("wave is not saved why=%s", error.message); /* worse only if we die now */
    }
    if (actions & WAVE_START)
        start(self);
    if (actions & WAVE_PUBLISH)
        publisher_wave(self->options.frontends, wave->current_wave, wave->running);
}

/* Whoever became READY just now was left out of the last START_DP_WAVE. */
void wave_driver_rank_changed(wave_driver_t *driver)
{
    act(driver, wave_on_repeat(&driver->state.wave));
}

void wave_driver_group_started(wave_driver_t *driver)
{
    act(driver, wave_group_started(&driver->state.wave));
}

void wave_driver_notice(wave_driver_t *driver, int64_t known_wave)
{
    act(driver, wave_on_notice(&driver->state.wave, known_wave));
}

void wave_driver_join(wave_driver_t *driver, int64_t known_wave)
{
    act(driver, wave_on_join(&driver->state.wave, known_wave));
}

void wave_driver_report(wave_driver_t *driver, const wire_outputs_t *report)
{
    wave_t *wave = &driver->state.wave;
    wave_watchdog_sign(driver->watchdog, zclock_mono());
    if (report->has_stats)
        act(driver,
            wave_on_report(wave, report->stats.current_wave, report->stats.waiting, report->stats.running));
    if (report->has_wave_complete)
        act(driver, wave_on_complete(wave, report->wave_complete));
    if (report->has_start_wave)
        act(driver, wave_on_start(wave, report->start_wave));
}

void wave_driver_pong(wave_driver_t *driver, uint32_t rank, int64_t call_id)
{
    wave_watchdog_pong(driver->watchdog, rank, call_id);
}

wave_driver_state_t wave_driver_state(const wave_driver_t *driver)
{
    return driver->state;
}

static void ping_every_rank(wave_driver_t *self)
{
    msgpack_sbuffer_clear(&self->payload);
    if (wire_utility_encode(&self->payload, RANK_MAP_SLOT_INDEX, wave_watchdog_call_id(self->watchdog),
                            PING_METHOD, NULL) != WG_OK)
        return;
    for (uint32_t rank = 0; rank < self->options.config->ranks.count; rank++)
        (void)!engine_link_send(self->options.slot, rank, WIRE_REQUEST_UTILITY, self->payload.data,
                                self->payload.size, NULL); /* a rank that cannot be reached does not answer */
}

static int on_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    wave_driver_t *self = context;
    switch (wave_watchdog_check(self->watchdog, self->state.wave.running, zclock_mono())) {
    case WAVE_WATCHDOG_PING:
        ping_every_rank(self);
        break;
    case WAVE_WATCHDOG_STUCK:
        log_error(
            "the lockstep group is stuck: some ranks are paused, others wait for them; raising wave=%lld",
            (long long)self->state.wave.current_wave);
        self->state.raises++;
        act(self, wave_raise(&self->state.wave));
        break;
    case WAVE_WATCHDOG_REST:
        break;
    }
    act(self, wave_on_repeat(&self->state.wave));
    return 0;
}

static void restore(wave_driver_t *self, wave_file_finding_t finding, wave_file_state_t saved)
{
    static const char *const words[] = {
        [WAVE_FILE_READ] = "read",
        [WAVE_FILE_MISSING] = "new",
        [WAVE_FILE_DAMAGED] = "damaged",
        [WAVE_FILE_FOREIGN] = "of another cluster",
    };
    int64_t known_wave = finding == WAVE_FILE_READ ? saved.current_wave : 0;
    if (finding == WAVE_FILE_READ || finding == WAVE_FILE_MISSING)
        log_notice("state file path=%s is=%s wave=%lld", wave_file_path(self->file), words[finding],
                   (long long)known_wave);
    else
        log_warning("state file path=%s is=%s: the wave is unknown until a frontend or an engine tells it",
                    wave_file_path(self->file), words[finding]);
    act(self, wave_restore(&self->state.wave, known_wave));
}

wg_status_t wave_driver_new(wave_driver_t **out, zloop_t *loop, const wave_driver_options_t *options,
                            wg_error_t *error)
{
    const wg_config_t *config = options->config;
    wave_file_finding_t finding = WAVE_FILE_MISSING;
    wave_file_state_t saved = {0};
    wg_status_t status = WG_FAIL(error, SYSTEM, "wave driver", "out of memory");
    wave_driver_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return status;
    self->loop = loop;
    self->options = *options;
    self->timer = -1;
    msgpack_sbuffer_init(&self->payload);
    self->watchdog = wave_watchdog_new(config->ranks.count, config->timeouts.wave_watchdog_ms, zclock_mono());
    if (self->watchdog)
        status = wave_file_open(&self->file, config, &finding, &saved, error);
    if (status != WG_OK) {
        wave_driver_destroy(&self);
        return status;
    }
    self->timer = zloop_timer(loop, (size_t)config->timeouts.wave_repeat_ms, 0, on_timer, self);
    restore(self, finding, saved);
    *out = self;
    return WG_OK;
}

void wave_driver_destroy(wave_driver_t **driver)
{
    wave_driver_t *self = *driver;
    if (!self)
        return;
    if (self->timer != -1)
        zloop_timer_end(self->loop, self->timer);
    wave_watchdog_destroy(&self->watchdog);
    wave_file_close(&self->file);
    msgpack_sbuffer_destroy(&self->payload);
    free(self);
    *driver = NULL;
}
