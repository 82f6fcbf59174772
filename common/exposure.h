/* exposure.h: tells the user which ZMQ sockets of a process every network can reach. Whoever reaches one is
 * believed: an engine's protocol has no passwords. At start, once. Tests: tests/unit/exposure_test.c */
#ifndef WG_COMMON_EXPOSURE_H
#define WG_COMMON_EXPOSURE_H

#include "common/config.h"

/* One warning that names every socket with a wildcard in its `_bind`; nothing where there is none. The
 * sockets of that frontend, or the coordinator's where it is NULL. HTTP is meant to be reached, and not
 * looked at. */
void exposure_warn(const wg_config_t *config, const config_frontend_t *frontend);

#endif
