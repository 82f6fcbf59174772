/* The handshake's messages: those of engines as msgspec encodes them, INIT byte for byte as msgspec would. */
#include "common/wire_handshake.h"

#include "tests/unit/golden/client_vectors.h"
#include "tests/unit/golden/engine_vectors.h"
#include "tests/unit/wire_frame.h"

static const char type[] = "HandshakeMessage";

static wg_status_t decode(const void *data, size_t size, wg_error_t *error)
{
    wire_handshake_t out;
    return wire_handshake_decode(&out, data, size, error);
}

/* --- what engines send --- */

static void assert_message(const void *data, size_t size, wire_handshake_kind_t kind, const char *hash)
{
    wire_handshake_t out;
    wg_error_t error;
    frame_t frame = frame_of_bytes(data, size);
    if (wire_handshake_decode(&out, frame.data, frame.size, &error) != WG_OK)
        fail_msg("refused: %s", error.message);
    assert_int_equal(out.kind, kind);
    if (hash)
        assert_true(wire_text_is(out.parallel_config_hash, hash));
    else
        assert_null(out.parallel_config_hash.data);
    frame_free(&frame);
}

static void assert_json(const char *json, wire_handshake_kind_t kind, const char *hash)
{
    frame_t frame = frame_of_json(json);
    assert_message(frame.data, frame.size, kind, hash);
    frame_free(&frame);
}

static void test_the_messages_of_an_engine_are_read(void **state)
{
    (void)state;
    assert_message(golden_hello, sizeof golden_hello, WIRE_HANDSHAKE_HELLO, NULL);
    assert_message(golden_ready, sizeof golden_ready, WIRE_HANDSHAKE_READY, NULL);
    assert_message(golden_ready_with_hash, sizeof golden_ready_with_hash, WIRE_HANDSHAKE_READY, "a5f3c0de");
}

static void test_only_the_status_is_needed(void **state)
{
    (void)state;
    assert_json("{'status':'HELLO'}", WIRE_HANDSHAKE_HELLO, NULL);
    assert_json("{'status':'READY'}", WIRE_HANDSHAKE_READY, NULL);
    assert_json("{'local':true,'headless':false,'status':'READY'}", WIRE_HANDSHAKE_READY, NULL);
}

static void test_a_nil_hash_is_none_and_an_empty_one_is_empty(void **state)
{
    (void)state;
    assert_json("{'status':'READY','parallel_config_hash':null}", WIRE_HANDSHAKE_READY, NULL);
    assert_json("{'status':'READY','parallel_config_hash':''}", WIRE_HANDSHAKE_READY, "");
}

static void test_unknown_keys_are_passed_over(void **state)
{
    (void)state;
    assert_json("{'later':[1,{'a':[2.5,null]}],'status':'HELLO','':{},'Status':'READY','more':'x'}",
                WIRE_HANDSHAKE_HELLO, NULL);
}

static void test_malformed_messages_are_refused(void **state)
{
    (void)state;
    static const frame_refusal_t refusals[] = {
        {RAW(""), 0, "the frame ends too early"},
        {JSON("null"), 0, "not a map"},
        {JSON("'HELLO'"), 0, "not a map"},
        {JSON("['status','HELLO']"), 0, "not a map"},
        {JSON("{}"), 1, "no status"},
        {JSON("{'local':true}"), 8, "no status"},
        {JSON("{'Status':'HELLO'}"), 14, "no status"},
        {JSON("{'status':'hello'}"), 14, "a status that is neither HELLO nor READY"},
        {JSON("{'status':''}"), 9, "a status that is neither HELLO nor READY"},
        {JSON("{'status':'HELLO\\u0000'}"), 15, "a status that is neither HELLO nor READY"},
        {JSON("{'status':null}"), 8, "not a string"},
        {JSON("{'status':1}"), 8, "not a string"},
        {JSON("{'status':['HELLO']}"), 8, "not a string"},
        {JSON("{'local':1,'status':'HELLO'}"), 7, "not a boolean"},
        {JSON("{'headless':'true','status':'HELLO'}"), 10, "not a boolean"},
        {JSON("{'headless':null,'status':'HELLO'}"), 10, "not a boolean"},
        {JSON("{'parallel_config_hash':7,'status':'READY'}"), 22, "not a string"},
        {RAW("\x81\x01\xa5HELLO"), 1, "not a string"},
        {RAW("\x81\xc4\x06status\xa5HELLO"), 1, "not a string"},
        {RAW("\x81\xa6status\xc4\x05HELLO"), 8, "not a string"},
        {RAW("\x81\xa6status\xa5HELLO\xc0"), 14, "bytes are left over"},
        {RAW("\x82\xa6status\xa5HELLO\xa5local"), 20, "the frame ends too early"},
        {RAW("\x81\xa6status\xa5HELL\xff"), 14, "a string that is not UTF-8"},
        {RAW("\x82\xa1k\xc1\xa6status\xa5HELLO"), 3, "not MessagePack (byte c1)"},
    };
    assert_frames_refused(decode, type, refusals, COUNT_OF(refusals));
}

static void test_no_part_of_a_message_is_a_message(void **state)
{
    (void)state;
    assert_truncations_refused(decode, type, golden_hello, sizeof golden_hello, 0);
    assert_truncations_refused(decode, type, golden_ready_with_hash, sizeof golden_ready_with_hash, 0);
}

