#include "common/connection.h"

#include <sys/socket.h>

connection_t connection_of(int fd)
{
    connection_t connection = {.fd = fd};
    socklen_t size = sizeof connection.cookie;
    if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &connection.cookie, &size) != 0)
        connection.cookie = 0;
    return connection;
}

bool connection_is_open(connection_t connection)
{
    return connection.cookie != 0 && connection_of(connection.fd).cookie == connection.cookie;
}

bool connection_is(connection_t connection, connection_t other)
{
    return connection.fd == other.fd && connection.cookie == other.cookie;
}

void connection_shut(connection_t connection)
{
    if (connection_is_open(connection))
        shutdown(connection.fd, SHUT_RDWR);
}
