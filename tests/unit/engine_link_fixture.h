/* engine_link_fixture.h: a link with ranks 0, 1 and 258, and engines that dial it, all in one loop. What the
 * link and the engines have seen is one text, in order: "registered 0 a; up 0; output hello; down 0; ". */
#ifndef WG_TESTS_ENGINE_LINK_FIXTURE_H
#define WG_TESTS_ENGINE_LINK_FIXTURE_H

#include "common/engine_link.h"
#include "common/message.h"
#include "tests/unit/loop_fixture.h"

enum { PLENTY = 1000 };

typedef struct {
    test_loop_t loop;
    char folder[64]; /* of the sockets, where they are ipc */
    config_endpoint_t input;
    config_endpoint_t output;
    faults_t *faults;
    engine_link_t *link;
    text_buffer_t seen;
    const char *wanted;      /* ends the loop once it was seen */
    size_t probes;           /* empty ABORTs that engines got */
    const char *on_register; /* what is sent to a rank as soon as it registers */
    bool up_on_register;     /* was its route up then? */
} fixture_t;

/* One rank's DEALER and PUSH. */
typedef struct {
    fixture_t *fixture;
    uint32_t rank;
    zsock_t *input;
    zsock_t *output;
} engine_t;

static inline bool has_seen(fixture_t *f, const char *text)
{
    text_buffer_bytes(&f->seen, "", 1);
    f->seen.size--;
    return strstr(f->seen.data, text) != NULL;
}

static inline void see(fixture_t *f, const char *format, ...) WG_PRINTF(2, 3);
static inline void see(fixture_t *f, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    text_buffer_text(&f->seen, text);
    if (f->wanted && has_seen(f, f->wanted)) {
        f->wanted = NULL;
        test_loop_end(&f->loop);
    }
}

static inline void wait_for(fixture_t *f, const char *text)
{
    if (has_seen(f, text))
        return;
    f->wanted = text;
    test_loop_run(&f->loop);
}

static inline void assert_seen(fixture_t *f, const char *expected)
{
    has_seen(f, "");
    assert_string_equal(f->seen.data, expected);
}

/* --- the link --- */

static inline void on_registration(void *context, uint32_t rank, wire_bytes_t payload)
{
    fixture_t *f = context;
    f->up_on_register = engine_link_route_up(f->link, rank);
    if (f->on_register)
        assert_int_equal(
            engine_link_send(f->link, rank, WIRE_REQUEST_ADD, f->on_register, strlen(f->on_register), NULL),
            WG_OK);
    see(f, "registered %u %.*s; ", rank, (int)payload.size, (const char *)payload.data);
}

/* One that begins with ! cannot be read. */
static inline bool on_outputs(void *context, const wire_bytes_t *frames, size_t count)
{
    see(context, "output %.*s", (int)frames[0].size, (const char *)frames[0].data);
    for (size_t i = 1; i < count; i++)
        see(context, " + %.*s", (int)frames[i].size, (const char *)frames[i].data);
    see(context, "; ");
    return frames[0].size == 0 || frames[0].data[0] != '!';
}

/* A payload "rank N ..." is of that rank; nobody else says. */
static inline int64_t sender_of(void *context, const wire_bytes_t *frames, size_t count)
{
    static const char of_rank[] = "rank ";
    (void)context;
    (void)count;
    if (frames[0].size < sizeof of_rank || memcmp(frames[0].data, of_rank, sizeof of_rank - 1) != 0)
        return -1;
    return frames[0].data[sizeof of_rank - 1] - '0';
}

static inline void on_cut(void *context, uint32_t rank)
{
    see(context, "cut %u; ", rank);
}

static inline void on_route(void *context, uint32_t rank, bool up)
{
    fixture_t *f = context;
    assert_int_equal(engine_link_route_up(f->link, rank), up);
    see(f, "%s %u; ", up ? "up" : "down", rank);
}

static inline wg_status_t open_link(fixture_t *f, int send_hwm, wg_error_t *error)
{
    static const uint32_t ranks[] = {0, 1, 258};
    static const engine_link_events_t events = {
        .on_registration = on_registration,
        .on_outputs = on_outputs,
        .sender_of = sender_of,
        .on_cut = on_cut,
        .on_route = on_route,
    };
    const engine_link_options_t options = {
        .input = &f->input,
        .output = &f->output,
        .ranks = ranks,
        .rank_count = 3,
        .heartbeat_interval_ms = 1000,
        .heartbeat_timeout_ms = 10000,
        .send_hwm = send_hwm,
        .faults = f->faults,
        .events = &events,
        .context = f,
    };
    return engine_link_new(&f->link, f->loop.loop, &options, error);
}

