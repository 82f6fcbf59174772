/* Connections are played by real sockets, whose descriptors the kernel uses again as it does in earnest. */
#include "common/output_paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PLACES = 3 };

static int setup(void **state)
{
    *state = output_paths_new(PLACES);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    output_paths_t *paths = *state;
    output_paths_destroy(&paths);
    assert_null(paths);
    output_paths_destroy(&paths);
    return 0;
}

static int64_t find(const output_paths_t *paths, int fd)
{
    bool is_over;
    return output_paths_find(paths, fd, &is_over);
}

static int open_one(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd > 0);
    return fd;
}

/* Another connection that has the same number. */
static int replace(int fd)
{
    close(fd);
    int next = open_one();
    assert_int_equal(next, fd);
    return next;
}

static void test_a_first_connection_replaces_none(void **state)
{
    output_paths_t *paths = *state;
    int fd = open_one();
    assert_int_equal(find(paths, fd), -1);
    assert_false(output_paths_move(paths, 1, fd));
    assert_int_equal(find(paths, fd), 1);
    assert_false(output_paths_take_broken(paths, 1));
    close(fd);
}

static void test_a_second_connection_replaces_the_first(void **state)
{
    output_paths_t *paths = *state;
    int first = open_one();
    int second = open_one();
    assert_false(output_paths_move(paths, 1, first));
    assert_true(output_paths_move(paths, 1, second));
    assert_int_equal(find(paths, second), 1);
    assert_int_equal(find(paths, first), 1); /* two engines, and their messages mix */
    close(first);
    assert_false(output_paths_take_broken(paths, 1));
    close(second);
}

static void test_a_second_connection_with_the_same_number_is_another(void **state)
{
    output_paths_t *paths = *state;
    int fd = open_one();
    assert_false(output_paths_move(paths, 1, fd));
    fd = replace(fd);
    assert_int_equal(find(paths, fd), -1);
    assert_true(output_paths_move(paths, 1, fd));
    assert_int_equal(find(paths, fd), 1);
    assert_false(output_paths_take_broken(paths, 1));
    close(fd);
}

static void test_the_last_messages_of_a_connection_are_still_its_places(void **state)
{
    output_paths_t *paths = *state;
    int fd = open_one();
    assert_false(output_paths_move(paths, 1, fd));
    close(fd);
    assert_int_equal(find(paths, fd), 1);
    assert_true(output_paths_take_broken(paths, 1));
    assert_false(output_paths_take_broken(paths, 1));
    assert_true(output_paths_is_unknown(paths, 1));
    assert_true(output_paths_knows(paths, fd)); /* its end may be told only now */
    int next = open_one();
    assert_false(output_paths_move(paths, 1, next)); /* told already */
    assert_int_equal(find(paths, next), 1);
    close(next);
}

/* PULL takes messages from its connections in turn, so that old and new ones may mix. */
static void test_an_old_message_behind_a_new_one_changes_nothing(void **state)
{
    output_paths_t *paths = *state;
    int first = open_one();
    int second = open_one();
    assert_false(output_paths_move(paths, 1, first));
    close(first);
    assert_true(output_paths_move(paths, 1, second));
    assert_int_equal(find(paths, first), -1);
    assert_false(output_paths_move(paths, 1, first));
    assert_int_equal(find(paths, second), 1);
    close(second);
}

static void test_after_a_break_the_next_connection_is_another(void **state)
{
    output_paths_t *paths = *state;
    int first = open_one();
    int second = open_one();
    assert_false(output_paths_move(paths, 1, first));
    assert_false(output_paths_is_unknown(paths, 1));
    assert_true(output_paths_is_unknown(paths, 0));
    assert_true(output_paths_knows(paths, first));
    assert_false(output_paths_knows(paths, second));
    close(first);
    assert_true(output_paths_knows(paths, first));
    assert_true(output_paths_move(paths, 1, second));
    assert_false(output_paths_take_broken(paths, 1)); /* told already */
    close(second);
}

static void test_a_connection_that_is_over_at_its_first_message_is_broken(void **state)
{
    output_paths_t *paths = *state;
    int fd = open_one();
    close(fd);
    assert_false(output_paths_move(paths, 1, fd));
    assert_true(output_paths_take_broken(paths, 1));
}

/* As after a stop in which it was replaced twice. */
static void test_a_first_message_of_one_that_is_over_already_is_another_too(void **state)
{
    output_paths_t *paths = *state;
    int first = open_one();
    int second = open_one();
    assert_false(output_paths_move(paths, 1, first));
    close(first);
    close(second);
    assert_int_equal(find(paths, second), -1);
    assert_true(output_paths_move(paths, 1, second));
    assert_true(output_paths_take_broken(paths, 1));
}

/* The same, all of them with one number. */
static void test_a_number_that_was_used_again_is_not_the_first_ones(void **state)
{
    output_paths_t *paths = *state;
    bool is_over = false;
    int fd = open_one();
    assert_false(output_paths_move(paths, 1, fd));
    close(fd);
    assert_int_equal(output_paths_find(paths, fd, &is_over), 1);
    assert_true(is_over);
    output_paths_accepted(paths, fd);
    assert_int_equal(output_paths_find(paths, fd, &is_over), -1);
    assert_true(output_paths_move(paths, 1, fd));
}

static void test_a_number_that_another_place_uses_now_is_lost_to_the_first(void **state)
{
    output_paths_t *paths = *state;
    int fd = open_one();
    assert_false(output_paths_move(paths, 0, fd));
    fd = replace(fd);
    assert_false(output_paths_move(paths, 2, fd));
    assert_int_equal(find(paths, fd), 2);
    assert_true(output_paths_take_broken(paths, 0));
    assert_false(output_paths_take_broken(paths, 2));
    close(fd);
}

static void test_what_is_forgotten_was_not_there(void **state)
{
    output_paths_t *paths = *state;
    int first = open_one();
    int second = open_one();
    assert_false(output_paths_move(paths, 1, first));
    output_paths_forget(paths, 1);
    assert_int_equal(find(paths, first), -1);
    assert_false(output_paths_take_broken(paths, 1));
    assert_false(output_paths_move(paths, 1, second));
    close(first);
    close(second);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_first_connection_replaces_none),
        TEST(test_a_second_connection_replaces_the_first),
        TEST(test_a_second_connection_with_the_same_number_is_another),
        TEST(test_the_last_messages_of_a_connection_are_still_its_places),
        TEST(test_an_old_message_behind_a_new_one_changes_nothing),
        TEST(test_after_a_break_the_next_connection_is_another),
        TEST(test_a_connection_that_is_over_at_its_first_message_is_broken),
        TEST(test_a_first_message_of_one_that_is_over_already_is_another_too),
        TEST(test_a_number_that_was_used_again_is_not_the_first_ones),
        TEST(test_a_number_that_another_place_uses_now_is_lost_to_the_first),
        TEST(test_what_is_forgotten_was_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
