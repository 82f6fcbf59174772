#include "tests/fake_engine/socket_set.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define READY_PER_TURN 64

struct socket_set {
    zloop_t *loop;
    int epoll;
    int again; /* an eventfd, readable while a watch is queued */
    socket_watch_t *queue;
    socket_watch_t **queue_end;
    zmq_pollitem_t item;
};

static void clear_queue(socket_set_t *set)
{
    set->queue = NULL;
    set->queue_end = &set->queue;
}

static void enqueue(socket_set_t *set, socket_watch_t *watch)
{
    if (watch->queued)
        return;
    watch->queued = true;
    watch->next_queued = NULL;
    *set->queue_end = watch;
    set->queue_end = &watch->next_queued;
    eventfd_write(set->again, 1);
}

/* False ends the loop. */
static bool serve(socket_set_t *set, socket_watch_t *watch)
{
    if (!watch->socket)
        return true; /* removed by a handler that ran earlier in this turn */
    socket_result_t result = watch->on_ready(watch->context);
    if (result == SOCKET_MORE)
        enqueue(set, watch);
    return result != SOCKET_STOP;
}

static bool serve_queue(socket_set_t *set)
{
    eventfd_t ignored;
    eventfd_read(set->again, &ignored);
    socket_watch_t *watch = set->queue;
    clear_queue(set);
    bool going = true;
    while (watch) {
        socket_watch_t *next = watch->next_queued;
        watch->queued = false;
        going = going && serve(set, watch);
        watch = next;
    }
    return going;
}

static int on_epoll(zloop_t *loop, zmq_pollitem_t *item, void *argument)
{
    (void)loop;
    (void)item;
    socket_set_t *set = argument;
    struct epoll_event events[READY_PER_TURN];
    int count = epoll_wait(set->epoll, events, READY_PER_TURN, 0);
    for (int i = 0; i < count; i++) {
        socket_watch_t *watch = events[i].data.ptr;
        if (!(watch ? serve(set, watch) : serve_queue(set)))
            return -1;
    }
    return 0;
}

static int descriptor_of(void *socket)
{
    int descriptor = -1;
    size_t size = sizeof descriptor;
    zmq_getsockopt(socket, ZMQ_FD, &descriptor, &size);
    return descriptor;
}

static wg_status_t watch_descriptor(socket_set_t *set, int descriptor, socket_watch_t *watch,
                                    wg_error_t *error)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
    if (epoll_ctl(set->epoll, EPOLL_CTL_ADD, descriptor, &event))
        return WG_FAIL(error, SYSTEM, "watching a socket", strerror(errno));
    return WG_OK;
}

wg_status_t socket_set_new(socket_set_t **out, zloop_t *loop, wg_error_t *error)
{
    *out = NULL;
    socket_set_t *set = calloc(1, sizeof *set);
    if (!set)
        return WG_FAIL(error, SYSTEM, "watching sockets", strerror(errno));
    set->loop = loop;
    clear_queue(set);
    set->epoll = epoll_create1(EPOLL_CLOEXEC);
    set->again = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    set->item = (zmq_pollitem_t){.fd = set->epoll, .events = ZMQ_POLLIN};
    wg_status_t status = WG_OK;
    if (set->epoll < 0 || set->again < 0)
        status = WG_FAIL(error, SYSTEM, "watching sockets", strerror(errno));
    if (status == WG_OK)
        status = watch_descriptor(set, set->again, NULL, error);
    if (status == WG_OK && zloop_poller(loop, &set->item, on_epoll, set))
        status = WG_FAIL(error, SYSTEM, "watching sockets", "no more pollers");
    if (status != WG_OK)
        socket_set_destroy(&set);
    *out = set;
    return status;
}

void socket_set_destroy(socket_set_t **set)
{
    socket_set_t *self = *set;
    if (!self)
        return;
    zloop_poller_end(self->loop, &self->item);
    if (self->epoll >= 0)
        close(self->epoll);
    if (self->again >= 0)
        close(self->again);
    free(self);
    *set = NULL;
}

wg_status_t socket_set_add(socket_set_t *set, socket_watch_t *watch, void *socket, wg_error_t *error)
{
    wg_status_t status = watch_descriptor(set, descriptor_of(socket), watch, error);
    if (status != WG_OK)
        return status;
    watch->socket = socket;
    enqueue(set, watch);
    return WG_OK;
}

void socket_set_remove(socket_set_t *set, socket_watch_t *watch)
{
    if (!watch->socket)
        return;
    epoll_ctl(set->epoll, EPOLL_CTL_DEL, descriptor_of(watch->socket), NULL);
    watch->socket = NULL;
}
