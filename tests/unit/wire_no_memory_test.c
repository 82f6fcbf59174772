/* What the encoders say without memory: a buffer that claims to be as large as no memory is cannot grow. */
#include "common/wire_control.h"
#include "common/wire_handshake.h"
#include "common/wire_publish.h"
#include "common/wire_request.h"
#include "tests/unit/wire_frame.h"

/* realloc is to fail, as it does without the sanitizers, which would end the test. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static msgpack_sbuffer full_buffer(void)
{
    size_t size = SIZE_MAX / 8;
    return (msgpack_sbuffer){.size = size, .alloc = size};
}

static void assert_encode_error(wg_status_t status, const wg_error_t *error, const char *type)
{
    char expected[128];
    snprintf(expected, sizeof expected, "messagepack encode failed for %s: out of memory", type);
    assert_int_equal(status, WG_E_ENCODE);
    assert_int_equal(error->status, WG_E_ENCODE);
    assert_string_equal(error->message, expected);
}

static void test_requests_are_not_encoded_without_memory(void **state)
{
    (void)state;
    static const wire_text_t id = {"a", 1};
    wire_add_t add = {.request_id = id, .prompt = {{(const uint8_t *)"\x01", 1}, 1}};
    wg_error_t error;
    msgpack_sbuffer buffer = full_buffer();
    wire_sampling_defaults(&add.sampling);
    assert_encode_error(wire_add_encode(&buffer, &add, &error), &error, "EngineCoreRequest");
    assert_encode_error(wire_abort_encode(&buffer, &id, 1, &error), &error, "ABORT");
    assert_int_equal(wire_abort_encode(&buffer, &id, 1, NULL), WG_E_ENCODE);
    assert_encode_error(wire_start_encode(&buffer, 1, &error), &error, "START_DP_WAVE");
    assert_encode_error(wire_utility_encode(&buffer, 1, 1, "sleep", &error), &error, "UTILITY");
    assert_int_equal(buffer.size, SIZE_MAX / 8); /* keeps what there was */
}

static void test_init_is_not_encoded_without_memory(void **state)
{
    (void)state;
    const wg_config_t config = {.ranks.count = 1};
    wg_error_t error;
    msgpack_sbuffer buffer = full_buffer();
    assert_encode_error(wire_init_encode(&buffer, &config, 0, &error), &error, "INIT");
}

static void test_a_publish_is_not_encoded_without_memory(void **state)
{
    (void)state;
    static const wire_load_t load = {0};
    wg_error_t error;
    msgpack_sbuffer buffer = full_buffer();
    assert_encode_error(wire_publish_encode(&buffer, &load, 1, 0, false, &error), &error, "publish");
}

static void test_control_messages_are_not_encoded_without_memory(void **state)
{
    (void)state;
    static const wire_control_entry_t entry = {.rank = 1};
    wg_error_t error;
    msgpack_sbuffer buffer = full_buffer();
    assert_encode_error(wire_control_encode_join(&buffer, 1, 0, &entry, 1, &error), &error, "JOIN");
    assert_encode_error(wire_control_encode_beat(&buffer, &entry, 1, &error), &error, "BEAT");
    assert_encode_error(wire_control_encode_ranks(&buffer, 1, &entry, 1, &error), &error, "RANKS");
    assert_encode_error(wire_control_encode_heard(&buffer, 1, &error), &error, "HEARD");
    assert_encode_error(wire_control_encode_word(&buffer, WIRE_CONTROL_REJOIN, NULL, &error), &error,
                        "REJOIN");
    assert_encode_error(wire_control_encode_word(&buffer, WIRE_CONTROL_REFUSED, "no", &error), &error,
                        "REFUSED");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_not_encoded_without_memory),
        cmocka_unit_test(test_init_is_not_encoded_without_memory),
        cmocka_unit_test(test_a_publish_is_not_encoded_without_memory),
        cmocka_unit_test(test_control_messages_are_not_encoded_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
