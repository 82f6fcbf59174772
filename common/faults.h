/* faults.h: what peers did wrong: counted by socket and cause, said once per socket, cause and peer, and
 * otherwise only counted, so that no peer can flood the log. Owned by the loop. Tests:
 * tests/unit/faults_test.c */
#ifndef WG_COMMON_FAULTS_H
#define WG_COMMON_FAULTS_H

#include "common/status.h"
#include "common/text_buffer.h"

#include <stdint.h>

typedef struct faults faults_t;

/* The sockets of protocol.md 2 and of the control link, by the names that the configuration has for them. */
typedef enum {
    FAULTS_HANDSHAKE,
    FAULTS_INPUT,
    FAULTS_OUTPUT,
    FAULTS_ENGINE_PUBLISH,
    FAULTS_ENGINE_OUTPUT,
    FAULTS_FRONTEND_PUBLISH,
    FAULTS_CONTROL,
    FAULTS_SOCKET_COUNT
} faults_socket_t;

WG_MUST_CHECK faults_t *faults_new(void); /* NULL without memory. The caller destroys. */
void faults_destroy(faults_t **faults);   /* accepts NULL, clears *faults */

/* Counts the error's status. peer: text that names the sender as well as the socket can tell ("rank 3",
 * "output"). At most 1,024 lines are remembered; beyond, one last line says that more are only counted. An
 * hour after that all are forgotten, and may be said again. */
void faults_report(faults_t *faults, faults_socket_t socket, const char *peer, const wg_error_t *error);
/* The same; the peer is "rank N". */
void faults_report_rank(faults_t *faults, faults_socket_t socket, uint32_t rank, const wg_error_t *error);

uint64_t faults_count(const faults_t *faults, faults_socket_t socket, wg_status_t status);

/* {"handshake":{"UnexpectedHandshakeIdentity":3},...}: only what is not zero. */
void faults_json(const faults_t *faults, text_buffer_t *out);

#endif
