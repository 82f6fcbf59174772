/* What only a whole frontend can meet: HTTP on one side, an engine on the other. The rest of generate is shown by
 * tests/integration/test_generate.py. */
#include "frontend/generation.h"
#include "tests/unit/client_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

enum { EVENT_TOKENS = 2000, MODEL_LEN = 1000000000, LAG_BYTES = 4096 };

/* It does not read before it is asked to. */
typedef struct {
    int fd;
    text_buffer_t received;
} reader_t;

typedef struct {
    fixture_t *client;
    generations_t *generations;
    http_server_t *server;
    reader_t reader;
} http_fixture_t;

static void on_generate(void *context, http_exchange_t *exchange)
{
    const http_fixture_t *f = context;
    generations_handle(f->generations, &generation_generate, exchange);
}

static int setup_http(void **state)
{
    static const http_route_t routes[] = {{.method = "POST", .path = "/generate", .handler = on_generate}};
    wg_error_t error;
    http_fixture_t *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    *state = f;
    if (setup((void **)&f->client) != 0)
        return -1;
    f->reader.fd = -1;
    const http_server_options_t options = {
        .listen = {.host = "127.0.0.1"},
        .max_body_bytes = 10000,
        .max_header_bytes = 8192,
        .max_headers = 100,
        .max_connections = 10,
        .routes = routes,
        .route_count = COUNT_OF(routes),
        .context = f,
    };
    bring_up_with(f->client, 0, MODEL_LEN);
    f->generations = generations_new(f->client->loop.loop, f->client->client, f->client->config);
    assert_non_null(f->generations);
    return http_server_new(&f->server, f->client->loop.loop, &options, &error) == WG_OK ? 0 : -1;
}

static int teardown_http(void **state)
{
    http_fixture_t *f = *state;
    close(f->reader.fd);
    text_buffer_free(&f->reader.received);
    http_server_destroy(&f->server);
    generations_destroy(&f->generations);
    int result = teardown((void **)&f->client);
    free(f);
    return result;
}

