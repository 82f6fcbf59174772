/* client_fixture.h: a client with ranks 0, 1 and 3 of four, its peers (client_peers.h), and requests with ids of
 * one letter. */
#ifndef WG_TESTS_CLIENT_FIXTURE_H
#define WG_TESTS_CLIENT_FIXTURE_H

#include "tests/unit/client_peers.h"
#include "tests/unit/config_file.h"

/* @ stands for the folder of the sockets. Rank 2 is another frontend's; rank 0 has both. */
#define CLIENT_CONFIG                                                                                        \
    CONFIG_MODEL                                                                                             \
    "ranks = { count = 4; };\n"                                                                              \
    "coordinator = { handshake = \"ipc://@/handshake\"; control = \"ipc://@/control\";\n"                    \
    "  input = \"ipc://@/slot-input\"; output = \"ipc://@/slot-output\"; http = \"127.0.0.1:9000\"; };\n"    \
    "frontends = (\n"                                                                                        \
    "  { name = \"fe0\"; ranks = \"0,2\"; http = \"127.0.0.1:8000\";\n"                                      \
    "    input = \"ipc://@/other-input\"; output = \"ipc://@/other-output\"; },\n"                           \
    "  { name = \"fe1\"; ranks = \"0,1,3\"; http = \"127.0.0.1:8001\";\n"                                    \
    "    input = \"ipc://@/input\"; output = \"ipc://@/output\"; }\n"                                        \
    ");\n"                                                                                                   \
    "limits = { max_stream_bytes = 4096; };\n"

enum { MAX_IN_FLIGHT = 4 };

/* 5, 6, 7; and one of as many tokens as one wants, all of them 1 */
static const wire_prompt_t short_prompt = {{(const uint8_t *)"\x05\x06\x07", 3}, 3};

static inline wire_prompt_t long_prompt(frame_t *owner, uint16_t count)
{
    text_buffer_t text = {0};
    for (uint16_t i = 0; i < count; i++)
        text_buffer_bytes(&text, "\x01", 1);
    *owner = frame_of_bytes(text.data, text.size);
    text_buffer_free(&text);
    return (wire_prompt_t){{owner->data, owner->size}, count};
}

/* --- requests --- */

/* "a +2; ", or "a.1 +2; " for any but the first choice. */
static inline void on_output(void *user, uint32_t choice, const client_output_t *output)
{
    request_t *request = user;
    text_buffer_text(&request->fixture->seen, request->id);
    if (choice > 0)
        text_buffer_format(&request->fixture->seen, ".%u", choice);
    text_buffer_format(&request->fixture->seen, " +%u", output->wire->token_count);
    if (output->logprobs)
        text_buffer_format(&request->fixture->seen, " with %u rows", output->logprobs->positions);
    text_buffer_text(&request->fixture->seen, "; ");
    if (!request->abort_on_output)
        return;
    client_abort(request->fixture->client, request->entry, CLIENT_GONE);
    request->entry = NULL;
}

static inline void on_end(void *user, client_cause_t cause, const wg_error_t *error)
{
    request_t *request = user;
    text_buffer_t *out = &request->fixture->seen;
    assert_non_null(request->entry); /* else it has ended before */
    request->entry = NULL;
    text_buffer_format(out, "%s end %s", request->id, client_cause_name(cause));
    if (error)
        text_buffer_format(out, " %s: %s", wg_status_name(error->status), error->message);
    text_buffer_text(out, "; ");
}

/* Three tokens in, at most eight out, wherever there is room. */
static inline client_submission_t submission(void)
{
    static const client_field_names_t names = {"token_ids", "sampling_params.max_tokens",
                                               "sampling_params.min_tokens", "sampling_params.n"};
    client_submission_t out = {
        .prompts = &short_prompt, .prompt_count = 1, .choices_per_prompt = 1, .names = &names};
    wire_sampling_defaults(&out.sampling);
    out.sampling.max_tokens = 8;
    return out;
}

static inline client_submission_t submission_to(uint32_t rank)
{
    client_submission_t out = submission();
    out.pinned = true;
    out.rank = rank;
    return out;
}

static inline wg_status_t submit(fixture_t *f, char letter, client_submission_t what, wg_error_t *error)
{
    static const client_events_t events = {.on_output = on_output, .on_end = on_end};
    client_request_t *entry;
    request_t *request = &f->requests[letter - 'a'];
    what.id = (wire_text_t){request->id, 1};
    wg_status_t status = client_submit(f->client, &what, &events, request, &entry, error);
    if (status == WG_OK)
        request->entry = entry;
    else
        assert_null(entry);
    return status;
}

