#include "common/faults.h"

#include "common/log.h"

#include <czmq.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HOUR_MS INT64_C(3600000)

static int64_t passed_ms; /* by which the clock is ahead */

/* Stands in for czmq's, so that an hour can pass. */
int64_t zclock_mono(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + passed_ms;
}

typedef struct {
    faults_t *faults;
    FILE *log;
    char *lines;
    size_t size;
} fixture_t;

/* czmq prints to any stream, so the test reads the log from memory. */
static int setup(void **state)
{
    static fixture_t fixture;
    passed_ms = 0;
    fixture = (fixture_t){.faults = faults_new()};
    fixture.log = open_memstream(&fixture.lines, &fixture.size);
    log_open("faults_test", LOG_NOTICE);
    zsys_set_logstream(fixture.log);
    *state = &fixture;
    return fixture.faults && fixture.log ? 0 : -1;
}

static int teardown(void **state)
{
    fixture_t *fixture = *state;
    zsys_set_logstream(stderr);
    fclose(fixture->log);
    free(fixture->lines);
    faults_destroy(&fixture->faults);
    assert_null(fixture->faults);
    faults_destroy(&fixture->faults);
    return 0;
}

static size_t count_lines(fixture_t *fixture, const char *part)
{
    size_t count = 0;
    fflush(fixture->log);
    for (const char *at = fixture->lines; at && (at = strstr(at, part)); at += strlen(part))
        count++;
    return count;
}

static wg_error_t decode_error(const char *why)
{
    wg_error_t error;
    WG_FAIL(&error, DECODE, "EngineCoreOutputs", (size_t)3, why);
    return error;
}

static void a_fault_is_counted_each_time_and_said_once(void **state)
{
    fixture_t *fixture = *state;
    wg_error_t error = decode_error("not an array");
    for (int i = 0; i < 5; i++)
        faults_report(fixture->faults, FAULTS_OUTPUT, "rank 3", &error);
    assert_int_equal(faults_count(fixture->faults, FAULTS_OUTPUT, WG_E_DECODE), 5);
    assert_int_equal(count_lines(fixture, "messagepack decode failed for EngineCoreOutputs at byte 3: "
                                          "not an array socket=output cause=Decode peer=rank 3\n"),
                     1);
    assert_int_equal(count_lines(fixture, "\n"), 1);
}

static void another_socket_cause_or_peer_is_said_again(void **state)
{
    fixture_t *fixture = *state;
    wg_error_t decode = decode_error("not an array");
    wg_error_t identity;
    WG_FAIL(&identity, UNEXPECTED_HANDSHAKE_IDENTITY, "0900", "not in the configuration");
    faults_report(fixture->faults, FAULTS_HANDSHAKE, "0900", &decode);
    faults_report(fixture->faults, FAULTS_CONTROL, "0900", &decode);
    faults_report(fixture->faults, FAULTS_HANDSHAKE, "0900", &identity);
    faults_report(fixture->faults, FAULTS_HANDSHAKE, "0a00", &identity);
    faults_report(fixture->faults, FAULTS_HANDSHAKE, "0a00", &identity);
    assert_int_equal(count_lines(fixture, "\n"), 4);
    assert_int_equal(faults_count(fixture->faults, FAULTS_HANDSHAKE, WG_E_DECODE), 1);
    assert_int_equal(faults_count(fixture->faults, FAULTS_CONTROL, WG_E_DECODE), 1);
    assert_int_equal(faults_count(fixture->faults, FAULTS_HANDSHAKE, WG_E_UNEXPECTED_HANDSHAKE_IDENTITY), 3);
    assert_int_equal(faults_count(fixture->faults, FAULTS_INPUT, WG_E_DECODE), 0);
}

static void report_peers(fixture_t *fixture, int from, int to)
{
    wg_error_t error = decode_error("not a map");
    for (int i = from; i < to; i++) {
        char peer[32];
        snprintf(peer, sizeof peer, "peer %d", i);
        faults_report(fixture->faults, FAULTS_HANDSHAKE, peer, &error);
    }
}

static void many_peers_cannot_flood_the_log(void **state)
{
    fixture_t *fixture = *state;
    report_peers(fixture, 0, 5000);
    assert_int_equal(faults_count(fixture->faults, FAULTS_HANDSHAKE, WG_E_DECODE), 5000);
    assert_int_equal(count_lines(fixture, "cause=Decode"), 1024);
    assert_int_equal(count_lines(fixture, "only counted"), 1);
    assert_int_equal(count_lines(fixture, "\n"), 1025);
}

