/* wave_driver.h: carries out what wave.h and wave_watchdog.h decide: state file, broadcasts, publishes, pings
 * and their timers. Only for lockstep groups. Owned by the coordinator's loop. Tests:
 * tests/integration/test_waves.py */
#ifndef WG_COORDINATOR_WAVE_DRIVER_H
#define WG_COORDINATOR_WAVE_DRIVER_H

#include "common/config.h"
#include "common/engine_link.h"
#include "common/wire_outputs.h"
#include "coordinator/engine_publisher.h"
#include "coordinator/publisher.h"
#include "coordinator/rank_table.h"
#include "coordinator/wave.h"

typedef struct wave_driver wave_driver_t;

/* All must outlive the driver. */
typedef struct {
    const wg_config_t *config;
    engine_publisher_t *engines;
    publisher_t *frontends;
    engine_link_t *slot; /* pings go out here, and wakes while not every rank is READY */
    const rank_table_t *ranks;
} wave_driver_options_t;

/* Opens the state file and takes up where it left off. WG_E_SYSTEM where the file cannot be opened. */
WG_MUST_CHECK wg_status_t wave_driver_new(wave_driver_t **out, zloop_t *loop,
                                          const wave_driver_options_t *options, wg_error_t *error);
void wave_driver_destroy(wave_driver_t **driver); /* accepts NULL, clears */

/* A rank's state has changed. */
void wave_driver_rank_changed(wave_driver_t *driver);
void wave_driver_group_started(wave_driver_t *driver);
void wave_driver_notice(wave_driver_t *driver, int64_t known_wave);
void wave_driver_join(wave_driver_t *driver, int64_t known_wave);
void wave_driver_report(wave_driver_t *driver, const wire_outputs_t *report);
/* The answer to a utility call of ours, or of nobody. */
void wave_driver_pong(wave_driver_t *driver, uint32_t rank, int64_t call_id);

typedef struct {
    wave_t wave;
    uint64_t starts; /* START_DP_WAVE broadcasts, repeats included */
    uint64_t raises; /* by the watchdog */
} wave_driver_state_t;
wave_driver_state_t wave_driver_state(const wave_driver_t *driver);

#endif
