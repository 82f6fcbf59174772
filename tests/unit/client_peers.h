/* client_peers.h: those around the client in its tests: a coordinator and engines of plain ZMQ sockets, in
 * the client's own loop. What the requests see is one text, in order: "a +2; a end length; "; what the
 * engines get is another: "0 ADD a; 0 ABORT a; ". */
#ifndef WG_TESTS_CLIENT_PEERS_H
#define WG_TESTS_CLIENT_PEERS_H

#include "common/engine_id.h"
#include "common/message.h"
#include "common/text_buffer.h"
#include "common/wire_control.h"
#include "frontend/client.h"
#include "tests/unit/loop_fixture.h"
#include "tests/unit/memory_log.h"
#include "tests/unit/wire_frame.h"

enum { RANKS = 4, LETTERS = 26 };

typedef struct fixture fixture_t;

/* One rank's DEALER and PUSH. */
typedef struct {
    fixture_t *fixture;
    uint32_t rank;
    zsock_t *input; /* NULL: closed, and so is output */
    zsock_t *output;
} engine_t;

typedef struct {
    fixture_t *fixture;
    char id[2];
    char wire_id[16];        /* of its last ADD, as the engine got it */
    client_request_t *entry; /* NULL: not in flight */
    bool abort_on_output;    /* as a reader that leaves */
} request_t;

struct fixture {
    test_loop_t loop;
    char folder[64]; /* of the sockets */
    wg_config_t *config;
    faults_t *faults;
    client_t *client;
    zsock_t *coordinator;
    const char *refusal; /* the answer to a JOIN; NULL: the states of the ranks */
    wg_rank_state_t told[RANKS];
    int64_t tellings;
    engine_t engines[RANKS];
    request_t requests[LETTERS];
    frame_t add;        /* the payload of the last one */
    text_buffer_t seen; /* by the requests */
    text_buffer_t got;  /* by the engines */
    memory_log_t log;
    int64_t deadline_ms;
};

/* --- the story --- */

static inline const char *text_of(text_buffer_t *buffer)
{
    text_buffer_bytes(buffer, "", 1);
    buffer->size--;
    return buffer->data;
}

static inline bool has_seen(fixture_t *f, const char *text)
{
    return strstr(text_of(&f->seen), text) || strstr(text_of(&f->got), text);
}

static inline int on_tick(zloop_t *loop, int timer, void *context)
{
    (void)loop;
    (void)timer;
    test_loop_end(context);
    return 0;
}

static inline void turn(fixture_t *f, const char *awaited)
{
    if (zclock_mono() > f->deadline_ms)
        fail_msg("this did not come: %s\nseen: %s\ngot: %s", awaited, text_of(&f->seen), text_of(&f->got));
    zloop_timer(f->loop.loop, 1, 1, on_tick, &f->loop);
    test_loop_run(&f->loop);
}

