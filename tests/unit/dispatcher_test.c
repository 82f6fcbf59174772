/* One rank as a frontend sees it: every way into READY and out of it. What is in flight there is
 * dispatcher_in_flight_test.c's. */
#include "frontend/dispatcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int setup(void **state)
{
    *state = dispatcher_new(3);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    dispatcher_t *dispatcher = *state;
    dispatcher_destroy(&dispatcher);
    assert_null(dispatcher);
    dispatcher_destroy(&dispatcher);
    return 0;
}

/* --- the state --- */

/* What happens, and the state after it: a for ABSENT, h for HELLO, y for READY, x for LOST, m for SILENT. */
typedef struct {
    const char *name;
    const char *events; /* see happen */
    const char *states;
} story_t;

static void happen(dispatcher_t *dispatcher, char event)
{
    switch (event) {
    case 'u': /* the route comes up, and the engine answers */
        dispatcher_set_route(dispatcher, true);
        dispatcher_set_answered(dispatcher, true);
        break;
    case 'U': /* it only comes up */
    case 'd': /* it goes down */
        dispatcher_set_route(dispatcher, event == 'U');
        break;
    case 'q': /* it is asked over another connection */
    case 'w': /* and answers */
        dispatcher_set_answered(dispatcher, event == 'w');
        break;
    case 'r': /* the engine registers */
        dispatcher_set_registered(dispatcher);
        break;
    case 's': /* the coordinator has been silent for long */
    case 'j': /* it is heard */
        dispatcher_set_silent(dispatcher, event == 's');
        break;
    case 'm': /* the rank gives no sign of life */
    case 'v': /* it does again */
        dispatcher_set_rank_silent(dispatcher, event == 'm');
        break;
    case 'A': /* the coordinator says so */
        dispatcher_set_told(dispatcher, WG_RANK_ABSENT);
        break;
    case 'H':
        dispatcher_set_told(dispatcher, WG_RANK_HELLO);
        break;
    case 'R':
        dispatcher_set_told(dispatcher, WG_RANK_READY);
        break;
    case 'L':
        dispatcher_set_told(dispatcher, WG_RANK_LOST);
        break;
    default:
        fail_msg("no such event: %c", event);
    }
}

static void assert_story(const story_t *story)
{
    static const char letters[] = {
        [WG_RANK_ABSENT] = 'a', [WG_RANK_HELLO] = 'h',  [WG_RANK_READY] = 'y',
        [WG_RANK_LOST] = 'x',   [WG_RANK_SILENT] = 'm',
    };
    dispatcher_t *dispatcher = dispatcher_new(3);
    assert_non_null(dispatcher);
    char before = 'a';
    int64_t since_ms = 0;
    for (size_t i = 0; story->events[i]; i++) {
        int64_t now_ms = 1000 + (int64_t)i;
        happen(dispatcher, story->events[i]);
        bool changed = dispatcher_settle(dispatcher, now_ms);
        char state = letters[dispatcher_state(dispatcher)];
        if (state != story->states[i])
            fail_msg("%s: after event %zu (%c) the state is %c", story->name, i, story->events[i], state);
        if (state != before)
            since_ms = now_ms;
        assert_int_equal(changed, state != before);
        assert_int_equal(dispatcher_since_ms(dispatcher), since_ms);
        assert_false(dispatcher_settle(dispatcher, now_ms + 1)); /* nothing new happened */
        before = state;
    }
    dispatcher_destroy(&dispatcher);
}

#define ASSERT_STORIES(...)                                                                                  \
    do {                                                                                                     \
        static const story_t stories[] = {__VA_ARGS__};                                                      \
        for (size_t i = 0; i < sizeof stories / sizeof *stories; i++)                                        \
            assert_story(&stories[i]);                                                                       \
    } while (0)