static void an_hour_after_the_last_line_faults_are_said_again(void **state)
{
    fixture_t *fixture = *state;
    report_peers(fixture, 0, 2000);
    passed_ms = HOUR_MS - 60000;
    report_peers(fixture, 0, 2000);
    assert_int_equal(count_lines(fixture, "\n"), 1025);
    passed_ms = HOUR_MS;
    report_peers(fixture, 1990, 2000);
    assert_int_equal(count_lines(fixture, "\n"), 1025 + 10);
    assert_int_equal(count_lines(fixture, "peer=peer 1999\n"), 1);
    report_peers(fixture, 0, 2000);
    assert_int_equal(count_lines(fixture, "\n"), 2 * 1025);
    assert_int_equal(count_lines(fixture, "only counted"), 2);
}

/* However long ago: only a set that is full keeps new lines out. */
static void while_there_is_room_nothing_is_forgotten(void **state)
{
    fixture_t *fixture = *state;
    report_peers(fixture, 0, 10);
    passed_ms = 100 * HOUR_MS;
    report_peers(fixture, 0, 10);
    assert_int_equal(count_lines(fixture, "\n"), 10);
}

static void a_rank_is_a_peer_of_its_number(void **state)
{
    fixture_t *fixture = *state;
    wg_error_t error = decode_error("not a map");
    faults_report_rank(fixture->faults, FAULTS_OUTPUT, 3, &error);
    faults_report_rank(fixture->faults, FAULTS_OUTPUT, UINT32_MAX, &error);
    faults_report(fixture->faults, FAULTS_OUTPUT, "rank 3", &error);
    assert_int_equal(faults_count(fixture->faults, FAULTS_OUTPUT, WG_E_DECODE), 3);
    assert_int_equal(count_lines(fixture, "socket=output cause=Decode peer=rank 3\n"), 1);
    assert_int_equal(count_lines(fixture, "peer=rank 4294967295\n"), 1);
    assert_int_equal(count_lines(fixture, "\n"), 2);
}

static void a_peer_cannot_forge_a_line(void **state)
{
    fixture_t *fixture = *state;
    wg_error_t error = decode_error("field `x\nE: all is lost`");
    faults_report(fixture->faults, FAULTS_CONTROL, "fe0\nE: all is lost", &error);
    assert_int_equal(count_lines(fixture, "\n"), 1);
}

static void json_names_only_what_is_not_zero(void **state)
{
    fixture_t *fixture = *state;
    text_buffer_t json = {0};
    faults_json(fixture->faults, &json);
    text_buffer_bytes(&json, "", 1);
    assert_string_equal(json.data, "{}");

    wg_error_t decode = decode_error("not a map");
    wg_error_t aux;
    WG_FAIL(&aux, UNSUPPORTED_AUX_FRAMES, "index 2 of 1");
    faults_report(fixture->faults, FAULTS_OUTPUT, "output", &decode);
    faults_report(fixture->faults, FAULTS_OUTPUT, "output", &aux);
    faults_report(fixture->faults, FAULTS_OUTPUT, "output", &aux);
    faults_report(fixture->faults, FAULTS_CONTROL, "fe0", &decode);
    text_buffer_clear(&json);
    faults_json(fixture->faults, &json);
    text_buffer_bytes(&json, "", 1);
    assert_string_equal(json.data,
                        "{\"output\":{\"UnsupportedAuxFrames\":2,\"Decode\":1},\"control\":{\"Decode\":1}}");
    text_buffer_free(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_fault_is_counted_each_time_and_said_once, setup, teardown),
        cmocka_unit_test_setup_teardown(another_socket_cause_or_peer_is_said_again, setup, teardown),
        cmocka_unit_test_setup_teardown(many_peers_cannot_flood_the_log, setup, teardown),
        cmocka_unit_test_setup_teardown(an_hour_after_the_last_line_faults_are_said_again, setup, teardown),
        cmocka_unit_test_setup_teardown(while_there_is_room_nothing_is_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rank_is_a_peer_of_its_number, setup, teardown),
        cmocka_unit_test_setup_teardown(a_peer_cannot_forge_a_line, setup, teardown),
        cmocka_unit_test_setup_teardown(json_names_only_what_is_not_zero, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
