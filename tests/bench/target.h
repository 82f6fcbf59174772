/* target.h: a frontend's address, from its URL. Plain value. Tests: tests/integration/test_bench.py */
#ifndef WG_TESTS_BENCH_TARGET_H
#define WG_TESTS_BENCH_TARGET_H

#include "common/status.h"

#include <sys/socket.h>

#define TARGET_HOST_SIZE 272 /* a name of 255 bytes, a port, and brackets */

typedef struct {
    struct sockaddr_storage address;
    socklen_t address_size;
    char host[TARGET_HOST_SIZE]; /* as the Host header has it */
} target_t;

/* `http://HOST:PORT`, HOST a name or an address, of IPv6 in brackets. May ask a name server, and block. */
WG_MUST_CHECK wg_status_t target_parse(target_t *out, const char *url, wg_error_t *error);

#endif
