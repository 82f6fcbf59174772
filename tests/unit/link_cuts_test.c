/* What the ends of connections come to once it is known which routes were lost. Whose an output connection
 * is, is output_paths_test.c's. */
#include "common/link_cuts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PLACES = 2, STOP_MS = 4000, NOW_MS = 100000, STRANGER = 900 };

static int setup(void **state)
{
    *state = link_cuts_new(PLACES, STOP_MS, NOW_MS);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    link_cuts_t *cuts = *state;
    link_cuts_destroy(&cuts);
    assert_null(cuts);
    link_cuts_destroy(&cuts);
    return 0;
}

static int open_one(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd > 0);
    return fd;
}

static void assert_cuts(link_cuts_t *cuts, bool first, bool second)
{
    assert_int_equal(link_cuts_take(cuts, 0) != NULL, first);
    assert_int_equal(link_cuts_take(cuts, 1) != NULL, second);
    link_cuts_settled(cuts);
    assert_null(link_cuts_take(cuts, 0));
    assert_null(link_cuts_take(cuts, 1));
}

static void test_without_ends_nothing_is_lost(void **state)
{
    assert_cuts(*state, false, false);
}

static void test_the_end_of_a_known_output_connection_cuts_its_place(void **state)
{
    link_cuts_t *cuts = *state;
    bool is_over;
    int fd = open_one();
    assert_int_equal(link_cuts_find(cuts, fd, &is_over), -1);
    assert_false(link_cuts_moved(cuts, 1, fd));
    assert_int_equal(link_cuts_find(cuts, fd, &is_over), 1);
    link_cuts_output_ended(cuts, fd, NOW_MS); /* libzmq tells shortly before it closes the descriptor */
    assert_cuts(cuts, false, false);
    close(fd);
    assert_cuts(cuts, false, true);
}

static void test_the_end_of_an_unknown_one_may_be_that_of_any_place_without(void **state)
{
    link_cuts_t *cuts = *state;
    int fd = open_one();
    assert_false(link_cuts_moved(cuts, 1, fd));
    link_cuts_output_ended(cuts, STRANGER, NOW_MS);
    assert_cuts(cuts, true, false);
    close(fd);
}

static void test_a_loss_explains_the_end_of_an_unknown_one(void **state)
{
    link_cuts_t *cuts = *state;
    link_cuts_output_ended(cuts, STRANGER, NOW_MS);
    link_cuts_lost(cuts, 1, NOW_MS);
    assert_cuts(cuts, false, false);
}

static void test_a_loss_explains_an_end_that_is_told_after_it(void **state)
{
    link_cuts_t *cuts = *state;
    link_cuts_lost(cuts, 1, NOW_MS);
    assert_cuts(cuts, false, false);
    link_cuts_output_ended(cuts, STRANGER, NOW_MS + 1000);
    assert_cuts(cuts, false, false);
    link_cuts_output_ended(cuts, STRANGER, NOW_MS + 1000);
    assert_cuts(cuts, true, true);
}

static void test_a_loss_of_long_ago_explains_nothing(void **state)
{
    link_cuts_t *cuts = *state;
    link_cuts_lost(cuts, 1, NOW_MS);
    link_cuts_output_ended(cuts, STRANGER, NOW_MS + 6000);
    assert_cuts(cuts, true, true);
}

static void test_the_loss_of_a_place_whose_connection_is_known_explains_no_other_end(void **state)
{
    link_cuts_t *cuts = *state;
    int fd = open_one();
    assert_false(link_cuts_moved(cuts, 1, fd));
    link_cuts_output_ended(cuts, STRANGER, NOW_MS);
    link_cuts_lost(cuts, 1, NOW_MS);
    assert_cuts(cuts, true, true); /* nothing is known of either any more */
    close(fd);
}

static void test_input_connections_that_end_while_we_run_are_the_sweeps(void **state)
{
    link_cuts_t *cuts = *state;
    link_cuts_awake(cuts, NOW_MS + STOP_MS - 1);
    link_cuts_input_ended(cuts, NOW_MS + STOP_MS);
    assert_cuts(cuts, false, false);
}

static void test_one_that_ended_while_we_were_stopped_may_be_that_of_any_place(void **state)
{
    link_cuts_t *cuts = *state;
    link_cuts_awake(cuts, NOW_MS + STOP_MS);
    link_cuts_input_ended(cuts, NOW_MS + STOP_MS + 1);
    assert_cuts(cuts, true, true);
}

static void test_a_loss_explains_one_end_after_a_stop_and_no_second(void **state)
{
    link_cuts_t *cuts = *state;
    link_cuts_awake(cuts, NOW_MS + STOP_MS);
    link_cuts_input_ended(cuts, NOW_MS + STOP_MS + 1);
    link_cuts_lost(cuts, 0, NOW_MS);
    assert_cuts(cuts, false, false);
    link_cuts_input_ended(cuts, NOW_MS + STOP_MS + 2);
    link_cuts_input_ended(cuts, NOW_MS + STOP_MS + 2);
    link_cuts_lost(cuts, 0, NOW_MS);
    assert_cuts(cuts, true, true);
}

static void test_long_after_a_stop_an_end_is_an_ordinary_one(void **state)
{
    link_cuts_t *cuts = *state;
    link_cuts_awake(cuts, NOW_MS + STOP_MS);
    for (int64_t ms = 1000; ms <= 3000; ms += 1000)
        link_cuts_awake(cuts, NOW_MS + STOP_MS + ms);
    link_cuts_input_ended(cuts, NOW_MS + STOP_MS + 3000);
    assert_cuts(cuts, false, false);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_without_ends_nothing_is_lost),
        TEST(test_the_end_of_a_known_output_connection_cuts_its_place),
        TEST(test_the_end_of_an_unknown_one_may_be_that_of_any_place_without),
        TEST(test_a_loss_explains_the_end_of_an_unknown_one),
        TEST(test_a_loss_explains_an_end_that_is_told_after_it),
        TEST(test_a_loss_of_long_ago_explains_nothing),
        TEST(test_the_loss_of_a_place_whose_connection_is_known_explains_no_other_end),
        TEST(test_input_connections_that_end_while_we_run_are_the_sweeps),
        TEST(test_one_that_ended_while_we_were_stopped_may_be_that_of_any_place),
        TEST(test_a_loss_explains_one_end_after_a_stop_and_no_second),
        TEST(test_long_after_a_stop_an_end_is_an_ordinary_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
