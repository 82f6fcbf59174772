/* What engines send to the coordinator, over a real socket: sound reports come through, everything else is
 * counted and said, and ends nothing. */
#include "coordinator/engine_reports.h"

#include "common/message.h"
#include "tests/unit/loop_fixture.h"
#include "tests/unit/memory_log.h"
#include "tests/unit/wire_frame.h"

typedef struct {
    test_loop_t loop;
    memory_log_t log;
    wg_config_t config;
    faults_t *faults;
    engine_reports_t *reports;
    zsock_t *engine;
    int count; /* of reports that came through */
    uint32_t rank;
    bool has_stats;
    wire_stats_t stats;
    int64_t wave; /* completed; -1: none */
    int64_t start;
} fixture_t;

static void on_report(void *context, const wire_outputs_t *report)
{
    fixture_t *f = context;
    f->count++;
    f->rank = report->engine_index;
    f->has_stats = report->has_stats;
    f->stats = report->stats;
    f->wave = report->has_wave_complete ? report->wave_complete : -1;
    f->start = report->has_start_wave ? report->start_wave : -1;
    test_loop_end(&f->loop);
}

/* inproc: what was sent is there when the loop turns next. */
static int setup_with(void **state, bool lockstep)
{
    fixture_t *f = calloc(1, sizeof *f);
    wg_error_t error;
    if (!f)
        return -1;
    *state = f;
    test_loop_init(&f->loop);
    memory_log_open(&f->log);
    f->faults = faults_new();
    f->config.ranks.count = 4;
    f->config.ranks.lockstep = lockstep;
    snprintf(f->config.coordinator.engine_output.bind, WG_ADDRESS_SIZE, "inproc://reports-%u",
             fresh_number());
    if (engine_reports_new(&f->reports, f->loop.loop, &f->config, f->faults, on_report, f, &error) != WG_OK)
        return -1;
    f->engine = zsock_new(ZMQ_PUSH);
    zsock_set_linger(f->engine, 0);
    return zmq_connect(zsock_resolve(f->engine), f->config.coordinator.engine_output.bind);
}

static int setup(void **state)
{
    return setup_with(state, false);
}

static int setup_lockstep(void **state)
{
    return setup_with(state, true);
}

static int teardown(void **state)
{
    fixture_t *f = *state;
    zsock_destroy(&f->engine);
    engine_reports_destroy(&f->reports);
    assert_null(f->reports);
    engine_reports_destroy(&f->reports);
    test_loop_free(&f->loop);
    memory_log_close(&f->log);
    faults_destroy(&f->faults);
    free(f);
    return 0;
}

static void send_json(fixture_t *f, const char *json)
{
    frame_t frame = frame_of_json(json);
    const wire_bytes_t bytes = {frame.data, frame.size};
    assert_int_equal(message_send(f->engine, &bytes, 1), 0);
    frame_free(&frame);
}

static void assert_comes_through(fixture_t *f, const char *json)
{
    int before = f->count;
    send_json(f, json);
    test_loop_run(&f->loop);
    assert_int_equal(f->count, before + 1);
}

/* A sound report behind it shows that it was read. */
static void assert_counted(fixture_t *f, wg_status_t status, const char *logged)
{
    uint64_t before = faults_count(f->faults, FAULTS_ENGINE_OUTPUT, status);
    assert_comes_through(f, "[3]");
    assert_int_equal(f->rank, 3);
    assert_int_equal(faults_count(f->faults, FAULTS_ENGINE_OUTPUT, status), before + 1);
    assert_logged_once(&f->log, logged);
}

/* --- sound --- */

static void test_a_report_of_queues_comes_through(void **state)
{
    fixture_t *f = *state;
    assert_comes_through(f, "[2,[],{'num_running_reqs':5,'num_waiting_reqs':3,'num_skipped_waiting_reqs':1,"
                            "'step_counter':9,'current_wave':0,'kv_cache_usage':0.25}]");
    assert_int_equal(f->rank, 2);
    assert_true(f->has_stats);
    assert_int_equal(f->stats.running, 5);
    assert_int_equal(f->stats.waiting, 4);
    assert_int_equal(f->stats.step_counter, 9);
    assert_float_equal(f->stats.kv_cache_usage, 0.25, 0.0);
    assert_int_equal(f->wave, -1);
    assert_int_equal(f->start, -1);
}

static void test_waves_of_a_lockstep_group_come_through(void **state)
{
    fixture_t *f = *state;
    assert_comes_through(f, "[0,[],null,0.0,null,null,7]");
    assert_int_equal(f->wave, 7);
    assert_int_equal(f->start, -1);
    assert_comes_through(f, "[1,[],null,0.0,null,null,null,8]");
    assert_int_equal(f->rank, 1);
    assert_int_equal(f->wave, -1);
    assert_int_equal(f->start, 8);
}

/* --- on the wrong path --- */

#define PATH "unexpected non-control output on coordinator path from rank "

static void test_what_is_not_for_a_coordinator_is_counted(void **state)
{
    static const struct {
        const char *json;
        const char *logged;
    } rows[] = {
        {"[0,[['a',[1]]]]", PATH "0: request outputs"},
        {"[1,[],null,0.0,null,['a']]", PATH "1: request outputs"},
        {"[2,[],null,0.0,[7,null,null]]", PATH "2: a utility output"},
        {"[4,[],{'num_running_reqs':1}]", PATH "4: a rank that is not in the configuration"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        send_json(*state, rows[i].json);
        assert_counted(*state, WG_E_UNEXPECTED_COORDINATOR_OUTPUT, rows[i].logged);
    }
}

static void test_independent_ranks_have_no_waves(void **state)
{
    fixture_t *f = *state;
    send_json(f, "[0,[],null,0.0,null,null,7]");
    assert_counted(f, WG_E_UNEXPECTED_COORDINATOR_OUTPUT,
                   PATH "0: a wave, although the ranks are independent");
    send_json(f, "[1,[],null,0.0,null,null,null,8]");
    assert_counted(f, WG_E_UNEXPECTED_COORDINATOR_OUTPUT,
                   PATH "1: a wave, although the ranks are independent");
}

/* --- malformed --- */

static void test_a_malformed_report_is_counted(void **state)
{
    fixture_t *f = *state;
    send_json(f, "{}");
    assert_counted(f, WG_E_DECODE, "messagepack decode failed for EngineCoreOutputs at byte 0: not an array");
    send_json(f, "[1,[],{'num_running_reqs':-1}]");
    assert_counted(f, WG_E_DECODE, "a queue count out of range");
}

static void test_a_report_has_one_frame(void **state)
{
    fixture_t *f = *state;
    static const wire_bytes_t frames[] = {{(const uint8_t *)"\x91\x00", 2}, {(const uint8_t *)"", 0}};
    assert_int_equal(message_send(f->engine, frames, 2), 0);
    assert_counted(f, WG_E_DECODE,
                   "messagepack decode failed for EngineCoreOutputs at byte 0: not one frame");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define LOCKSTEP(name) cmocka_unit_test_setup_teardown(name, setup_lockstep, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_report_of_queues_comes_through),
        LOCKSTEP(test_waves_of_a_lockstep_group_come_through),
        TEST(test_what_is_not_for_a_coordinator_is_counted),
        LOCKSTEP(test_what_is_not_for_a_coordinator_is_counted),
        TEST(test_independent_ranks_have_no_waves),
        TEST(test_a_malformed_report_is_counted),
        TEST(test_a_report_has_one_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