static void test_damage_does_no_harm(void **state)
{
    (void)state;
    assert_survives_damage(decode, golden_ready_with_hash, sizeof golden_ready_with_hash);
}

/* --- INIT --- */

static uint32_t rank_0[] = {0};
static int64_t ports[] = {29601, 29602, 29603};
static config_frontend_t frontends[] = {
    {.ranks = rank_0,
     .rank_count = 1,
     /* what is bound must not be told */
     .input = {.address = "ipc:///tmp/wg/fe0-input", .bind = "tcp://*:1"},
     .output = {.address = "ipc:///tmp/wg/fe0-output", .bind = "tcp://*:2"}},
};

static wg_config_t independent(void)
{
    return (wg_config_t){
        .ranks.count = 2,
        .coordinator = {.input = {.address = "tcp://127.0.0.1:29555", .bind = "tcp://*:29555"},
                        .output = {.address = "tcp://127.0.0.1:29556", .bind = "tcp://*:29556"}},
        .frontends = frontends,
        .frontend_count = 1,
    };
}

static wg_config_t lockstep(void)
{
    static char master_ip[] = "10.0.0.1";
    wg_config_t config = independent();
    config.ranks.lockstep = true;
    config.ranks.master_ip = master_ip;
    config.ranks.master_port = 29600;
    config.ranks.master_ports = ports;
    config.ranks.master_port_count = COUNT_OF(ports);
    strcpy(config.coordinator.engine_publish.address, "tcp://127.0.0.1:29551");
    strcpy(config.coordinator.engine_output.address, "tcp://127.0.0.1:29552");
    strcpy(config.coordinator.frontend_publish.address, "tcp://127.0.0.1:29553");
    return config;
}

static void assert_init(const wg_config_t *config, uint32_t rank, const void *expected, size_t size)
{
    msgpack_sbuffer buffer;
    wg_error_t error;
    msgpack_sbuffer_init(&buffer);
    msgpack_sbuffer_write(&buffer, "before", 6); /* it appends */
    assert_int_equal(wire_init_encode(&buffer, config, rank, &error), WG_OK);
    assert_int_equal(buffer.size, 6 + size);
    assert_memory_equal(buffer.data, "before", 6);
    assert_memory_equal(buffer.data + 6, expected, size);
    msgpack_sbuffer_destroy(&buffer);
}

static void test_init_of_a_rank_that_only_the_slot_serves(void **state)
{
    (void)state;
    wg_config_t config = independent();
    assert_init(&config, 1, golden_init_one_client, sizeof golden_init_one_client);
}

static void test_init_lists_the_slot_and_then_the_frontends(void **state)
{
    (void)state;
    wg_config_t config = independent();
    assert_init(&config, 0, golden_init_two_clients, sizeof golden_init_two_clients);
}

static void test_init_of_a_lockstep_group(void **state)
{
    (void)state;
    wg_config_t config = lockstep();
    assert_init(&config, 0, golden_init_lockstep, sizeof golden_init_lockstep);
}

/* The order of the file, so that an index means the same to both sides (rank_map.h). */
static void test_the_order_of_the_frontends_is_that_of_the_file(void **state)
{
    (void)state;
    static uint32_t both[] = {0, 1};
    static config_frontend_t three[] = {
        {.ranks = both, .rank_count = 2, .input.address = "in-a", .output.address = "out-a"},
        {.ranks = rank_0, .rank_count = 1, .input.address = "in-b", .output.address = "out-b"},
        {.ranks = both, .rank_count = 2, .input.address = "in-c", .output.address = "out-c"},
    };
    wg_config_t config = {
        .ranks.count = 2,
        .coordinator = {.input.address = "in-slot", .output.address = "out-slot"},
        .frontends = three,
        .frontend_count = 3,
    };
    frame_t of_0 = frame_of_json("{'addresses':{'inputs':['in-slot','in-a','in-b','in-c'],"
                                 "'outputs':['out-slot','out-a','out-b','out-c'],'coordinator_input':null,"
                                 "'coordinator_output':null,'frontend_stats_publish_address':null},"
                                 "'parallel_config':{}}");
    frame_t of_1 = frame_of_json("{'addresses':{'inputs':['in-slot','in-a','in-c'],"
                                 "'outputs':['out-slot','out-a','out-c'],'coordinator_input':null,"
                                 "'coordinator_output':null,'frontend_stats_publish_address':null},"
                                 "'parallel_config':{}}");
    assert_init(&config, 0, of_0.data, of_0.size);
    assert_init(&config, 1, of_1.data, of_1.size);
    frame_free(&of_0);
    frame_free(&of_1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_messages_of_an_engine_are_read),
        cmocka_unit_test(test_only_the_status_is_needed),
        cmocka_unit_test(test_a_nil_hash_is_none_and_an_empty_one_is_empty),
        cmocka_unit_test(test_unknown_keys_are_passed_over),
        cmocka_unit_test(test_malformed_messages_are_refused),
        cmocka_unit_test(test_no_part_of_a_message_is_a_message),
        cmocka_unit_test(test_damage_does_no_harm),
        cmocka_unit_test(test_init_of_a_rank_that_only_the_slot_serves),
        cmocka_unit_test(test_init_lists_the_slot_and_then_the_frontends),
        cmocka_unit_test(test_init_of_a_lockstep_group),
        cmocka_unit_test(test_the_order_of_the_frontends_is_that_of_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