/* Accepted, and here at its engine; both texts begin after it. */
static inline void start_as(fixture_t *f, char letter, client_submission_t what)
{
    wg_error_t error = {0};
    char add[] = "ADD a; ";
    add[4] = letter;
    if (submit(f, letter, what, &error) != WG_OK)
        fail_msg("refused: %s", error.message);
    wait_for(f, add);
    text_buffer_clear(&f->seen);
    text_buffer_clear(&f->got);
}

static inline void start(fixture_t *f, char letter, uint32_t rank)
{
    start_as(f, letter, submission_to(rank));
}

static inline void abort_request(fixture_t *f, char letter, client_cause_t cause)
{
    request_t *request = &f->requests[letter - 'a'];
    client_abort(f->client, request->entry, cause);
    request->entry = NULL;
}

/* How long a state has lasted is nobody's test. */
static inline void hide_times(char *message)
{
    char *at = message;
    while ((at = strstr(at, " for ")) != NULL) {
        at += strlen(" for ");
        size_t digits = strspn(at, "0123456789");
        if (digits > 0) {
            *at = 'N';
            memmove(at + 1, at + digits, strlen(at + digits) + 1);
        }
    }
}

/* Refused, and nothing of it is left. */
static inline void assert_submit_refused(fixture_t *f, client_submission_t what, wg_status_t status,
                                         const char *message)
{
    wg_error_t error = {0};
    size_t in_flight = client_in_flight(f->client);
    uint64_t accepted = client_counters(f->client).accepted;
    assert_string_equal(wg_status_name(submit(f, 'z', what, &error)), wg_status_name(status));
    assert_int_equal(error.status, status);
    hide_times(error.message);
    assert_string_equal(error.message, message);
    assert_int_equal(client_in_flight(f->client), in_flight);
    assert_int_equal(client_counters(f->client).accepted, accepted);
}

static inline void assert_not_ready(const fixture_t *f, wg_status_t status, const char *message)
{
    wg_error_t error = {0};
    assert_int_equal(client_ready(f->client, &error), status);
    hide_times(error.message);
    assert_string_equal(error.message, message);
}

/* --- birth and death --- */

static inline wg_config_t *config_in(const char *folder)
{
    text_buffer_t text = {0};
    for (const char *at = CLIENT_CONFIG; *at; at++)
        text_buffer_bytes(&text, *at == '@' ? folder : at, *at == '@' ? strlen(folder) : 1);
    text_buffer_bytes(&text, "", 1);
    wg_config_t *config = config_of(text.data);
    text_buffer_free(&text);
    return config;
}

static inline int setup_limited(void **state, int64_t max_in_flight)
{
    fixture_t *f = calloc(1, sizeof *f);
    wg_error_t error;
    if (!f)
        return -1;
    *state = f;
    test_loop_init(&f->loop);
    memory_log_open(&f->log);
    strcpy(f->folder, "/tmp/wavegate-client-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->config = config_in(f->folder);
    f->config->limits.max_in_flight = max_in_flight;
    f->faults = faults_new();
    f->coordinator = zsock_new(ZMQ_ROUTER);
    zsock_set_linger(f->coordinator, 0);
    assert_int_equal(zmq_bind(zsock_resolve(f->coordinator), f->config->coordinator.control.address), 0);
    zloop_reader(f->loop.loop, f->coordinator, on_control, f);
    for (int i = 0; i < LETTERS; i++)
        f->requests[i] = (request_t){.fixture = f, .id = {(char)('a' + i)}};
    f->deadline_ms = zclock_mono() + LOOP_SAFETY_MS;
    return client_new(&f->client, f->loop.loop, f->config, wg_config_frontend(f->config, "fe1"), f->faults,
                      &error) == WG_OK
               ? 0
               : -1;
}

static inline int setup(void **state)
{
    return setup_limited(state, MAX_IN_FLIGHT);
}

static inline void remove_folder(const char *folder)
{
    static const char *const names[] = {"control", "input", "input.lock", "output", "output.lock"};
    char path[128];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

static inline int teardown(void **state)
{
    fixture_t *f = *state;
    client_destroy(&f->client);
    assert_null(f->client);
    client_destroy(&f->client);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        engine_close(f, rank);
    zloop_reader_end(f->loop.loop, f->coordinator);
    zsock_destroy(&f->coordinator);
    test_loop_free(&f->loop);
    memory_log_close(&f->log);
    faults_destroy(&f->faults);
    wg_config_destroy(&f->config);
    text_buffer_free(&f->seen);
    text_buffer_free(&f->got);
    frame_free(&f->add);
    remove_folder(f->folder);
    free(f);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
