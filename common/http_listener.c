#include "common/http_internal.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDRESS_TEXT_SIZE (sizeof((config_http_t *)0)->host + sizeof "http://[]:65535")

static wg_status_t cannot(const config_http_t *address, const char *reason, wg_error_t *error)
{
    char text[sizeof "listen on " + ADDRESS_TEXT_SIZE];
    bool is_ipv6 = strchr(address->host, ':') != NULL;
    snprintf(text, sizeof text, is_ipv6 ? "listen on http://[%s]:%u" : "listen on http://%s:%u",
             address->host, (unsigned)address->port);
    return WG_FAIL(error, SYSTEM, text, reason);
}

static int bind_and_listen(int fd, const struct addrinfo *info)
{
    const int on = 1;
    /* SO_REUSEADDR, so that a restart need not wait for old connections in TIME_WAIT. Not SO_REUSEPORT: with
     * it two servers would share one port and each would get half of the clients. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
        return -1;
    /* "::" means IPv6 here, whatever the system's default is; IPv4 has an address of its own. */
    if (info->ai_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0)
        return -1;
    if (bind(fd, info->ai_addr, info->ai_addrlen) != 0)
        return -1;
    return listen(fd, SOMAXCONN);
}

static int bound_port(int fd, uint16_t *port)
{
    struct sockaddr_in6 bound = {0}; /* IPv4 has its port at the same place */
    socklen_t size = sizeof bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &size) != 0)
        return -1;
    *port = ntohs(bound.sin6_port);
    return 0;
}

wg_status_t http_listener_open(int *fd, uint16_t *port, const config_http_t *address, wg_error_t *error)
{
    const struct addrinfo hints = {
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
        .ai_socktype = SOCK_STREAM,
    };
    char service[sizeof "65535"];
    snprintf(service, sizeof service, "%u", (unsigned)address->port);
    struct addrinfo *info = NULL;
    int code = getaddrinfo(address->host, service, &hints, &info);
    if (code != 0)
        return cannot(address, gai_strerror(code), error);
    wg_status_t status = WG_OK;
    *fd = socket(info->ai_family, info->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, info->ai_protocol);
    if (*fd == -1 || bind_and_listen(*fd, info) != 0 || bound_port(*fd, port) != 0) {
        status = cannot(address, strerror(errno), error);
        if (*fd != -1)
            close(*fd);
        *fd = -1;
    }
    freeaddrinfo(info);
    return status;
}
