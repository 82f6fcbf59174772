/* connection.h: which connection a descriptor of libzmq's stands for. libzmq tells the number of the socket
 * that a message came over, and numbers are used again at once: a process that was stopped finds the end of
 * one connection and the messages of the next under the same number together. The kernel's cookie tells them
 * apart. No state; any thread. Tests: tests/unit/output_paths_test.c */
#ifndef WG_COMMON_CONNECTION_H
#define WG_COMMON_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int fd;          /* 0: none */
    uint64_t cookie; /* 0: it was closed already when it was first seen */
} connection_t;

connection_t connection_of(int fd); /* the one that has this number now */
bool connection_is_open(connection_t connection);
bool connection_is(connection_t connection, connection_t other);

/* Ends it, if it is open: its peer and libzmq see the end of the stream. */
void connection_shut(connection_t connection);

#endif
