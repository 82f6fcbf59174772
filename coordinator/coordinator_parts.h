/* coordinator_parts.h: the inside of a coordinator_t, for coordinator.c, which builds it, and status_http.c,
 * which shows it. */
#ifndef WG_COORDINATOR_COORDINATOR_PARTS_H
#define WG_COORDINATOR_COORDINATOR_PARTS_H

#include "common/engine_link.h"
#include "common/faults.h"
#include "common/http_server.h"
#include "coordinator/control.h"
#include "coordinator/coordinator.h"
#include "coordinator/engine_publisher.h"
#include "coordinator/engine_reports.h"
#include "coordinator/handshake.h"
#include "coordinator/load_board.h"
#include "coordinator/publisher.h"
#include "coordinator/rank_probe.h"
#include "coordinator/rank_table.h"
#include "coordinator/startup_deadline.h"
#include "coordinator/wave_driver.h"

struct coordinator {
    const wg_config_t *config;
    zloop_t *loop;
    uint32_t *all_ranks; /* 0, 1, 2, ...: the client slot serves every rank */
    faults_t *faults;
    rank_table_t *ranks;
    load_board_t *loads;
    engine_link_t *slot;
    rank_probe_t *probe;
    handshake_t *handshake;
    engine_publisher_t *engine_publisher; /* these three are NULL where they are not configured */
    engine_reports_t *engine_reports;
    publisher_t *publisher;
    wave_driver_t *waves; /* NULL for independent ranks */
    control_t *control;
    http_server_t *http;
    startup_deadline_t *startup;
    coordinator_give_up_fn *on_give_up;
    void *context;
    int waiting_timer;
    int startup_timer;
    uint64_t reports;
    uint64_t stale_reports;
};

#endif
