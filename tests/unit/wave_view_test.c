/* What a frontend does for a new request of a lockstep group. */
#include "frontend/wave_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static wave_view_t paused_at(int64_t wave)
{
    wave_view_t view = {0};
    wave_view_on_publish(&view, wave, false);
    return view;
}

static void test_before_the_first_publish_nothing_is_sent(void **state)
{
    (void)state;
    wave_view_t view = {0};
    assert_int_equal(wave_view_on_request(&view, true, 0), WAVE_VIEW_REFUSE);
    assert_int_equal(wave_view_on_request(&view, true, 9), WAVE_VIEW_REFUSE);
}

static void test_one_announcement_for_each_pause(void **state)
{
    (void)state;
    wave_view_t view = paused_at(3);
    assert_int_equal(wave_view_on_request(&view, false, 0), WAVE_VIEW_ANNOUNCE);
    assert_int_equal(wave_view_on_request(&view, false, 1), WAVE_VIEW_SEND);
    wave_view_on_publish(&view, 3, false); /* sent before the coordinator read the notice */
    assert_int_equal(wave_view_on_request(&view, false, 2), WAVE_VIEW_SEND);
    wave_view_on_publish(&view, 3, true);
    assert_int_equal(wave_view_on_request(&view, false, 3), WAVE_VIEW_SEND);
    wave_view_on_publish(&view, 4, false);
    assert_int_equal(view.wave, 4);
    assert_int_equal(wave_view_on_request(&view, false, 0), WAVE_VIEW_ANNOUNCE);
}

static void test_an_older_wave_is_not_believed(void **state)
{
    (void)state;
    wave_view_t view = paused_at(5);
    wave_view_on_publish(&view, 4, true);
    assert_int_equal(view.wave, 5);
    assert_false(view.running);
    assert_int_equal(wave_view_on_request(&view, false, 0), WAVE_VIEW_ANNOUNCE);
}

static void test_in_silence_only_who_reaches_all_ranks_may_wake(void **state)
{
    (void)state;
    wave_view_t partial = paused_at(2);
    wave_view_t all = partial;
    assert_int_equal(wave_view_on_silence(&partial, false), WAVE_VIEW_SEND); /* nothing was announced */
    assert_int_equal(wave_view_on_request(&partial, false, 0), WAVE_VIEW_REFUSE);
    assert_int_equal(wave_view_on_silence(&all, true), WAVE_VIEW_SEND);
    assert_int_equal(wave_view_on_request(&all, true, 0), WAVE_VIEW_WAKE);
    assert_true(wave_view_on_repeat(&all, 1));
    assert_false(wave_view_on_repeat(&all, 0));
    assert_int_equal(wave_view_on_request(&all, true, 1),
                     WAVE_VIEW_SEND); /* its request keeps the group running */
    assert_int_equal(wave_view_on_request(&all, true, 0),
                     WAVE_VIEW_REFUSE); /* the wave may be complete by now */
}

static void test_a_group_that_ran_when_silence_began_takes_nothing_new(void **state)
{
    (void)state;
    wave_view_t view = paused_at(2);
    wave_view_on_publish(&view, 2, true);
    assert_int_equal(wave_view_on_silence(&view, true), WAVE_VIEW_SEND);
    assert_int_equal(wave_view_on_request(&view, true, 3), WAVE_VIEW_REFUSE);
}

static void test_what_was_announced_into_silence_is_woken_or_ended(void **state)
{
    (void)state;
    wave_view_t partial = paused_at(2);
    wave_view_t all = partial;
    assert_int_equal(wave_view_on_request(&partial, false, 0), WAVE_VIEW_ANNOUNCE);
    assert_int_equal(wave_view_on_silence(&partial, false), WAVE_VIEW_REFUSE);
    assert_int_equal(wave_view_on_request(&all, true, 0), WAVE_VIEW_ANNOUNCE);
    assert_int_equal(wave_view_on_silence(&all, true), WAVE_VIEW_WAKE);
    assert_true(wave_view_on_repeat(&all, 1));
}

static void test_whatever_is_heard_ends_the_silence(void **state)
{
    (void)state;
    wave_view_t view = paused_at(2);
    assert_int_equal(wave_view_on_silence(&view, true), WAVE_VIEW_SEND);
    wave_view_on_heard(&view);
    assert_int_equal(wave_view_on_request(&view, true, 0), WAVE_VIEW_ANNOUNCE);
    view = paused_at(2);
    assert_int_equal(wave_view_on_silence(&view, true), WAVE_VIEW_SEND);
    assert_int_equal(wave_view_on_request(&view, true, 0), WAVE_VIEW_WAKE);
    wave_view_on_publish(&view, 2, true); /* a coordinator is back, and repeats the wake itself */
    assert_false(wave_view_on_repeat(&view, 1));
    assert_int_equal(wave_view_on_request(&view, true, 1), WAVE_VIEW_SEND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_the_first_publish_nothing_is_sent),
        cmocka_unit_test(test_one_announcement_for_each_pause),
        cmocka_unit_test(test_an_older_wave_is_not_believed),
        cmocka_unit_test(test_in_silence_only_who_reaches_all_ranks_may_wake),
        cmocka_unit_test(test_a_group_that_ran_when_silence_began_takes_nothing_new),
        cmocka_unit_test(test_what_was_announced_into_silence_is_woken_or_ended),
        cmocka_unit_test(test_whatever_is_heard_ends_the_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
