/* http_internal.h: what the files of the HTTP server share, and nobody else uses.
 *
 *   http_server.c      the daemon and its place in the loop
 *   http_listener.c    the listening socket
 *   http_connection.c  connections: who has a place, and who is closed without being asked
 *   http_head.c        what is refused for its headers
 *   http_request.c     a request arrives, is refused or given to its handler, and ends
 *   http_response.c    the answer, whole or as a stream
 *   http_error.c       errors as JSON
 *
 * A user's callback runs in three places only, all inside MHD_run or MHD_stop_daemon: the handler when a
 * request is complete, on_gone when libmicrohttpd says that an exchange has ended, on_room when it asks for
 * more of a stream than there is. on_room runs in the middle of the content reader: what it writes goes out
 * in the same read, and nothing that it calls may run libmicrohttpd. All else (a client that left, a stream
 * that is cut) works by breaking the connection, and lets libmicrohttpd find it broken. */
#ifndef WG_COMMON_HTTP_INTERNAL_H
#define WG_COMMON_HTTP_INTERNAL_H

#include "common/http_server.h"

#include <microhttpd.h>
#include <sys/queue.h>

/* What a client is given time for. */
typedef enum {
    RECEIVE_HEAD, /* the line and the headers of a request that has begun, or the first of a connection */
    RECEIVE_BODY,
    RECEIVE_NEXT,   /* the first byte of the next request of a connection that is kept */
    RECEIVE_NOTHING /* its request is being answered; has no deadline */
} receive_phase_t;

typedef struct http_connection {
    http_server_t *server;
    http_exchange_t *exchange; /* the request that is arriving or being answered, or NULL */
    int fd;                    /* libmicrohttpd's, which closes it */
    bool is_admitted;          /* has one of the max_connections places */
    bool is_half_closed;       /* the client sends no more */
    bool is_shut;              /* by us; libmicrohttpd will see it */
    bool is_refused;           /* answered by hand, and our side closed */
    size_t target_size;        /* of the current request's target, before libmicrohttpd decodes it */
    bool is_target_cut;        /* decoded, it has a NUL */
    receive_phase_t phase;
    bool is_timed;         /* in the list of its phase */
    int64_t receive_by_ms; /* monotonic; while is_timed */
    TAILQ_ENTRY(http_connection) receiving;
    LIST_ENTRY(http_connection) half_closed;
} http_connection_t;

typedef enum {
    EXCHANGE_READING,   /* the request is arriving */
    EXCHANGE_REFUSED,   /* answered already; what still arrives of the request is thrown away */
    EXCHANGE_WAITING,   /* the handler has it and has not begun the response */
    EXCHANGE_STREAMING, /* the response has begun, and the user may write */
    EXCHANGE_RELEASED,  /* the user is done with it, libmicrohttpd maybe not yet */
} exchange_state_t;

struct http_exchange {
    http_connection_t *connection;
    struct MHD_Connection *mhd; /* NULL when its memory, which holds the headers, is gone */
    const http_route_t *route;  /* NULL: none has this path and method */
    exchange_state_t state;
    bool is_head;
    bool is_suspended; /* libmicrohttpd does not look at the connection before it is resumed */
    bool is_pending;   /* to be resumed by the next run */
    bool is_cut;       /* the socket was reset; nothing more is sent */
    size_t received;   /* body bytes so far */
    text_buffer_t body;
    text_buffer_t output; /* of a stream; the first `taken` bytes are libmicrohttpd's already */
    size_t taken;
    size_t whole_size; /* of a response given whole */
    http_gone_fn *on_gone;
    http_room_fn *on_room;
    bool is_room_due; /* written to since on_room was last called */
    void *user;
    LIST_ENTRY(http_exchange) all;
    LIST_ENTRY(http_exchange) pending;
};

