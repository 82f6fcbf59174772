#include "tests/fake_engine/engine_socket.h"

#include <czmq.h>

static bool set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static bool set_options(void *socket, const wg_engine_id_t *id, const char *address, int linger_ms)
{
    bool is_ipv6 = strchr(address, '[') != NULL;
    return set_int(socket, ZMQ_SNDHWM, 0) && set_int(socket, ZMQ_RCVHWM, 0) &&
           set_int(socket, ZMQ_LINGER, linger_ms) && set_int(socket, ZMQ_IPV6, is_ipv6) &&
           (!id || zmq_setsockopt(socket, ZMQ_ROUTING_ID, id->bytes, sizeof id->bytes) == 0);
}

wg_status_t engine_socket_open(void **out, int type, const wg_engine_id_t *id, const char *address,
                               int linger_ms, wg_error_t *error)
{
    *out = zmq_socket(zsys_init(), type);
    if (*out && set_options(*out, id, address, linger_ms) && zmq_connect(*out, address) == 0)
        return WG_OK;
    const char *reason = zmq_strerror(zmq_errno());
    engine_socket_close(out);
    return WG_FAIL(error, SYSTEM, address, reason);
}

wg_status_t engine_socket_listen(void **out, int type, const char *address, wg_error_t *error)
{
    *out = zmq_socket(zsys_init(), type);
    if (*out && set_options(*out, NULL, address, 0) && zmq_bind(*out, address) == 0)
        return WG_OK;
    const char *reason = zmq_strerror(zmq_errno());
    engine_socket_close(out);
    return WG_FAIL(error, SYSTEM, address, reason);
}

void engine_socket_close(void **socket)
{
    if (*socket)
        zmq_close(*socket);
    *socket = NULL;
}

void engine_socket_set_linger(void *socket, int linger_ms)
{
    set_int(socket, ZMQ_LINGER, linger_ms);
}

wg_status_t engine_socket_send(void *socket, const void *data, size_t size, wg_error_t *error)
{
    if (zmq_send(socket, data, size, ZMQ_DONTWAIT) < 0)
        return WG_FAIL(error, SYSTEM, "sending", zmq_strerror(zmq_errno()));
    return WG_OK;
}

bool engine_socket_receive(void *socket, engine_message_t *out)
{
    zmq_msg_t spare; /* for the frames beyond the second, of which only the number matters */
    zmq_msg_init(&out->frames[0]);
    zmq_msg_init(&out->frames[1]);
    zmq_msg_init(&spare);
    out->count = 0;
    bool more = true;
    while (more) {
        zmq_msg_t *frame = out->count < 2 ? &out->frames[out->count] : &spare;
        if (zmq_msg_recv(frame, socket, ZMQ_DONTWAIT) < 0)
            break;
        out->count++;
        more = zmq_msg_more(frame);
    }
    zmq_msg_close(&spare);
    return out->count > 0;
}

void engine_message_close(engine_message_t *message)
{
    zmq_msg_close(&message->frames[0]);
    zmq_msg_close(&message->frames[1]);
}

bool engine_frame_is(zmq_msg_t *frame, const void *data, size_t size)
{
    return zmq_msg_size(frame) == size && memcmp(zmq_msg_data(frame), data, size) == 0;
}
