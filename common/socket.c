#include "common/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define IPC "ipc://"

/* One for the process, as no socket has a reason to differ, and each one that forgot it would be a hole. */
static int handshake_limit_ms = 30000;

void socket_set_handshake_limit(int64_t limit_ms)
{
    handshake_limit_ms = (int)limit_ms;
}

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
    ok = ok && set_int(socket, ZMQ_HANDSHAKE_IVL, handshake_limit_ms);
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

/* --- ipc paths. Each of these: NULL, or why not --- */

static const char *make_folder_of(const char *path)
{
    char folder[WG_ADDRESS_SIZE];
    size_t length = (size_t)(strrchr(path, '/') - path); /* the config takes absolute paths only */
    snprintf(folder, sizeof folder, "%.*s", (int)length, path);
    return length == 0 || mkdir(folder, 0700) == 0 || errno == EEXIST ? NULL : strerror(errno);
}

/* The descriptor stays open on purpose: the lock lasts as long as the process. */
static const char *lock_path(const char *path)
{
    char lock[WG_ADDRESS_SIZE + 8];
    snprintf(lock, sizeof lock, "%s.lock", path);
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd == -1)
        return strerror(errno);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return NULL;
    close(fd);
    return strerror(EADDRINUSE);
}

static const char *check_for_files(const char *path)
{
    struct stat found;
    if (lstat(path, &found) != 0)
        return errno == ENOENT ? NULL : strerror(errno);
    return S_ISSOCK(found.st_mode) ? NULL : "something that is no socket is in its place";
}

static const char *claim_path(const char *path)
{
    const char *why = make_folder_of(path);
    if (!why)
        why = lock_path(path);
    return why ? why : check_for_files(path);
}

/* --- */

static const char *bind_to(zsock_t *socket, const char *address)
{
    const char *why = NULL;
    if (strncmp(address, IPC, strlen(IPC)) == 0)
        why = claim_path(address + strlen(IPC));
    if (why || zmq_bind(zsock_resolve(socket), address) == 0)
        return why;
    if (errno == ENODEV) /* libzmq takes what is not a number for the name of a network interface */
        return "a host name cannot be bound; give an address of this machine in the key's `_bind`";
    return zmq_strerror(errno);
}

wg_status_t socket_bind(zsock_t **out, const socket_options_t *options, const config_endpoint_t *endpoint,
                        wg_error_t *error)
{
    const char *address = endpoint->bind;
    zsock_t *socket = socket_new(options, address);
    const char *why = socket ? bind_to(socket, address) : zmq_strerror(errno);
    if (why)
        zsock_destroy(&socket);
    *out = socket;
    return why ? WG_FAIL(error, SYSTEM, address, why) : WG_OK;
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
