/* socket.h: ZMQ sockets with every option explicit that matters here (design.md 8), bound or connected.
 * Owned by the loop. */
#ifndef WG_COMMON_SOCKET_H
#define WG_COMMON_SOCKET_H

#include "common/config.h"

#include <czmq.h>

/* Zero is libzmq's own default for the message size, and "unlimited" for the water marks. */
typedef struct {
    int type;                      /* ZMQ_ROUTER, ... */
    const char *routing_id;        /* DEALER: who we are; NULL: anonymous */
    bool mandatory;                /* ROUTER: sending to nobody is an error (EHOSTUNREACH), not silence */
    bool handover;                 /* ROUTER: a new connection takes over an identity in use */
    bool verbose;                  /* XPUB: report each subscription and unsubscription, equal ones too */
    int64_t heartbeat_interval_ms; /* 0: none. A missed answer closes the connection after the timeout */
    int64_t heartbeat_timeout_ms;
    int64_t max_message_bytes; /* a peer that sends a larger frame is disconnected; 0: no limit */
    int send_hwm;              /* messages queued per peer before sending fails with EAGAIN; 0: no limit */
    int linger_ms;             /* how long closing waits for unsent messages */
} socket_options_t;

/* How long a connection may take to become a ZMQ one, on every socket that is made after this call. A scanner
 * that sends nothing would else hold its descriptor for ever. 30 s without a call. */
void socket_set_handshake_limit(int64_t limit_ms);

/* WG_E_SYSTEM names the address and the reason. An ipc path is locked first (<path>.lock, held until the
 * process ends), since libzmq would silently take it from a live process, and must be free or a socket, since
 * libzmq would delete it. Its folder is made if only that is missing, for this user alone (0700). *out is
 * NULL on failure. */
WG_MUST_CHECK wg_status_t socket_bind(zsock_t **out, const socket_options_t *options,
                                      const config_endpoint_t *endpoint, wg_error_t *error);
WG_MUST_CHECK wg_status_t socket_connect(zsock_t **out, const socket_options_t *options, const char *address,
                                         wg_error_t *error);

#endif