static void test_the_ways_into_ready(void **state)
{
    (void)state;
    ASSERT_STORIES({"an engine starts, and the coordinator tells of each step", "HruR", "hhhy"},
                   {"a restarted frontend: told, then the probe finds the route", "Ru", "ay"},
                   {"a restarted frontend: the probe finds the route first", "uR", "ay"},
                   {"the coordinator is silent: the registration must do", "sru", "ahy"},
                   {"it is silent: the route is found before the registration is read", "sur", "aay"},
                   {"it falls silent while an engine waits at the gate", "rus", "hhy"},
                   {"it falls silent after its word, before the route comes up", "Rsu", "aay"});
}

static void test_what_is_not_enough_for_ready(void **state)
{
    (void)state;
    ASSERT_STORIES({"a route alone", "u", "a"}, {"a route alone, and no coordinator", "su", "aa"},
                   {"a registration that has no route yet", "sr", "ah"},
                   {"a registration at the startup gate", "ru", "hh"},
                   {"a registration at the startup gate, and the coordinator is heard again", "srju", "ahhh"},
                   {"the coordinator's word without a route", "R", "a"},
                   {"a route, and the coordinator says HELLO", "Hu", "hh"},
                   {"a route, and the coordinator says LOST", "Lu", "aa"},
                   {"a route that is gone again", "udR", "aaa"});
}

static void test_an_engine_that_has_not_answered_is_not_ready(void **state)
{
    (void)state;
    ASSERT_STORIES({"it answers after everything else is known", "HrURw", "hhhhy"},
                   {"a restarted frontend: told, then the route, then the answer", "RUw", "ahy"},
                   {"a restarted frontend: the answer before the coordinator's word", "UwR", "aay"},
                   {"no coordinator: the answer and the registration", "srUw", "ahhy"},
                   {"its answer does not count on the next route", "RuUdUw", "ayyxhy"},
                   {"its outputs come over another connection", "Ruqw", "ayhy"},
                   {"the same, and the coordinator has another opinion", "RuLqw", "ayyhy"},
                   {"its route is lost before it answers", "RuqdUw", "ayhxhy"});
}

static void test_only_the_loss_of_the_route_ends_ready(void **state)
{
    (void)state;
    ASSERT_STORIES({"the coordinator says LOST, ABSENT or HELLO", "RuLAH", "ayyyy"},
                   {"the coordinator is heard, and falls silent", "srujsjs", "ahyyyyy"},
                   {"the engine registers again", "srurr", "ahyyy"}, {"the route is lost", "srud", "ahyx"},
                   {"the route is lost, and the coordinator does not know yet", "Rud", "ayx"},
                   {"the route is lost, and another engine has already dialled", "RuHd", "ayyh"});
}

static void test_a_ready_rank_may_be_silent_for_a_time(void **state)
{
    (void)state;
    ASSERT_STORIES({"it gives a sign of life", "Rumv", "aymy"},
                   {"nothing that others say makes it heard", "RumRsjLAr", "aymmmmmmm"},
                   {"and when it is heard, it serves, whatever they said", "RumLAv", "aymmmy"},
                   {"its route is lost", "Rumd", "aymx"},
                   {"the route is back: whatever is there now is not silent", "Rumdu", "aymxy"},
                   {"another engine takes its place", "RumdLHruR", "aymxxhhhy"});
}

static void test_the_ways_back_from_lost(void **state)
{
    (void)state;
    ASSERT_STORIES({"the same connection is back", "Rudu", "ayxy"},
                   {"the route is back, but the coordinator has said LOST", "RudLu", "ayxxx"},
                   {"another engine starts, step by step", "RudLHruR", "ayxxhhhy"},
                   {"no coordinator: the next engine must register", "srudur", "ahyxxy"},
                   {"no coordinator: the registration of the engine before does not count", "srudu", "ahyxx"},
                   {"the coordinator comes back and knows nothing of it yet", "srudjAu", "ahyxxxx"},
                   {"no coordinator: another engine registers before its route is seen", "srudru", "ahyxhy"});
}

/* The coordinator's READY may overtake the registration, and the route of a frontend that has just started.
 */
static void test_a_rank_that_was_never_reached_is_not_lost(void **state)
{
    (void)state;
    ASSERT_STORIES({"told READY before the registration is read", "HRru", "hhhy"},
                   {"told READY before the route is up", "HRu", "hhy"});
}

