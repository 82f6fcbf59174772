/* loop_fixture.h: a zloop that runs until a callback says that the test has seen enough. A safety timer fails
 * a test that waits for what does not come. */
#ifndef WG_TESTS_LOOP_FIXTURE_H
#define WG_TESTS_LOOP_FIXTURE_H

#include "common/log.h"

#include <czmq.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { LOOP_SAFETY_MS = 15000 };

typedef struct {
    zloop_t *loop;
    zsock_t *stopper; /* a message on this pair ends the loop: unlike a timer that does, it leaves nothing
                         behind */
    zsock_t *stopped;
    bool late;
} test_loop_t;

static inline int on_stopped(zloop_t *loop, zsock_t *socket, void *context)
{
    (void)loop;
    (void)context;
    char byte;
    while (zmq_recv(zsock_resolve(socket), &byte, 1, ZMQ_DONTWAIT) >= 0)
        ;
    return -1;
}

static inline int on_late(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    test_loop_t *self = context;
    self->late = true;
    return -1;
}

/* For the name of an inproc endpoint, which libzmq frees some time after it was closed. */
static inline unsigned fresh_number(void)
{
    static unsigned last;
    return ++last;
}

static inline void test_loop_init(test_loop_t *self)
{
    unsigned number = fresh_number();
    log_open("test", WG_LOG_ERROR);
    *self =
        (test_loop_t){.loop = zloop_new(), .stopper = zsock_new(ZMQ_PAIR), .stopped = zsock_new(ZMQ_PAIR)};
    assert_true(zsock_bind(self->stopped, "inproc://test-loop-%u", number) == 0);
    assert_true(zsock_connect(self->stopper, "inproc://test-loop-%u", number) == 0);
    zloop_reader(self->loop, self->stopped, on_stopped, self);
}

static inline void test_loop_free(test_loop_t *self)
{
    zloop_destroy(&self->loop);
    zsock_destroy(&self->stopper);
    zsock_destroy(&self->stopped);
}

/* From a callback: the loop ends after this turn or the next one. */
static inline void test_loop_end(test_loop_t *self)
{
    assert_int_equal(zmq_send(zsock_resolve(self->stopper), "x", 1, ZMQ_DONTWAIT), 1);
}

static inline void test_loop_run(test_loop_t *self)
{
    int safety = zloop_timer(self->loop, LOOP_SAFETY_MS, 1, on_late, self);
    zloop_start(self->loop);
    zloop_timer_end(self->loop, safety);
    if (self->late)
        fail_msg("nothing came for %d ms", LOOP_SAFETY_MS);
}

#endif
