/* One timer at a time, always for the moment that the board names: a steady stream of reports can bring the
 * next publish no closer than 100 ms behind the last and cannot push it away either. */
#include "coordinator/publisher.h"

#include "common/receiver.h"

enum { MESSAGE_MAX = 1 << 16 };

struct publisher {
    zloop_t *loop;
    load_board_t *loads;
    faults_t *faults;
    publisher_notice_fn *on_notice;
    void *context;
    receiver_t *receiver;
    msgpack_sbuffer frame;
    int timer;
    publisher_state_t state;
};

static void publish(publisher_t *self, const wire_load_t *loads)
{
    msgpack_sbuffer_clear(&self->frame);
    if (wire_publish_encode(&self->frame, loads, load_board_count(self->loads), self->state.current_wave,
                            self->state.engines_running, NULL) != WG_OK)
        return; /* without memory; the next one says the same and more */
    const wire_bytes_t frame = {(const uint8_t *)self->frame.data, self->frame.size};
    if (message_send(receiver_socket(self->receiver), &frame, 1) == 0)
        self->state.publishes++;
}

static void arm(publisher_t *self);

static int on_timer(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    publisher_t *self = context;
    int64_t now_ms = zclock_mono();
    if (timer != self->timer)
        return 0; /* ended in this turn by another timer: zloop runs it all the same */
    self->timer = -1;
    if (load_board_due_ms(self->loads, now_ms) == 0) {
        publish(self, load_board_publish(self->loads, now_ms));
    }
    arm(self);
    return 0;
}

static void arm(publisher_t *self)
{
    if (self->timer != -1)
        zloop_timer_end(self->loop, self->timer);
    size_t due_ms = (size_t)load_board_due_ms(self->loads, zclock_mono());
    self->timer = zloop_timer(self->loop, due_ms, 1, on_timer, self);
}

void publisher_loads_changed(publisher_t *publisher)
{
    arm(publisher);
}

void publisher_wave(publisher_t *publisher, int64_t current_wave, bool engines_running)
{
    publisher_state_t *state = &publisher->state;
    if (state->current_wave == current_wave && state->engines_running == engines_running)
        return;
    state->current_wave = current_wave;
    state->engines_running = engines_running;
    publish(publisher, NULL);
}

publisher_state_t publisher_state(const publisher_t *publisher)
{
    return publisher->state;
}

/* Subscriptions, and first-request notices: [engine index, wave]. */
static void on_message(void *context, const message_t *message)
{
    publisher_t *self = context;
    wire_reader_t reader;
    wg_error_t error;
    uint32_t items = 0;
    int64_t rank = 0;
    int64_t wave = 0;
    wire_bytes_t frame = message->count == 1 ? message->frames[0] : (wire_bytes_t){NULL, 0};
    if (frame.size > 0 && frame.data[0] <= 1) {
        if (frame.data[0] == 1)
            publish(self, load_board_loads(self->loads)); /* a newcomer need not wait up to 5 s for numbers */
        return;
    }
    wire_reader_init(&reader, frame.data, frame.size);
    if (wire_reader_array(&reader, &items) && items != 2)
        wire_reader_fail(&reader, "not a pair");
    wire_reader_int(&reader, &rank);
    wire_reader_int(&reader, &wave);
    if (rank < 0 || rank >= load_board_count(self->loads) || wave < 0)
        wire_reader_fail(&reader, "a rank or a wave out of range");
    if (wire_reader_finish(&reader, "first-request notice", &error) != WG_OK)
        faults_report(self->faults, FAULTS_FRONTEND_PUBLISH, "frontend_publish", &error);
    else
        self->on_notice(self->context, rank, wave);
}

wg_status_t publisher_new(publisher_t **out, zloop_t *loop, const wg_config_t *config, load_board_t *loads,
                          faults_t *faults, publisher_notice_fn *on_notice, void *context, wg_error_t *error)
{
    publisher_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return WG_FAIL(error, SYSTEM, "publisher", "out of memory");
    *self = (publisher_t){.loop = loop,
                          .loads = loads,
                          .faults = faults,
                          .on_notice = on_notice,
                          .context = context,
                          .timer = -1};
    msgpack_sbuffer_init(&self->frame);
    const socket_options_t xpub = {
        .type = ZMQ_XPUB,
        .verbose = true,
        .heartbeat_interval_ms = config->timeouts.heartbeat_interval_ms,
        .heartbeat_timeout_ms = config->timeouts.heartbeat_timeout_ms,
        .max_message_bytes = MESSAGE_MAX,
        .send_hwm = 1000, /* a frontend that does not read loses publishes, which the next ones replace */
    };
    wg_status_t status = receiver_bind(&self->receiver, loop, &xpub, &config->coordinator.frontend_publish,
                                       on_message, self, error);
    if (status != WG_OK) {
        publisher_destroy(&self);
        return status;
    }
    arm(self);
    *out = self;
    return WG_OK;
}

void publisher_destroy(publisher_t **publisher)
{
    publisher_t *self = *publisher;
    if (!self)
        return;
    if (self->timer != -1)
        zloop_timer_end(self->loop, self->timer);
    receiver_destroy(&self->receiver);
    msgpack_sbuffer_destroy(&self->frame);
    free(self);
    *publisher = NULL;
}
