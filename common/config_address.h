/* config_address.h: the forms that an address may have in the configuration, and which of two cannot both be
 * bound. No state; any thread. Tests: tests/unit/config_address_test.c */
#ifndef WG_COMMON_CONFIG_ADDRESS_H
#define WG_COMMON_CONFIG_ADDRESS_H

#include "common/config.h"

#define CONFIG_REASON_SIZE 224u
#define CONFIG_IPC_PATH_MAX 107u /* sun_path, without its NUL */

/* An address taken apart. The host is in one form only: lower case, numbers as inet_ntop prints them,
 * `localhost` as 127.0.0.1. */
typedef struct {
    bool ipc;
    bool wildcard;
    bool loopback;
    uint16_t port;              /* tcp only */
    char host[WG_ADDRESS_SIZE]; /* the path, where ipc */
} config_target_t;

/* Each of these three: false and a reason for the user, unless text is what the name says. */

/* tcp://host:port or ipc:///path. bind_key: the key that a wildcard belongs in, where text is an address that
 * peers connect to; NULL where it is one to bind. */
WG_MUST_CHECK bool config_address_parse(const char *text, const char *bind_key, config_target_t *out,
                                        char reason[CONFIG_REASON_SIZE]);
/* host:port; the host numeric, `localhost` or a wildcard. */
WG_MUST_CHECK bool config_http_parse(const char *text, config_http_t *out, char reason[CONFIG_REASON_SIZE]);
/* A host without a port, as peers connect to it. */
WG_MUST_CHECK bool config_host_parse(const char *text, char reason[CONFIG_REASON_SIZE]);

/* An address as the processes use it: as it was written, but `localhost` as a number. libzmq binds no names,
 * and a machine may know this one for IPv6 alone. target: what config_address_parse made of text. */
void config_address_text(const char *text, const config_target_t *target, char out[WG_ADDRESS_SIZE]);

void config_http_target(const config_http_t *http, config_target_t *out);

/* The same address. */
bool config_target_equal(const config_target_t *left, const config_target_t *right);

/* One machine cannot bind both: equal, or the same port with a wildcard. Port 0 never collides. */
bool config_target_collides(const config_target_t *left, const config_target_t *right);

#endif
