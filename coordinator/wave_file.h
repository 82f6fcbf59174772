/* wave_file.h: the few bytes that let a restarted coordinator know its lockstep group's wave (design.md 4,
 * rule 4): one pwrite before each message that depends on them. No fsync: it outlives the process, not the
 * machine, whose engines would be gone, too. Owned by the coordinator's loop. Tests:
 * tests/unit/wave_file_test.c */
#ifndef WG_COORDINATOR_WAVE_FILE_H
#define WG_COORDINATOR_WAVE_FILE_H

#include "common/config.h"

typedef struct wave_file wave_file_t;

typedef struct {
    int64_t current_wave;
    bool running;
} wave_file_state_t;

typedef enum {
    WAVE_FILE_READ,
    WAVE_FILE_MISSING,
    WAVE_FILE_DAMAGED, /* torn, or not ours at all */
    WAVE_FILE_FOREIGN, /* of a cluster with another configuration */
} wave_file_finding_t;

/* Opens or creates the file (mode 0600), and its folder if that is missing, and reads it. WG_E_SYSTEM names
 * the path: a coordinator that cannot write ahead must not start a lockstep group. *state is set where the
 * finding is READ. */
WG_MUST_CHECK wg_status_t wave_file_open(wave_file_t **out, const wg_config_t *config,
                                         wave_file_finding_t *finding, wave_file_state_t *state,
                                         wg_error_t *error);
void wave_file_close(wave_file_t **file); /* accepts NULL, clears */

WG_MUST_CHECK wg_status_t wave_file_save(wave_file_t *file, wave_file_state_t state, wg_error_t *error);

/* coordinator.state_file, or where it is not given: wavegate-<fingerprint>.wave in /run/wavegate if that can
 * be written, else in $XDG_RUNTIME_DIR, else in /tmp. */
const char *wave_file_path(const wave_file_t *file);

#endif