/* Connects, with little room for what it does not read, and sends the request. */
static void post(http_fixture_t *f, const char *type, const char *json)
{
    const int room = 4096;
    char request[512];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(http_server_port(f->server))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    f->reader.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(f->reader.fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    assert_int_equal(connect(f->reader.fd, (struct sockaddr *)&address, sizeof address), 0);
    char *body = json_text(json);
    int size = snprintf(request, sizeof request,
                        "POST /generate HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: %s\r\n"
                        "Content-Length: %zu\r\n\r\n%.*s",
                        type, strlen(json), (int)strlen(json), body);
    free(body);
    assert_int_equal(send(f->reader.fd, request, (size_t)size, MSG_NOSIGNAL), size);
}

/* All there is now. True at the end. */
static bool read_all(reader_t *reader)
{
    for (;;) {
        char *room = text_buffer_reserve(&reader->received, 65536);
        ssize_t size = recv(reader->fd, room, 65536, MSG_DONTWAIT);
        if (size <= 0)
            return size == 0 || errno != EAGAIN;
        reader->received.size += (size_t)size;
    }
}

static void test_a_body_that_is_no_json_is_an_unsupported_media_type(void **state)
{
    http_fixture_t *f = *state;
    post(f, "text/plain", "{'token_ids':[1],'sampling_params':{'max_tokens':1}}");
    UNTIL(f->client, read_all(&f->reader));
    const char *response = text_of(&f->reader.received);
    assert_memory_equal(response, "HTTP/1.1 415 ", 13);
    assert_non_null(
        strstr(response, "{\"error\":{\"message\":\"the content type must be application/json\","));
    assert_non_null(strstr(response, "\"code\":\"unsupported_media_type\"}}"));
    assert_int_equal(client_counters(f->client->client).accepted, 0);
}

/* One output of count tokens, numbered from first on; end: what follows in it. */
static void send_tokens(fixture_t *f, int first, int count, const char *end)
{
    text_buffer_t json = {0};
    text_buffer_text(&json, "[0,[[$a,[");
    for (int i = 0; i < count; i++)
        text_buffer_format(&json, i > 0 ? ",%d" : "%d", first + i);
    text_buffer_format(&json, "]%s]]]", end);
    text_buffer_bytes(&json, "", 1);
    engine_says(f, 0, json.data);
    text_buffer_free(&json);
}

/* The system takes some megabytes for a reader that does not read; what is beyond them waits here. */
static void test_a_reader_that_does_not_read_is_a_slow_consumer(void **state)
{
    http_fixture_t *f = *state;
    fixture_t *c = f->client;
    static const char beginning[] = "data: {\"error\":{\"message\":\"output of `a` was not read: ";
    post(f, "application/json",
         "{'request_id':'a','token_ids':[1],'stream':true,'sampling_params':{'max_tokens':900000000}}");
    wait_for(c, "0 ADD a; ");
    while (client_in_flight(c->client) > 0) {
        send_tokens(c, 0, EVENT_TOKENS, "");
        turn(c, "the end of the request");
    }
    assert_int_equal(client_counters(c->client).ended[CLIENT_SLOW_CONSUMER], 1);
    wait_for(c, "0 ABORT a; ");
    UNTIL(c, read_all(&f->reader));
    const char *at = strstr(text_of(&f->reader.received), "data: {\"error\"");
    assert_non_null(at);
    assert_memory_equal(at, beginning, strlen(beginning));
    unsigned long long queued = strtoull(at + strlen(beginning), NULL, 10);
    assert_true(queued > (unsigned long long)c->config->limits.max_stream_bytes);
    assert_non_null(strstr(at, " bytes queued, the limit\""));
    assert_non_null(strstr(at, "\"code\":\"slow_consumer\"}}\n\ndata: [DONE]\n\n"));
}

static size_t buffered(const http_fixture_t *f)
{
    http_server_stats_t stats;
    http_server_stats(f->server, &stats);
    return stats.buffered_bytes;
}

/* Not only until the system has taken what was written just now. */
static bool lags(http_fixture_t *f)
{
    for (int i = 0; i < 5; i++) {
        turn(f->client, "a reader that lags");
        if (buffered(f) < LAG_BYTES)
            return false;
    }
    return true;
}

/* Every number from 0 to end - 1, in the order of the events, and how many events hold any. */
static int count_events(const char *response, int end)
{
    int next = 0;
    int events = 0;
    const char *at = response;
    while ((at = strstr(at, "\"token_ids\":[")) != NULL) {
        at += strlen("\"token_ids\":[");
        events += *at != ']';
        for (; *at != ']'; at += *at == ',') {
            char *behind;
            assert_int_equal(strtol(at, &behind, 10), next++);
            at = behind;
        }
    }
    assert_int_equal(next, end);
    return events;
}

/* libmicrohttpd frames each piece of a stream; without the frames it is one text. */
static char *text_of_chunks(const char *response)
{
    const char *at = strstr(response, "\r\n\r\n") + 4;
    char *out = calloc(1, strlen(at) + 1);
    char *behind;
    size_t size;
    assert_non_null(out);
    while ((size = strtoul(at, &behind, 16)) > 0) {
        strncat(out, behind + 2, size);
        at = behind + 2 + size + 2;
    }
    return out;
}

static void test_what_waits_for_a_reader_that_lags_is_one_event(void **state)
{
    enum { LATER = 50 };
    http_fixture_t *f = *state;
    fixture_t *c = f->client;
    int sent = 0;
    int outputs = 0;
    c->config->limits.max_stream_bytes = 1 << 30;
    post(f, "application/json",
         "{'request_id':'a','token_ids':[1],'stream':true,'sampling_params':{'max_tokens':900000000}}");
    wait_for(c, "0 ADD a; ");
    for (; !lags(f); sent += EVENT_TOKENS, outputs++)
        send_tokens(c, sent, EVENT_TOKENS, "");
    for (int i = 0; i < LATER; i++, sent += 3)
        send_tokens(c, sent, 3, i + 1 < LATER ? "" : ",null,null,null,0");
    UNTIL(c, client_in_flight(c->client) == 0);
    UNTIL(c, read_all(&f->reader));
    char *text = text_of_chunks(text_of(&f->reader.received));
    assert_in_range(count_events(text, sent), 1, outputs + LATER / 2);
    assert_non_null(strstr(text, "],\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"));
    free(text);
}

/* Not only the end: what waits goes out as soon as there is room again. */
static void test_a_reader_that_catches_up_gets_what_has_waited(void **state)
{
    http_fixture_t *f = *state;
    fixture_t *c = f->client;
    int sent = 0;
    c->config->limits.max_stream_bytes = 1 << 30;
    post(f, "application/json",
         "{'request_id':'a','token_ids':[1],'stream':true,'sampling_params':{'max_tokens':900000000}}");
    wait_for(c, "0 ADD a; ");
    for (; !lags(f); sent += EVENT_TOKENS)
        send_tokens(c, sent, EVENT_TOKENS, "");
    for (int i = 0; i < 10; i++, sent += 3)
        send_tokens(c, sent, 3, "");
    engine_says(c, 0, "[0,[['nobody-00000000',[1]]]]"); /* what was sent before it has arrived, too */
    UNTIL(c, client_counters(c->client).orphan_outputs == 1);
    char last[32];
    snprintf(last, sizeof last, ",%d]", sent - 1);
    UNTIL(c, !read_all(&f->reader) && strstr(text_of(&f->reader.received), last));
    assert_int_equal(client_in_flight(c->client), 1);
    char *text = text_of_chunks(text_of(&f->reader.received));
    count_events(text, sent);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_body_that_is_no_json_is_an_unsupported_media_type, setup_http,
                                        teardown_http),
        cmocka_unit_test_setup_teardown(test_a_reader_that_does_not_read_is_a_slow_consumer, setup_http,
                                        teardown_http),
        cmocka_unit_test_setup_teardown(test_what_waits_for_a_reader_that_lags_is_one_event, setup_http,
                                        teardown_http),
        cmocka_unit_test_setup_teardown(test_a_reader_that_catches_up_gets_what_has_waited, setup_http,
                                        teardown_http),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