/* The loop turns until it is so. */
#define UNTIL(f, condition)                                                                                  \
    do {                                                                                                     \
        while (!(condition))                                                                                 \
            turn(f, #condition);                                                                             \
    } while (0)

static inline void wait_for(fixture_t *f, const char *text)
{
    while (!has_seen(f, text))
        turn(f, text);
}

/* These two: that and nothing else since the last time. */
static inline void assert_seen(fixture_t *f, const char *expected)
{
    assert_string_equal(text_of(&f->seen), expected);
    text_buffer_clear(&f->seen);
}

static inline void assert_got(fixture_t *f, const char *expected)
{
    assert_string_equal(text_of(&f->got), expected);
    text_buffer_clear(&f->got);
}

/* --- the coordinator --- */

static inline void coordinator_send(fixture_t *f, msgpack_sbuffer *buffer)
{
    const wire_bytes_t frames[] = {{(const uint8_t *)"fe1", 3},
                                   {(const uint8_t *)buffer->data, buffer->size}};
    assert_int_equal(message_send(f->coordinator, frames, 2), 0);
    msgpack_sbuffer_destroy(buffer);
}

/* What it says of all ranks from now on. */
static inline void tell_ranks(fixture_t *f)
{
    wire_control_entry_t *entries = calloc(RANKS, sizeof *entries);
    assert_non_null(entries);
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        entries[rank] = (wire_control_entry_t){.rank = rank, .number = f->told[rank]};
    assert_int_equal(wire_control_encode_ranks(&buffer, ++f->tellings, entries, RANKS, NULL), WG_OK);
    free(entries);
    coordinator_send(f, &buffer);
}

static inline void answer_control(fixture_t *f, const wire_control_t *control)
{
    msgpack_sbuffer buffer;
    if (control->kind == WIRE_CONTROL_JOIN && !f->refusal) {
        tell_ranks(f);
        return;
    }
    msgpack_sbuffer_init(&buffer);
    if (control->kind == WIRE_CONTROL_JOIN)
        assert_int_equal(wire_control_encode_word(&buffer, WIRE_CONTROL_REFUSED, f->refusal, NULL), WG_OK);
    else
        assert_int_equal(wire_control_encode_heard(&buffer, f->tellings, NULL), WG_OK);
    coordinator_send(f, &buffer);
}

static inline int on_control(zloop_t *loop, zsock_t *socket, void *context)
{
    (void)loop;
    wire_control_t control;
    message_t message = {0};
    while (message_receive(&message, socket)) {
        assert_int_equal(message.count, 2);
        assert_int_equal(wire_control_decode(&control, message.frames[1].data, message.frames[1].size, NULL),
                         WG_OK);
        answer_control(context, &control);
    }
    message_free(&message);
    return 0;
}

/* --- engines --- */

static inline int compare_bytes(const void *left, const void *right)
{
    return *(const char *)left - *(const char *)right;
}

/* Only the letters, in order, for the order within one ABORT is nobody's. */
static inline void see_abort(const engine_t *engine, wire_bytes_t payload)
{
    wire_reader_t reader;
    wire_text_t id;
    uint32_t count = 0;
    char letters[LETTERS + 1] = "";
    wire_reader_init(&reader, payload.data, payload.size);
    assert_true(wire_reader_array(&reader, &count) && count <= LETTERS);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(wire_reader_text(&reader, &id));
        letters[i] = id.data[0];
    }
    qsort(letters, count, 1, compare_bytes);
    if (count > 0) /* else it is a probe */
        text_buffer_format(&engine->fixture->got, "%u ABORT %s; ", engine->rank, letters);
}

static inline void see_add(const engine_t *engine, wire_bytes_t payload)
{
    fixture_t *f = engine->fixture;
    wire_reader_t reader;
    wire_text_t id = {NULL, 0};
    uint32_t count;
    wire_reader_init(&reader, payload.data, payload.size);
    assert_true(wire_reader_array(&reader, &count) && wire_reader_text(&reader, &id));
    request_t *request = &f->requests[id.data[0] - 'a'];
    snprintf(request->wire_id, sizeof request->wire_id, "%.*s", (int)id.size, id.data);
    frame_free(&f->add);
    f->add = frame_of_bytes(payload.data, payload.size);
    text_buffer_format(&f->got, "%u ADD %s; ", engine->rank, request->id);
}

static inline void engine_says(fixture_t *f, uint32_t rank, const char *json);

/* A question: whether the engine hears us, and we it. */
static inline void answer(const engine_t *engine, wire_bytes_t payload)
{
    char json[96];
    wire_reader_t reader;
    uint32_t count;
    int64_t client_index = 0;
    int64_t call_id = 0;
    wire_reader_init(&reader, payload.data, payload.size);
    assert_true(wire_reader_array(&reader, &count) && wire_reader_int(&reader, &client_index) &&
                wire_reader_int(&reader, &call_id));
    snprintf(json, sizeof json, "[%u,[],null,0.0,[%lld,null,null]]", engine->rank, (long long)call_id);
    if (engine->output)
        engine_says(engine->fixture, engine->rank, json);
}

