/* Every way to fail has its own name and code, and its message is filled in. */
#include "common/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void every_status_has_its_own_name_and_code(void **state)
{
    (void)state;
    for (int i = 0; i < WG_STATUS_COUNT; i++) {
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(wg_status_name((wg_status_t)i), wg_status_name((wg_status_t)k));
            assert_string_not_equal(wg_status_code((wg_status_t)i), wg_status_code((wg_status_t)k));
        }
        assert_string_not_equal(wg_status_name((wg_status_t)i), "Unknown");
    }
}

/* "NoRankReady" is "no_rank_ready". */
static void a_code_is_the_name_in_snake_case(void **state)
{
    (void)state;
    for (int i = 0; i < WG_STATUS_COUNT; i++) {
        char code[64];
        size_t size = 0;
        for (const char *at = wg_status_name((wg_status_t)i); *at; at++) {
            if (isupper((unsigned char)*at) && size > 0)
                code[size++] = '_';
            code[size++] = (char)tolower((unsigned char)*at);
        }
        code[size] = '\0';
        assert_string_equal(wg_status_code((wg_status_t)i), code);
    }
}

static void the_type_follows_from_the_http_status(void **state)
{
    (void)state;
    assert_int_equal(wg_status_http(WG_OK), 200);
    for (int i = WG_OK + 1; i < WG_STATUS_COUNT; i++) {
        int http = wg_status_http((wg_status_t)i);
        const char *type = wg_status_type((wg_status_t)i);
        assert_true(http == 0 || (http >= 400 && http <= 599));
        if (http >= 500)
            assert_string_equal(type, WG_TYPE_SERVER);
        else if (http == 429)
            assert_string_equal(type, WG_TYPE_OVERLOAD);
        else if (http != 0 && http != 499)
            assert_string_equal(type, WG_TYPE_REQUEST);
    }
}

static void a_value_outside_the_enum_is_unknown(void **state)
{
    (void)state;
    static const int values[] = {WG_STATUS_COUNT, WG_STATUS_COUNT + 1, -1};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        int value = values[i];
        wg_status_t status;
        memcpy(&status, &value, sizeof status);
        assert_string_equal(wg_status_name(status), "Unknown");
        assert_string_equal(wg_status_code(status), "unknown");
        assert_string_equal(wg_status_type(status), WG_TYPE_SERVER);
        assert_int_equal(wg_status_http(status), 500);
    }
}