static void test_a_start_that_fails_ends_in_lost(void **state)
{
    (void)state;
    ASSERT_STORIES({"the coordinator loses an engine that loads", "HL", "hx"},
                   {"and then forgets it in a restart", "HLA", "hxx"},
                   {"and then sees the next one", "HLH", "hxh"},
                   {"an engine that registered goes before it is ready", "rud", "hhx"},
                   {"it goes, and the coordinator still takes it for loading", "Hrud", "hhhh"});
}

static void test_a_new_rank_is_absent_and_unknown(void **state)
{
    dispatcher_t *dispatcher = *state;
    int64_t at_ms = -1;
    assert_int_equal(dispatcher_rank(dispatcher), 3);
    assert_int_equal(dispatcher_state(dispatcher), WG_RANK_ABSENT);
    assert_int_equal(dispatcher_since_ms(dispatcher), 0);
    assert_int_equal(dispatcher_registration(dispatcher)->max_model_len, WIRE_UNKNOWN);
    assert_int_equal(dispatcher_response(dispatcher).size, 0);
    assert_int_equal(dispatcher_load(dispatcher, &at_ms)->waiting, 0);
    assert_int_equal(at_ms, 0);
    assert_int_equal(dispatcher_in_flight(dispatcher), 0);
    assert_null(dispatcher_first(dispatcher));
    assert_false(dispatcher_settle(dispatcher, 1000));
}

/* --- response and load --- */

static wire_bytes_t bytes_of(const char *bytes, size_t size)
{
    return (wire_bytes_t){(const uint8_t *)bytes, size};
}

static void test_a_response_is_kept_as_it_came(void **state)
{
    dispatcher_t *dispatcher = *state;
    char response[] = "\x81\xadmax_model_len\xcd\x10"; /* its NUL is the last byte of 4096 */
    assert_int_equal(dispatcher_set_response(dispatcher, bytes_of(response, sizeof response), NULL), WG_OK);
    response[0] = 0;
    assert_int_equal(dispatcher_registration(dispatcher)->max_model_len, 4096);
    assert_int_equal(dispatcher_response(dispatcher).size, sizeof response);
    assert_int_equal(dispatcher_response(dispatcher).data[0], 0x81);
    assert_int_equal(dispatcher_set_response(dispatcher, (wire_bytes_t){NULL, 0}, NULL), WG_OK);
    assert_int_equal(dispatcher_registration(dispatcher)->max_model_len, WIRE_UNKNOWN);
    assert_int_equal(dispatcher_response(dispatcher).size, 0);
    assert_non_null(dispatcher_response(dispatcher).data);
    assert_false(dispatcher_settle(dispatcher, 1000)); /* a response alone changes nothing */
}

static void test_a_malformed_response_changes_nothing(void **state)
{
    dispatcher_t *dispatcher = *state;
    wg_error_t error;
    static const char good[] = "\x81\xadmax_model_len\x07";
    assert_int_equal(dispatcher_set_response(dispatcher, bytes_of(good, sizeof good - 1), NULL), WG_OK);
    assert_int_equal(dispatcher_set_response(dispatcher, bytes_of("\x90", 1), &error), WG_E_DECODE);
    assert_string_equal(error.message,
                        "messagepack decode failed for EngineCoreReadyResponse at byte 0: not a map");
    assert_int_equal(dispatcher_registration(dispatcher)->max_model_len, 7);
    assert_int_equal(dispatcher_response(dispatcher).size, sizeof good - 1);
}

static void test_the_last_load_is_kept_with_its_time(void **state)
{
    dispatcher_t *dispatcher = *state;
    int64_t at_ms = -1;
    const wire_load_t first = {.waiting = 1, .running = 2, .kv_cache_usage = 0.5};
    const wire_load_t second = {.running = 9};
    assert_true(dispatcher_set_load(dispatcher, &first, 1000));
    assert_int_equal(dispatcher_load(dispatcher, &at_ms)->running, 2);
    assert_int_equal(at_ms, 1000);
    assert_true(dispatcher_set_load(dispatcher, &second, 2000));
    assert_int_equal(dispatcher_load(dispatcher, &at_ms)->waiting, 0);
    assert_int_equal(dispatcher_load(dispatcher, &at_ms)->running, 9);
    assert_float_equal(dispatcher_load(dispatcher, &at_ms)->kv_cache_usage, 0.0, 0.0);
    assert_int_equal(at_ms, 2000);
}

