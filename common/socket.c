#include "common/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static bool set_int(zsock_t *socket, int option, int value)
{
    return zmq_setsockopt(zsock_resolve(socket), option, &value, sizeof value) == 0;
}

static bool set_options(zsock_t *socket, const socket_options_t *options, bool ipv6)
{
    int interval_ms = (int)options->heartbeat_interval_ms;
    int timeout_ms = (int)options->heartbeat_timeout_ms;
    int64_t max_bytes = options->max_message_bytes > 0 ? options->max_message_bytes : -1;
    bool ok = set_int(socket, ZMQ_LINGER, options->linger_ms);
    /* A reader at its water mark would stop reading heartbeats, too, and be taken for dead. */
    ok = ok && set_int(socket, ZMQ_RCVHWM, 0);
    ok = ok && set_int(socket, ZMQ_SNDHWM, options->send_hwm);
    ok = ok && zmq_setsockopt(zsock_resolve(socket), ZMQ_MAXMSGSIZE, &max_bytes, sizeof max_bytes) == 0;
    ok = ok && set_int(socket, ZMQ_IPV6, ipv6);
    if (interval_ms > 0) {
        ok = ok && set_int(socket, ZMQ_HEARTBEAT_IVL, interval_ms);
        ok = ok && set_int(socket, ZMQ_HEARTBEAT_TIMEOUT, timeout_ms);
        ok = ok && set_int(socket, ZMQ_HEARTBEAT_TTL, timeout_ms);
    }
    if (options->routing_id)
        ok = ok && zmq_setsockopt(zsock_resolve(socket), ZMQ_ROUTING_ID, options->routing_id,
                                  strlen(options->routing_id)) == 0;
    if (options->mandatory)
        ok = ok && set_int(socket, ZMQ_ROUTER_MANDATORY, 1);
    if (options->handover)
        ok = ok && set_int(socket, ZMQ_ROUTER_HANDOVER, 1);
    if (options->verbose)
        ok = ok && set_int(socket, ZMQ_XPUB_VERBOSER, 1);
    return ok;
}

static zsock_t *socket_new(const socket_options_t *options, const char *address)
{
    zsock_t *socket = zsock_new(options->type);
    if (socket && !set_options(socket, options, strchr(address, '[') != NULL))
        zsock_destroy(&socket);
    return socket;
}

/* True where the path is ours now. The descriptor stays open on purpose: the lock lasts as long as the
 * process. */
static bool lock_ipc_path(const char *path)
{
    char lock[WG_ADDRESS_SIZE + 8];
    snprintf(lock, sizeof lock, "%s.lock", path);
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd == -1)
        return false;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    close(fd);
    errno = EADDRINUSE;
    return false;
}

wg_status_t socket_bind(zsock_t **out, const socket_options_t *options, const config_endpoint_t *endpoint,
                        wg_error_t *error)
{
    static const char ipc[] = "ipc://";
    const char *address = endpoint->bind;
    zsock_t *socket = socket_new(options, address);
    bool bound = socket != NULL;
    *out = NULL;
    if (bound && strncmp(address, ipc, sizeof ipc - 1) == 0)
        bound = lock_ipc_path(address + sizeof ipc - 1);
    if (!bound || zmq_bind(zsock_resolve(socket), address) != 0) {
        int cause = errno;
        zsock_destroy(&socket);
        return WG_FAIL(error, SYSTEM, address, zmq_strerror(cause));
    }
    *out = socket;
    return WG_OK;
}

wg_status_t socket_connect(zsock_t **out, const socket_options_t *options, const char *address,
                           wg_error_t *error)
{
    zsock_t *socket = socket_new(options, address);
    *out = NULL;
    if (!socket || zmq_connect(zsock_resolve(socket), address) != 0) {
        int cause = errno;
        zsock_destroy(&socket);
        return WG_FAIL(error, SYSTEM, address, zmq_strerror(cause));
    }
    *out = socket;
    return WG_OK;
}
