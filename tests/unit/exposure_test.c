/* What is said of sockets that are bound on every interface. */
#include "common/exposure.h"

#include "tests/unit/config_file.h"
#include "tests/unit/memory_log.h"

/* What the log says with that change of the plain file; the caller frees. */
static char *warned(const char *old, const char *new, const char *frontend)
{
    memory_log_t log;
    wg_config_t *config = config_of_replaced(old, new);
    memory_log_open(&log);
    exposure_warn(config, frontend ? wg_config_frontend(config, frontend) : NULL);
    fflush(log.stream);
    char *lines = strdup(log.lines);
    memory_log_close(&log);
    wg_config_destroy(&config);
    assert_non_null(lines);
    return lines;
}

static void assert_warned(const char *old, const char *new, const char *frontend, const char *sockets)
{
    char *lines = warned(old, new, frontend);
    char *end = strchr(lines, '\n');
    const char *named = strstr(lines, "sockets=");
    assert_non_null(named);
    assert_non_null(end);
    assert_string_equal(end, "\n"); /* one line, however many sockets */
    *end = '\0';
    assert_string_equal(named + strlen("sockets="), sockets);
    free(lines);
}

static void assert_silent(const char *old, const char *new, const char *frontend)
{
    char *lines = warned(old, new, frontend);
    assert_string_equal(lines, "");
    free(lines);
}

static void sockets_on_a_wildcard_are_named_in_one_line(void **state)
{
    (void)state;
    assert_warned("  control =", "  control_bind = \"tcp://*:29554\";\n  control =", NULL, "control");
    assert_warned("  input = \"tcp://127.0.0.1:29555\";\n  output = \"tcp://127.0.0.1:29556\";\n",
                  "  input = \"tcp://127.0.0.1:29555\"; input_bind = \"tcp://[::]:29555\";\n"
                  "  output = \"tcp://127.0.0.1:29556\"; output_bind = \"tcp://0.0.0.0:29556\";\n",
                  NULL, "input,output");
}

static void each_process_speaks_of_its_own_sockets(void **state)
{
    (void)state;
    static const char plain[] = "output = \"tcp://127.0.0.1:29563\";";
    static const char wide[] = "output = \"tcp://127.0.0.1:29563\"; output_bind = \"tcp://*:29563\";";
    assert_warned(plain, wide, "fe1", "output");
    assert_silent(plain, wide, "fe0");
    assert_silent(plain, wide, NULL);
}

static void addresses_that_are_named_and_http_are_not_warned_of(void **state)
{
    (void)state;
    assert_silent("127.0.0.1:9000", "0.0.0.0:9000", NULL);
    assert_silent("tcp://127.0.0.1:29550", "tcp://10.0.0.1:29550", NULL);
    assert_silent("tcp://127.0.0.1:29550", "ipc:///run/wavegate/handshake", NULL);
    assert_silent("  engine_publish = \"tcp://127.0.0.1:29551\";\n"
                  "  engine_output = \"tcp://127.0.0.1:29552\";\n"
                  "  frontend_publish = \"tcp://127.0.0.1:29553\";\n",
                  "", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sockets_on_a_wildcard_are_named_in_one_line),
        cmocka_unit_test(each_process_speaks_of_its_own_sockets),
        cmocka_unit_test(addresses_that_are_named_and_http_are_not_warned_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
