#include "tests/fake_engine/rank_host.h"

#include "common/log.h"

#define MESSAGES_PER_TURN 32
#define TURNS_PER_DRAIN 128

/* A reason may quote what a peer sent: an address, a request id. */
static void make_printable(char *text)
{
    for (; *text; text++) {
        if (*text < 0x20 || *text > 0x7e)
            *text = '?';
    }
}

bool rank_host_passed(rank_host_t *host, uint32_t rank, wg_status_t status, const wg_error_t *error)
{
    if (status == WG_OK)
        return true;
    wg_error_t shown = *error;
    bool is_ours = status == WG_E_SYSTEM || status == WG_E_ENCODE;
    make_printable(shown.message);
    log_error("fatal rank=%u reason=\"%s\"", rank, shown.message);
    host->exit_status = is_ours ? RANK_EXIT_SYSTEM : RANK_EXIT_FRAME;
    return false;
}

socket_result_t rank_host_read(rank_host_t *host, uint32_t rank, void **socket, rank_message_fn *on_message,
                               void *context)
{
    for (unsigned i = 0; i < MESSAGES_PER_TURN; i++) {
        engine_message_t message;
        wg_error_t error;
        if (!*socket || !engine_socket_receive(*socket, &message))
            return SOCKET_EMPTY;
        wg_status_t status = on_message(context, &message, &error);
        engine_message_close(&message);
        if (!rank_host_passed(host, rank, status, &error))
            return SOCKET_STOP;
    }
    return SOCKET_MORE;
}

bool rank_host_drain(rank_host_t *host, uint32_t rank, void **socket, rank_message_fn *on_message,
                     void *context)
{
    socket_result_t result = SOCKET_MORE;
    for (unsigned i = 0; result == SOCKET_MORE && i < TURNS_PER_DRAIN; i++)
        result = rank_host_read(host, rank, socket, on_message, context);
    return result != SOCKET_STOP;
}
