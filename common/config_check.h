/* config_check.h: what the configuration's keys must be to one another, once each is right by itself.
 * Used while loading only. Tests: tests/unit/config_*test.c */
#ifndef WG_COMMON_CONFIG_CHECK_H
#define WG_COMMON_CONFIG_CHECK_H

#include "common/config_place.h"

/* WG_E_CONFIG for the first pair of keys that cannot stand together. */
WG_MUST_CHECK wg_status_t config_check(const config_reading_t *reading);

/* The part of it that looks at all sockets together (config_check_sockets.c): no two may need the same
 * address. */
WG_MUST_CHECK wg_status_t config_check_sockets(const config_reading_t *reading);

#endif
