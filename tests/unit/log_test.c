/* What is written to standard error, and what is left out. */
#include "common/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Standard error goes to a file in between. */
typedef struct {
    char path[32];
    int saved;
} capture_t;

static void capture_begin(capture_t *capture)
{
    strcpy(capture->path, "/tmp/wavegate-log-XXXXXX");
    int file = mkstemp(capture->path);
    assert_true(file >= 0);
    fflush(stderr);
    capture->saved = dup(STDERR_FILENO);
    assert_true(capture->saved >= 0);
    assert_true(dup2(file, STDERR_FILENO) >= 0);
    close(file);
}

/* What was written. The caller frees. */
static char *capture_end(capture_t *capture)
{
    fflush(stderr);
    dup2(capture->saved, STDERR_FILENO);
    close(capture->saved);
    FILE *stream = fopen(capture->path, "re");
    assert_non_null(stream);
    unlink(capture->path);
    char *text = calloc(1, 8192);
    assert_non_null(text);
    text[fread(text, 1, 8191, stream)] = '\0';
    fclose(stream);
    return text;
}

static void assert_levels(log_level_t least, const char *const *present, const char *const *absent)
{
    capture_t capture;
    capture_begin(&capture);
    log_open("frontend/fe0", least);
    log_error("event=an_error rank=%d", 1);
    log_warning("event=a_warning rank=%d", 2);
    log_notice("event=a_notice rank=%d", 3);
    log_debug("event=a_debug rank=%d", 4);
    char *text = capture_end(&capture);
    for (; *present; present++) {
        if (!strstr(text, *present))
            fail_msg("%s is not in: %s", *present, text);
    }
    for (; *absent; absent++)
        assert_null(strstr(text, *absent));
    free(text);
}

static void lines_below_the_level_are_left_out(void **state)
{
    (void)state;
    static const char *const lines[] = {"event=an_error rank=1", "event=a_warning rank=2",
                                        "event=a_notice rank=3", "event=a_debug rank=4", NULL};
    for (int least = WG_LOG_ERROR; least <= WG_LOG_DEBUG; least++) {
        const char *present[5] = {0};
        memcpy(present, lines, (size_t)(least + 1) * sizeof *lines);
        assert_levels((log_level_t)least, present, &lines[least + 1]);
    }
}

static void every_line_has_the_name_of_the_process(void **state)
{
    (void)state;
    capture_t capture;
    capture_begin(&capture);
    char name[] = "coordinator";
    log_open(name, WG_LOG_NOTICE);
    memset(name, 'x', sizeof name - 1); /* the name is copied */
    log_notice("event=one");
    log_notice("event=two");
    char *text = capture_end(&capture);
    char *second = strchr(text, '\n');
    assert_non_null(second);
    *second++ = '\0';
    assert_non_null(strstr(text, "coordinator"));
    assert_non_null(strstr(text, "event=one"));
    assert_non_null(strstr(second, "coordinator"));
    assert_non_null(strstr(second, "event=two"));
    assert_string_equal(strchr(second, '\n'), "\n");
    free(text);
}

static void a_long_line_is_cut(void **state)
{
    (void)state;
    char long_text[4096];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    capture_t capture;
    capture_begin(&capture);
    log_open(long_text, WG_LOG_NOTICE);
    log_notice("event=%s", long_text);
    char *text = capture_end(&capture);
    assert_non_null(strstr(text, "event=xxx"));
    assert_true(strlen(text) < 1400);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    free(text);
}

static void a_percent_sign_in_a_value_is_only_text(void **state)
{
    (void)state;
    capture_t capture;
    capture_begin(&capture);
    log_open("coordinator", WG_LOG_NOTICE);
    log_notice("event=x value=%s", "%n%s%d");
    char *text = capture_end(&capture);
    assert_non_null(strstr(text, "value=%n%s%d"));
    free(text);
}

static void a_level_is_read_from_its_name(void **state)
{
    (void)state;
    static const char *const names[] = {"error", "warning", "notice", "debug"};
    for (int i = 0; i < 4; i++) {
        log_level_t level = WG_LOG_ERROR;
        assert_true(log_level_parse(names[i], &level));
        assert_int_equal(level, i);
    }
    static const char *const wrong[] = {"", "info", "ERROR", "error ", "notic"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        log_level_t level = WG_LOG_DEBUG;
        assert_false(log_level_parse(wrong[i], &level));
        assert_int_equal(level, WG_LOG_DEBUG);
    }
}

static void untrusted_text_becomes_printable(void **state)
{
    (void)state;
    char out[LOG_TEXT_SIZE];
    assert_string_equal(log_text(out, "plain text ~", 12), "plain text ~");
    assert_string_equal(log_text(out, "a\nb\r\t\x1b[1m\x7f\xff\0z", 13), "a?b???[1m???z");
    assert_string_equal(log_text(out, NULL, 0), "");
    char long_text[1000];
    memset(long_text, 'x', sizeof long_text);
    assert_ptr_equal(log_text(out, long_text, sizeof long_text), out);
    assert_int_equal(strlen(out), LOG_TEXT_SIZE - 1);
    assert_int_equal(strlen(log_text(out, long_text, LOG_TEXT_SIZE)), LOG_TEXT_SIZE - 1);
    assert_int_equal(strlen(log_text(out, long_text, LOG_TEXT_SIZE - 1)), LOG_TEXT_SIZE - 1);
}

/* czmq would catch SIGINT and SIGTERM itself, and end the loop behind the process's back. */
static void signals_stay_with_the_process(void **state)
{
    (void)state;
    log_open("coordinator", WG_LOG_ERROR);
    log_error("event=zsys_is_up");
    struct sigaction action;
    assert_int_equal(sigaction(SIGTERM, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_DFL);
    assert_int_equal(sigaction(SIGINT, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_below_the_level_are_left_out),
        cmocka_unit_test(every_line_has_the_name_of_the_process),
        cmocka_unit_test(a_long_line_is_cut),
        cmocka_unit_test(a_percent_sign_in_a_value_is_only_text),
        cmocka_unit_test(a_level_is_read_from_its_name),
        cmocka_unit_test(untrusted_text_becomes_printable),
        cmocka_unit_test(signals_stay_with_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