struct http_server {
    http_server_options_t options;
    zloop_t *loop;
    struct MHD_Daemon *daemon;
    int listen_fd; /* libmicrohttpd's once there is a daemon; -1: closed */
    int events_fd; /* the epoll set that the loop polls */
    int timer_fd;
    uint16_t port;
    int64_t armed_ms; /* when the timer fires */
    bool is_running;  /* inside MHD_run */
    bool is_stopping;
    bool slot_freed; /* a connection was closed since MHD_run began */
    /* Connections without a complete request; in each phase all have the same time, so the oldest is
     * first. */
    TAILQ_HEAD(, http_connection) receiving[RECEIVE_NOTHING];
    LIST_HEAD(, http_connection) half_closed;
    size_t admitted; /* connections that have a place */
    LIST_HEAD(, http_exchange) exchanges;
    LIST_HEAD(, http_exchange) pending;
    http_server_stats_t stats;
};

/* Whether a request may go on, by its line and headers: they are not too many or too large, each byte of them
 * is where HTTP has it, the end of the request is certain, its body not too large. method and version as
 * libmicrohttpd's handler gets them. */
WG_MUST_CHECK wg_status_t http_head_check(const http_exchange_t *exchange, const char *method,
                                          const char *version, wg_error_t *error);

/* A non-blocking socket that listens on *address; port 0 becomes the port that the system chose.
 * WG_E_SYSTEM. The caller closes *fd. */
WG_MUST_CHECK wg_status_t http_listener_open(int *fd, uint16_t *port, const config_http_t *address,
                                             wg_error_t *error);

/* libmicrohttpd's callbacks. The context is the http_server_t. */
enum MHD_Result http_request_on_access(void *context, struct MHD_Connection *mhd, const char *path,
                                       const char *method, const char *version, const char *data,
                                       size_t *size, void **slot);
void http_request_on_completed(void *context, struct MHD_Connection *mhd, void **slot,
                               enum MHD_RequestTerminationCode why);

/* When the line of a request is here, before its headers are looked at. */
void *http_request_on_line(void *context, const char *uri, struct MHD_Connection *mhd);

/* The end of the exchange: tells the user if that is due, and frees it. */
void http_exchange_end(http_exchange_t *exchange);

/* Whether the response is still the user's to give, so that on_gone is due if it comes to nothing. */
bool http_exchange_is_open(const http_exchange_t *exchange);

/* Has a suspended exchange resumed at the end of the turn. */
void http_exchange_wake(http_exchange_t *exchange);

/* Resets the connection, whatever state it is in, and drops unsent output. The end follows in the next run.
 */
void http_exchange_cut(http_exchange_t *exchange);

/* Response bytes that libmicrohttpd has not taken, as http_server_stats counts them. */
size_t http_exchange_buffered(const http_exchange_t *exchange);

/* Answers by hand a request that is not complete, and closes our side (http_request.c says how it ends). Once
 * for a connection: the second time nothing is done. */
void http_connection_refuse(http_connection_t *connection, unsigned status, const wg_error_t *error);

/* http_respond with two lists of headers. */
void http_exchange_respond(http_exchange_t *exchange, int status, const http_header_t *first,
                           size_t first_count, const http_header_t *second, size_t second_count,
                           const void *body, size_t size);

/* libmicrohttpd's callback for the beginning and the end of a connection. The context is the
 * http_server_t. */
void http_connection_notify(void *context, struct MHD_Connection *mhd, void **slot,
                            enum MHD_ConnectionNotificationCode what);

/* Whether the connection has a place, or gets one now. */
bool http_connection_admit(http_connection_t *connection);

/* From now to the next call, or the end of the connection, the deadline of that phase holds. */
void http_connection_receive(http_connection_t *connection, receive_phase_t phase);
/* A request and its answer are complete. */
void http_connection_receive_next(http_connection_t *connection);
int64_t http_connection_next_deadline(const http_server_t *server); /* INT64_MAX: none */
void http_connection_close_late(http_server_t *server);

/* The client sent something, before libmicrohttpd has read it. */
void http_connection_readable(http_connection_t *connection);

/* The client closed its side. */
void http_connection_half_closed(http_connection_t *connection);

/* Ends the connections whose client can neither send more nor is owed an answer. To be called when
 * libmicrohttpd has handled all that it has read. */
void http_connection_end_half_closed(http_server_t *server);

/* Runs libmicrohttpd at the end of the turn, once however often this is called. */
void http_server_run_soon(http_server_t *server);

#endif