#define ASSERT_FAILS(constant, text, ...)                                                                    \
    do {                                                                                                     \
        wg_error_t error = {.param = "left over"};                                                           \
        assert_int_equal(WG_FAIL(&error, constant, __VA_ARGS__), WG_E_##constant);                           \
        assert_int_equal(error.status, WG_E_##constant);                                                     \
        assert_string_equal(error.message, text);                                                            \
        assert_string_equal(error.param, "");                                                                \
        assert_int_equal(WG_FAIL(NULL, constant, __VA_ARGS__), WG_E_##constant);                             \
    } while (0)

static void the_message_of_a_request_is_filled_in(void **state)
{
    (void)state;
    ASSERT_FAILS(INVALID_DATA_PARALLEL_RANK,
                 "data parallel rank 7 is not connected to this frontend; connected ranks: [0, 1]", "7",
                 "0, 1");
    ASSERT_FAILS(DUPLICATE_REQUEST_ID, "request `a` is already in flight", "a");
    ASSERT_FAILS(UNSUPPORTED_FIELD, "unsupported field `n` in sampling_params", "n", "sampling_params");
    ASSERT_FAILS(INVALID_REQUEST, "top_p: must be in (0, 1]", "top_p", "must be in (0, 1]");
    ASSERT_FAILS(MODEL_NOT_FOUND, "the model `m` does not exist", "m");
    ASSERT_FAILS(ROUTE_NOT_FOUND, "there is nothing at `/x`", "/x");
    ASSERT_FAILS(METHOD_NOT_ALLOWED, "`PUT` is not allowed on `/x`; use GET", "PUT", "/x", "GET");
    ASSERT_FAILS(BODY_TOO_LARGE, "the request body is larger than the limit of 9 bytes", (size_t)9);
    ASSERT_FAILS(HEADER_TOO_LARGE, "the request's line and headers exceed the limit of 8192 bytes",
                 (size_t)8192, "bytes");
    ASSERT_FAILS(REQUEST_TIMEOUT, "the request's body did not arrive within 50 ms", "body", 50LL);
    ASSERT_FAILS(UNSUPPORTED_MEDIA_TYPE, "the content type must be application/json", "application/json");
    ASSERT_FAILS(OVERLOADED, "4096 requests are in flight, the limit; retry later", (size_t)4096);
    ASSERT_FAILS(NO_RANK_READY, "no data parallel rank is ready (0: lost)", "0: lost");
    ASSERT_FAILS(REQUEST_STREAM_CLOSED, "request output stream for `a` closed unexpectedly", "a");
    ASSERT_FAILS(ENGINE_REQUEST_ERROR, "engine reported an internal error for `a` (finish reason 3)", "a");
    ASSERT_FAILS(REQUEST_ABORTED, "request `a` was aborted: by its client", "a", "by its client");
    ASSERT_FAILS(SLOW_CONSUMER, "output of `a` was not read: 5 bytes queued, the limit", "a", (size_t)5);
    ASSERT_FAILS(DEADLINE_EXCEEDED, "request `a` exceeded its deadline of 10 ms", "a", 10LL);
}

static void the_message_of_a_peer_is_filled_in(void **state)
{
    (void)state;
    ASSERT_FAILS(ENGINE_CORE_DEAD, "engine core of rank 3 reported fatal failure", 3u);
    ASSERT_FAILS(DISPATCHER_CLOSED, "engine-core output dispatcher of rank 3 closed: lost", 3u, "lost");
    ASSERT_FAILS(CLIENT_CLOSED, "engine-core client is closed: stopped", "stopped");
    ASSERT_FAILS(CONTROL_CLOSED, "engine control channel closed unexpectedly: gone", "gone");
    ASSERT_FAILS(UTILITY_CALL_FAILED, "utility call `sleep` failed (call_id=9, rank=1): no", "sleep", 9ULL,
                 1u, "no");
    ASSERT_FAILS(UTILITY_RESULT_DECODE,
                 "utility call `sleep` returned an invalid result (call_id=9, rank=1): no", "sleep", 9ULL, 1u,
                 "no");
    ASSERT_FAILS(UTILITY_CALL_CLOSED, "utility call `sleep` closed unexpectedly (call_id=9, rank=1)", "sleep",
                 9ULL, 1u);
    ASSERT_FAILS(UTILITY_CALL_TIMEOUT, "utility call `sleep` got no answer from ranks [1] in 5 ms", "sleep",
                 "1", 5LL);
    ASSERT_FAILS(INCONSISTENT_UTILITY_RESULTS,
                 "utility call `is_sleeping` returned inconsistent results across ranks: 0: true, 1: false",
                 "is_sleeping", "0: true, 1: false");
    ASSERT_FAILS(HANDSHAKE_TIMEOUT,
                 "startup handshake timed out while waiting for READY of ranks [1] after 5 s", "READY", "1",
                 5LL);
    ASSERT_FAILS(INPUT_REGISTRATION_TIMEOUT, "no input registration from ranks [1] after 5 s", "1", 5LL);
    ASSERT_FAILS(UNEXPECTED_HANDSHAKE_IDENTITY, "unexpected engine id in startup handshake: 0900: outside",
                 "0900", "outside");
    ASSERT_FAILS(UNEXPECTED_HANDSHAKE_MESSAGE,
                 "unexpected startup handshake message from rank 2: second HELLO", 2u, "second HELLO");
    ASSERT_FAILS(UNSUPPORTED_COORDINATOR_ENGINE_ID, "coordinator requires a two-byte engine id, got 00",
                 "00");
    ASSERT_FAILS(UNEXPECTED_COORDINATOR_OUTPUT,
                 "unexpected non-control output on coordinator path from rank 2: outputs", 2u, "outputs");
    ASSERT_FAILS(UNEXPECTED_DISPATCHER_OUTPUT, "unexpected output on dispatcher path of rank 2: wave", 2u,
                 "wave");
    ASSERT_FAILS(UNSUPPORTED_AUX_FRAMES, "unsupported auxiliary frame(s): two", "two");
    ASSERT_FAILS(ENCODE, "messagepack encode failed for ADD: memory", "ADD", "memory");
    ASSERT_FAILS(DECODE, "messagepack decode failed for ADD at byte 4: short", "ADD", (size_t)4, "short");
    ASSERT_FAILS(CONFIG, "f.cfg:3: ranks.count: is required", "f.cfg", 3, "ranks.count", "is required");
    ASSERT_FAILS(SYSTEM, "bind: in use", "bind", "in use");
}

static void a_message_without_a_hole_is_kept(void **state)
{
    (void)state;
    wg_error_t error = {0};
    assert_int_equal(wg_error_format(&error, WG_E_DRAINING, WG_E_DRAINING_FORMAT), WG_E_DRAINING);
    assert_string_equal(error.message, "this frontend is shutting down");
}

/* The bytes behind the struct must stay as they are. */
typedef struct {
    wg_error_t error;
    char guard[64];
} guarded_error_t;

static void fill_guard(guarded_error_t *guarded)
{
    memset(guarded, 0x5a, sizeof *guarded);
}

static void assert_guard(const guarded_error_t *guarded)
{
    char expected[sizeof guarded->guard];
    memset(expected, 0x5a, sizeof expected);
    assert_memory_equal(guarded->guard, expected, sizeof expected);
}

static void a_long_message_is_cut(void **state)
{
    (void)state;
    char id[4096];
    memset(id, 'x', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    guarded_error_t guarded;
    fill_guard(&guarded);
    assert_int_equal(WG_FAIL(&guarded.error, DUPLICATE_REQUEST_ID, id), WG_E_DUPLICATE_REQUEST_ID);
    assert_int_equal(strlen(guarded.error.message), sizeof guarded.error.message - 1);
    assert_memory_equal(guarded.error.message, "request `xxx", 12);
    assert_guard(&guarded);
}

static void an_invalid_field_names_it(void **state)
{
    (void)state;
    wg_error_t error = {0};
    assert_int_equal(wg_invalid_field(&error, "top_p", "%.1f is not in (0, 1]", 1.5), WG_E_INVALID_REQUEST);
    assert_int_equal(error.status, WG_E_INVALID_REQUEST);
    assert_string_equal(error.param, "top_p");
    assert_string_equal(error.message, "top_p: 1.5 is not in (0, 1]");
    assert_int_equal(wg_invalid_field(NULL, "top_p", "no"), WG_E_INVALID_REQUEST);
}

static void a_long_invalid_field_is_cut(void **state)
{
    (void)state;
    char text[1024];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    guarded_error_t guarded;
    fill_guard(&guarded);
    assert_int_equal(wg_invalid_field(&guarded.error, text, "%s", text), WG_E_INVALID_REQUEST);
    assert_int_equal(strlen(guarded.error.param), sizeof guarded.error.param - 1);
    assert_int_equal(strlen(guarded.error.message), sizeof guarded.error.message - 1);
    assert_guard(&guarded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_own_name_and_code),
        cmocka_unit_test(a_code_is_the_name_in_snake_case),
        cmocka_unit_test(the_type_follows_from_the_http_status),
        cmocka_unit_test(a_value_outside_the_enum_is_unknown),
        cmocka_unit_test(the_message_of_a_request_is_filled_in),
        cmocka_unit_test(the_message_of_a_peer_is_filled_in),
        cmocka_unit_test(a_message_without_a_hole_is_kept),
        cmocka_unit_test(a_long_message_is_cut),
        cmocka_unit_test(an_invalid_field_names_it),
        cmocka_unit_test(a_long_invalid_field_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