static inline int setup_at(void **state, const char *prefix, int send_hwm)
{
    fixture_t *f = calloc(1, sizeof *f);
    wg_error_t error;
    if (!f)
        return -1;
    test_loop_init(&f->loop);
    f->faults = faults_new();
    if (strcmp(prefix, "ipc://") == 0)
        strcpy(f->folder, "/tmp/wavegate-link-XXXXXX");
    if (!f->faults || (f->folder[0] && !mkdtemp(f->folder)))
        return -1;
    unsigned number = fresh_number();
    snprintf(f->input.bind, sizeof f->input.bind, "%s%s/input-%u", prefix, f->folder, number);
    snprintf(f->output.bind, sizeof f->output.bind, "%s%s/output-%u", prefix, f->folder, number);
    *state = f;
    return open_link(f, send_hwm, &error) == WG_OK ? 0 : -1;
}

/* Sending and arriving are one: what an engine has sent is there when the loop turns next. There is no
 * reconnecting, and no word of a closed connection but the sweep's. */
static inline int setup_inproc(void **state)
{
    return setup_at(state, "inproc://", PLENTY);
}

/* As in earnest: I/O threads, handshakes, monitor events. */
static inline int setup_ipc(void **state)
{
    return setup_at(state, "ipc://", PLENTY);
}

static inline void remove_socket(const config_endpoint_t *endpoint)
{
    char lock[WG_ADDRESS_SIZE + 8];
    const char *path = endpoint->bind + strlen("ipc://");
    snprintf(lock, sizeof lock, "%s.lock", path);
    unlink(lock);
    unlink(path);
}

static inline int teardown(void **state)
{
    fixture_t *f = *state;
    engine_link_destroy(&f->link);
    assert_null(f->link);
    engine_link_destroy(&f->link);
    test_loop_free(&f->loop);
    faults_destroy(&f->faults);
    text_buffer_free(&f->seen);
    if (f->folder[0]) {
        remove_socket(&f->input);
        remove_socket(&f->output);
        assert_int_equal(rmdir(f->folder), 0);
    }
    free(f);
    return 0;
}

/* --- engines --- */

static inline int on_request(zloop_t *loop, zsock_t *socket, void *context)
{
    (void)loop;
    engine_t *engine = context;
    message_t message = {0};
    while (message_receive(&message, socket)) {
        assert_int_equal(message.count, 2);
        assert_int_equal(message.frames[0].size, 1);
        wire_bytes_t payload = message.frames[1];
        bool probe =
            message.frames[0].data[0] == WIRE_REQUEST_ABORT && payload.size == 1 && payload.data[0] == 0x90;
        engine->fixture->probes += probe;
        if (!probe)
            see(engine->fixture, "%u got %02x %.*s; ", engine->rank, message.frames[0].data[0],
                (int)payload.size, (const char *)payload.data);
    }
    message_free(&message);
    return 0;
}

static inline zsock_t *dial(const config_endpoint_t *endpoint, int type, const void *id, size_t size)
{
    zsock_t *socket = zsock_new(type);
    assert_non_null(socket);
    zsock_set_linger(socket, 0);
    if (id)
        assert_int_equal(zmq_setsockopt(zsock_resolve(socket), ZMQ_ROUTING_ID, id, size), 0);
    assert_int_equal(zmq_connect(zsock_resolve(socket), endpoint->bind), 0);
    return socket;
}

static inline engine_t engine_of(fixture_t *f, uint32_t rank)
{
    wg_engine_id_t id;
    assert_int_equal(wg_engine_id_from_rank(&id, rank), WG_OK);
    return (engine_t){
        .fixture = f,
        .rank = rank,
        .input = dial(&f->input, ZMQ_DEALER, id.bytes, sizeof id.bytes),
        .output = dial(&f->output, ZMQ_PUSH, NULL, 0),
    };
}

/* What it gets from now on is seen. The engine must stay where it is. */
static inline void engine_listen(engine_t *engine)
{
    zloop_reader(engine->fixture->loop.loop, engine->input, on_request, engine);
}

static inline void engine_close(engine_t *engine)
{
    zloop_reader_end(engine->fixture->loop.loop, engine->input);
    zsock_destroy(&engine->input);
    zsock_destroy(&engine->output);
}

static inline void send_text(zsock_t *socket, const char *text)
{
    const wire_bytes_t frame = {(const uint8_t *)text, strlen(text)};
    assert_int_equal(message_send(socket, &frame, 1), 0);
}

#endif
