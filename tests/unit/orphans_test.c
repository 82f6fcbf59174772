/* An id that is not ours any more is aborted, but at most once a second. */
#include "frontend/orphans.h"

#include "frontend/in_flight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int setup(void **state)
{
    *state = calloc(1, sizeof(orphans_t));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static wire_text_t text_of(const char *text)
{
    return (wire_text_t){text, strlen(text)};
}

/* Two ids, or one id and itself, may share a slot. */
static size_t slot_of(const char *text)
{
    wire_text_t id = text_of(text);
    return in_flight_hash(&id) % ORPHANS_SLOTS;
}

static void test_an_id_is_aborted_once_a_second(void **state)
{
    orphans_t *orphans = *state;
    wire_text_t id = text_of("a-00000001");
    assert_true(orphans_may_abort(orphans, id, 5000));
    assert_false(orphans_may_abort(orphans, id, 5000));
    assert_false(orphans_may_abort(orphans, id, 5000 + ORPHANS_PERIOD_MS - 1));
    assert_true(orphans_may_abort(orphans, id, 5000 + ORPHANS_PERIOD_MS));
    assert_false(orphans_may_abort(orphans, id, 5000 + ORPHANS_PERIOD_MS + 1));
    assert_true(orphans_may_abort(orphans, id, 5000 + 10 * ORPHANS_PERIOD_MS));
}

static void test_an_engine_that_goes_on_is_told_again_once_a_second(void **state)
{
    orphans_t *orphans = *state;
    int aborts = 0;
    for (int64_t now_ms = 1000; now_ms < 1000 + 10 * ORPHANS_PERIOD_MS; now_ms += 10)
        aborts += orphans_may_abort(orphans, text_of("a-00000001"), now_ms);
    assert_int_equal(aborts, 10);
}

static void test_another_id_has_its_own_second(void **state)
{
    orphans_t *orphans = *state;
    assert_int_not_equal(slot_of("a-00000001"), slot_of("b-00000002"));
    assert_true(orphans_may_abort(orphans, text_of("a-00000001"), 5000));
    assert_true(orphans_may_abort(orphans, text_of("b-00000002"), 5000));
    assert_false(orphans_may_abort(orphans, text_of("a-00000001"), 5100));
    assert_false(orphans_may_abort(orphans, text_of("b-00000002"), 5100));
}

static void test_two_ids_in_one_slot_share_their_second(void **state)
{
    orphans_t *orphans = *state;
    char other[32];
    for (unsigned i = 0;; i++) {
        snprintf(other, sizeof other, "b-%08x", i);
        if (slot_of(other) == slot_of("a-00000001"))
            break;
    }
    assert_true(orphans_may_abort(orphans, text_of("a-00000001"), 5000));
    assert_false(orphans_may_abort(orphans, text_of(other), 5500));
    assert_true(orphans_may_abort(orphans, text_of(other), 6000));
    assert_false(orphans_may_abort(orphans, text_of("a-00000001"), 6500));
}

static void test_any_id_has_a_slot(void **state)
{
    orphans_t *orphans = *state;
    static char huge[100000];
    assert_true(orphans_may_abort(orphans, (wire_text_t){"", 0}, 1000));
    assert_false(orphans_may_abort(orphans, (wire_text_t){"", 0}, 1001));
    assert_true(orphans_may_abort(orphans, (wire_text_t){huge, sizeof huge}, 1000));
    assert_true(orphans_may_abort(orphans, (wire_text_t){"\0\xff", 2}, 1000));
}

/* Thousands of ids at once, as after a restart: nearly all of them are told in the first second. */
static void test_many_ids_spread_over_the_slots(void **state)
{
    orphans_t *orphans = *state;
    int aborts = 0;
    for (unsigned i = 0; i < 1000; i++) {
        char id[64];
        snprintf(id, sizeof id, "request-%u-%08x", i, i * 2654435761u);
        aborts += orphans_may_abort(orphans, text_of(id), 5000);
    }
    assert_true(aborts > 800);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_an_id_is_aborted_once_a_second),
        TEST(test_an_engine_that_goes_on_is_told_again_once_a_second),
        TEST(test_another_id_has_its_own_second),
        TEST(test_two_ids_in_one_slot_share_their_second),
        TEST(test_any_id_has_a_slot),
        TEST(test_many_ids_spread_over_the_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