/* The coordinator repeats its numbers every 5 s, whether or not the engine has said anything. */
static void test_numbers_that_are_only_repeated_grow_old(void **state)
{
    dispatcher_t *dispatcher = *state;
    const wire_load_t bad = {.waiting = 5, .running = 106, .kv_cache_usage = 0.9};
    const wire_load_t other = {.waiting = 5, .running = 106, .kv_cache_usage = 0.8};
    int64_t at_ms;
    assert_null(dispatcher_fresh_load(dispatcher, 1));
    assert_int_equal(dispatcher_reported_ms(dispatcher), 0);
    assert_true(dispatcher_set_load(dispatcher, &bad, 1000));
    for (int64_t now_ms = 6000; now_ms <= 1000 + DISPATCHER_LOAD_FRESH_MS; now_ms += 5000) {
        assert_false(dispatcher_set_load(dispatcher, &bad, now_ms));
        assert_int_equal(dispatcher_fresh_load(dispatcher, now_ms)->running, 106);
    }
    assert_int_equal(dispatcher_reported_ms(dispatcher), 1000);
    assert_null(dispatcher_fresh_load(dispatcher, 1001 + DISPATCHER_LOAD_FRESH_MS));
    assert_false(dispatcher_set_load(dispatcher, &bad, 1001 + DISPATCHER_LOAD_FRESH_MS));
    assert_null(dispatcher_fresh_load(dispatcher, 1001 + DISPATCHER_LOAD_FRESH_MS));
    assert_int_equal(dispatcher_load(dispatcher, &at_ms)->running, 106); /* for those who want to see it */
    assert_int_equal(at_ms, 1001 + DISPATCHER_LOAD_FRESH_MS);
    assert_true(dispatcher_set_load(dispatcher, &other, 20000));
    assert_non_null(dispatcher_fresh_load(dispatcher, 20000 + DISPATCHER_LOAD_FRESH_MS));
}

/* A restarted coordinator publishes zeros for every rank until its engine reports. */
static void test_zeros_are_no_report(void **state)
{
    dispatcher_t *dispatcher = *state;
    const wire_load_t zeros = {0};
    const wire_load_t some = {.running = 3};
    assert_false(dispatcher_set_load(dispatcher, &zeros, 1000));
    assert_null(dispatcher_fresh_load(dispatcher, 1000));
    assert_true(dispatcher_set_load(dispatcher, &some, 2000));
    assert_false(dispatcher_set_load(dispatcher, &zeros, 3000));
    assert_int_equal(dispatcher_reported_ms(dispatcher), 2000);
    assert_int_equal(dispatcher_fresh_load(dispatcher, 3000)->running, 0);
    assert_true(dispatcher_set_load(dispatcher, &some, 4000));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_ways_into_ready),
        cmocka_unit_test(test_what_is_not_enough_for_ready),
        cmocka_unit_test(test_an_engine_that_has_not_answered_is_not_ready),
        cmocka_unit_test(test_only_the_loss_of_the_route_ends_ready),
        cmocka_unit_test(test_a_ready_rank_may_be_silent_for_a_time),
        cmocka_unit_test(test_the_ways_back_from_lost),
        cmocka_unit_test(test_a_rank_that_was_never_reached_is_not_lost),
        cmocka_unit_test(test_a_start_that_fails_ends_in_lost),
        TEST(test_a_new_rank_is_absent_and_unknown),
        TEST(test_a_response_is_kept_as_it_came),
        TEST(test_a_malformed_response_changes_nothing),
        TEST(test_the_last_load_is_kept_with_its_time),
        TEST(test_numbers_that_are_only_repeated_grow_old),
        TEST(test_zeros_are_no_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