static inline int on_request(zloop_t *loop, zsock_t *socket, void *context)
{
    (void)loop;
    message_t message = {0};
    while (message_receive(&message, socket)) {
        assert_int_equal(message.count, 2);
        if (message.frames[0].data[0] == WIRE_REQUEST_ADD)
            see_add(context, message.frames[1]);
        else if (message.frames[0].data[0] == WIRE_REQUEST_ABORT)
            see_abort(context, message.frames[1]);
        else
            answer(context, message.frames[1]);
    }
    message_free(&message);
    return 0;
}

static inline zsock_t *dial(const char *address, int type, const void *id, size_t size)
{
    zsock_t *socket = zsock_new(type);
    assert_non_null(socket);
    zsock_set_linger(socket, 0);
    if (id)
        assert_int_equal(zmq_setsockopt(zsock_resolve(socket), ZMQ_ROUTING_ID, id, size), 0);
    assert_int_equal(zmq_connect(zsock_resolve(socket), address), 0);
    return socket;
}

static inline void engine_send(fixture_t *f, uint32_t rank, const void *data, size_t size)
{
    const wire_bytes_t frame = {data, size};
    assert_int_equal(message_send(f->engines[rank].output, &frame, 1), 0);
}

/* EngineCoreOutputs, as JSON with single quotes; $a stands for the wire id of request a. */
static inline void engine_says(fixture_t *f, uint32_t rank, const char *json)
{
    text_buffer_t text = {0};
    for (; *json; json++) {
        if (*json == '$')
            text_buffer_format(&text, "'%s'", f->requests[*++json - 'a'].wire_id);
        else
            text_buffer_bytes(&text, json, 1);
    }
    text_buffer_bytes(&text, "", 1);
    frame_t frame = frame_of_json(text.data);
    engine_send(f, rank, frame.data, frame.size);
    frame_free(&frame);
    text_buffer_free(&text);
}

static inline void engine_close_input(fixture_t *f, uint32_t rank)
{
    zloop_reader_end(f->loop.loop, f->engines[rank].input);
    zsock_destroy(&f->engines[rank].input);
}

static inline void engine_close(fixture_t *f, uint32_t rank)
{
    if (f->engines[rank].input)
        engine_close_input(f, rank);
    zsock_destroy(&f->engines[rank].output);
}

static inline uint32_t place_of(uint32_t rank)
{
    return rank == 3 ? 2 : rank;
}

static inline bool is_in(const fixture_t *f, uint32_t rank, wg_rank_state_t state)
{
    return dispatcher_state(client_dispatcher(f->client, place_of(rank))) == state;
}

/* The engine registers, with that max_model_len unless it is 0. The coordinator is silent about it. */
static inline void engine_open(fixture_t *f, uint32_t rank, int max_model_len)
{
    wg_engine_id_t id;
    char json[64];
    const config_frontend_t *frontend = wg_config_frontend(f->config, "fe1");
    assert_int_equal(wg_engine_id_from_rank(&id, rank), WG_OK);
    f->engines[rank] = (engine_t){
        .fixture = f,
        .rank = rank,
        .input = dial(frontend->input.address, ZMQ_DEALER, id.bytes, sizeof id.bytes),
        .output = dial(frontend->output.address, ZMQ_PUSH, NULL, 0),
    };
    zloop_reader(f->loop.loop, f->engines[rank].input, on_request, &f->engines[rank]);
    snprintf(json, sizeof json, max_model_len ? "{'max_model_len':%d}" : "{}", max_model_len);
    frame_t registration = frame_of_json(json);
    const wire_bytes_t frame = {registration.data, registration.size};
    assert_int_equal(message_send(f->engines[rank].input, &frame, 1), 0);
    frame_free(&registration);
}

/* The whole way to READY. */
static inline void bring_up_with(fixture_t *f, uint32_t rank, int max_model_len)
{
    engine_open(f, rank, max_model_len);
    UNTIL(f, client_joined(f->client) && is_in(f, rank, WG_RANK_HELLO));
    f->told[rank] = WG_RANK_READY;
    tell_ranks(f);
    UNTIL(f, is_in(f, rank, WG_RANK_READY));
}

static inline void bring_up(fixture_t *f, uint32_t rank)
{
    bring_up_with(f, rank, 100);
}

#endif
