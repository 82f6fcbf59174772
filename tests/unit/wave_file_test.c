/* The state file: what is read back is what was written, and anything else is unknown. */
#include "coordinator/wave_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RECORD = 80 };

typedef struct {
    char folder[32];
    char path[64];
    wg_config_t config;
} fixture_t;

static int setup(void **state)
{
    static fixture_t f;
    memset(&f, 0, sizeof f);
    strcpy(f.folder, "/tmp/wave-file-XXXXXX");
    if (!mkdtemp(f.folder))
        return -1;
    snprintf(f.path, sizeof f.path, "%s/state", f.folder);
    f.config.ranks.count = 2;
    f.config.coordinator.state_file = f.path;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_t *f = *state;
    unlink(f->path);
    return rmdir(f->folder);
}

static wave_file_finding_t open_and_read(fixture_t *f, wave_file_state_t *saved)
{
    wave_file_t *file;
    wave_file_finding_t finding;
    assert_int_equal(wave_file_open(&file, &f->config, &finding, saved, NULL), WG_OK);
    assert_string_equal(wave_file_path(file), f->path);
    wave_file_close(&file);
    assert_null(file);
    wave_file_close(&file);
    return finding;
}

static void save(fixture_t *f, int64_t wave, bool running)
{
    wave_file_t *file;
    wave_file_finding_t finding;
    wave_file_state_t state = {0};
    assert_int_equal(wave_file_open(&file, &f->config, &finding, &state, NULL), WG_OK);
    state = (wave_file_state_t){wave, running};
    assert_int_equal(wave_file_save(file, state, NULL), WG_OK);
    wave_file_close(&file);
}

static void test_a_new_file_is_missing_until_it_is_written(void **state)
{
    wave_file_state_t saved = {0};
    assert_int_equal(open_and_read(*state, &saved), WAVE_FILE_MISSING);
    assert_int_equal(open_and_read(*state, &saved), WAVE_FILE_MISSING);
    save(*state, 0, false);
    assert_int_equal(open_and_read(*state, &saved), WAVE_FILE_READ);
}

static void test_the_last_state_comes_back(void **state)
{
    static const int64_t waves[] = {0, 1, 255, INT64_MAX};
    for (size_t i = 0; i < sizeof waves / sizeof *waves; i++) {
        wave_file_state_t saved = {0};
        save(*state, 77, i % 2 == 0);
        save(*state, waves[i], i % 2 == 1);
        assert_int_equal(open_and_read(*state, &saved), WAVE_FILE_READ);
        assert_true(saved.current_wave == waves[i]);
        assert_int_equal(saved.running, i % 2 == 1);
    }
}

static void test_another_clusters_file_is_foreign(void **state)
{
    fixture_t *f = *state;
    wave_file_state_t saved = {0};
    save(f, 5, true);
    f->config.ranks.count = 3;
    assert_int_equal(open_and_read(f, &saved), WAVE_FILE_FOREIGN);
}

static void test_every_damaged_byte_is_found(void **state)
{
    fixture_t *f = *state;
    save(f, 41, true);
    for (int at = 0; at < RECORD; at++) {
        char byte;
        char other;
        wave_file_state_t saved = {0};
        int fd = open(f->path, O_RDWR);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        other = (char)(byte ^ 1);
        assert_int_equal(pwrite(fd, &other, 1, at), 1);
        assert_int_not_equal(open_and_read(f, &saved), WAVE_FILE_READ);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        assert_int_equal(open_and_read(f, &saved), WAVE_FILE_READ);
    }
}

static void test_a_torn_file_is_damaged(void **state)
{
    fixture_t *f = *state;
    for (int size = 1; size < RECORD; size++) {
        wave_file_state_t saved = {0};
        save(f, 41, true);
        assert_int_equal(truncate(f->path, size), 0);
        assert_int_equal(open_and_read(f, &saved), WAVE_FILE_DAMAGED);
    }
}

static void test_a_path_that_cannot_be_opened_is_named(void **state)
{
    fixture_t *f = *state;
    char path[] = "/nonexistent/state";
    wave_file_t *file;
    wave_file_finding_t finding;
    wave_file_state_t saved;
    wg_error_t error;
    f->config.coordinator.state_file = path;
    assert_int_equal(wave_file_open(&file, &f->config, &finding, &saved, &error), WG_E_SYSTEM);
    assert_null(file);
    assert_string_equal(error.message, "/nonexistent/state: No such file or directory");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_new_file_is_missing_until_it_is_written),
        TEST(test_the_last_state_comes_back),
        TEST(test_another_clusters_file_is_foreign),
        TEST(test_every_damaged_byte_is_found),
        TEST(test_a_torn_file_is_damaged),
        TEST(test_a_path_that_cannot_be_opened_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
