/* The requests in flight at one rank: entries by wire id, many of them. */
#include "frontend/dispatcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static int setup(void **state)
{
    *state = dispatcher_new(0);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    dispatcher_t *dispatcher = *state;
    dispatcher_destroy(&dispatcher); /* what is still in flight is freed with it */
    return 0;
}

static wire_text_t text_of(const char *text)
{
    return (wire_text_t){text, strlen(text)};
}

static in_flight_t *entry_of(const char *id, uint32_t salt)
{
    in_flight_t *entry = in_flight_new(text_of(id), salt);
    assert_non_null(entry);
    return entry;
}

static void insert(dispatcher_t *dispatcher, in_flight_t *entry)
{
    assert_int_equal(dispatcher_insert(dispatcher, entry, NULL), WG_OK);
}

static void test_a_wire_id_is_the_clients_id_and_eight_digits(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        uint32_t salt;
        const char *wire_id;
    } rows[] = {
        {"req-1", 0x00c0ffee, "req-1-00c0ffee"},
        {"req-1", 0, "req-1-00000000"},
        {"x", UINT32_MAX, "x-ffffffff"},
        {"", 1, "-00000001"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        in_flight_t *entry = entry_of(rows[i].id, rows[i].salt);
        assert_string_equal(entry->wire_id.data, rows[i].wire_id);
        assert_int_equal(entry->wire_id.size, strlen(rows[i].wire_id));
        assert_int_equal(entry->id.size, strlen(rows[i].id));
        assert_memory_equal(entry->id.data, rows[i].wire_id, entry->id.size);
        assert_false(entry->ended);
        assert_null(entry->next);
        in_flight_free(entry);
    }
    in_flight_free(NULL);
}

static void test_an_id_is_copied(void **state)
{
    (void)state;
    char id[] = "req-1";
    in_flight_t *entry = in_flight_new((wire_text_t){id, 3}, 0xab);
    assert_non_null(entry);
    memset(id, 'x', sizeof id);
    assert_string_equal(entry->wire_id.data, "req-000000ab");
    in_flight_free(entry);
}

static void test_an_entry_is_found_by_its_wire_id_only(void **state)
{
    dispatcher_t *dispatcher = *state;
    in_flight_t *entry = entry_of("a", 1);
    insert(dispatcher, entry);
    assert_ptr_equal(dispatcher_find(dispatcher, text_of("a-00000001")), entry);
    assert_null(dispatcher_find(dispatcher, text_of("a")));
    assert_null(dispatcher_find(dispatcher, text_of("a-0000000")));
    assert_null(dispatcher_find(dispatcher, text_of("a-00000001 ")));
    assert_null(dispatcher_find(dispatcher, text_of("a-00000002")));
    assert_null(dispatcher_find(dispatcher, text_of("")));
    assert_null(dispatcher_find(dispatcher, (wire_text_t){"a-00000001\0", 11}));
    assert_int_equal(dispatcher_in_flight(dispatcher), 1);
    assert_ptr_equal(dispatcher_first(dispatcher), entry);
}

static void test_a_removed_entry_is_the_callers_again(void **state)
{
    dispatcher_t *dispatcher = *state;
    in_flight_t *entry = entry_of("a", 1);
    insert(dispatcher, entry);
    dispatcher_remove(dispatcher, entry);
    assert_int_equal(dispatcher_in_flight(dispatcher), 0);
    assert_null(dispatcher_find(dispatcher, text_of("a-00000001")));
    assert_null(dispatcher_first(dispatcher));
    insert(dispatcher, entry);
    assert_int_equal(dispatcher_in_flight(dispatcher), 1);
}

static void test_a_wire_id_that_is_taken_is_refused(void **state)
{
    dispatcher_t *dispatcher = *state;
    wg_error_t error;
    in_flight_t *first = entry_of("a", 1);
    in_flight_t *second = entry_of("a", 1);
    insert(dispatcher, first);
    assert_int_equal(dispatcher_insert(dispatcher, second, &error), WG_E_SYSTEM);
    assert_string_equal(error.message, "in-flight set: the wire id is taken, or out of memory");
    assert_ptr_equal(dispatcher_find(dispatcher, text_of("a-00000001")), first);
    assert_int_equal(dispatcher_in_flight(dispatcher), 1);
    in_flight_free(second);
    insert(dispatcher, entry_of("a", 2)); /* the same client's id with another salt is another request */
    assert_int_equal(dispatcher_in_flight(dispatcher), 2);
}

static void test_the_hash_is_of_the_text_and_not_of_its_place(void **state)
{
    (void)state;
    char copy[] = "a-00000001";
    const wire_text_t one = text_of("a-00000001");
    const wire_text_t same = text_of(copy);
    const wire_text_t other = text_of("a-00000002");
    assert_int_equal(in_flight_hash(&one), in_flight_hash(&same));
    assert_int_not_equal(in_flight_hash(&one), in_flight_hash(&other));
}

enum { MANY = 100000 };

static in_flight_t *numbered(unsigned number)
{
    char id[32];
    snprintf(id, sizeof id, "request-%u", number);
    return entry_of(id, number * 2654435761u);
}

static void test_100000_entries_are_inserted_found_and_removed(void **state)
{
    dispatcher_t *dispatcher = *state;
    static in_flight_t *entries[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        entries[i] = numbered(i);
        insert(dispatcher, entries[i]);
    }
    assert_int_equal(dispatcher_in_flight(dispatcher), MANY);
    for (unsigned i = 0; i < MANY; i++)
        assert_ptr_equal(dispatcher_find(dispatcher, entries[i]->wire_id), entries[i]);
    for (unsigned i = 0; i < MANY; i++) {
        in_flight_t **entry = &entries[(uint64_t)i * 7919 % MANY]; /* each once, in another order */
        dispatcher_remove(dispatcher, *entry);
        assert_null(dispatcher_find(dispatcher, (*entry)->wire_id));
        assert_int_equal(dispatcher_in_flight(dispatcher), MANY - 1 - i);
        in_flight_free(*entry);
    }
}

/* As in the long run: requests come and go, and the set stays small. */
static void test_100000_entries_come_and_go(void **state)
{
    enum { AT_ONCE = 64 };
    dispatcher_t *dispatcher = *state;
    in_flight_t *ring[AT_ONCE] = {NULL};
    for (unsigned i = 0; i < MANY; i++) {
        in_flight_t **place = &ring[i % AT_ONCE];
        if (*place) {
            assert_ptr_equal(dispatcher_find(dispatcher, (*place)->wire_id), *place);
            dispatcher_remove(dispatcher, *place);
            in_flight_free(*place);
        }
        *place = numbered(i);
        insert(dispatcher, *place);
        assert_true(dispatcher_in_flight(dispatcher) <= AT_ONCE);
    }
    assert_int_equal(dispatcher_in_flight(dispatcher), AT_ONCE);
}

/* As when a rank is lost. */
static void test_everything_is_taken_out_by_way_of_the_first(void **state)
{
    enum { MOST = 200000 }; /* quadratic, it would take minutes */
    dispatcher_t *dispatcher = *state;
    unsigned taken = 0;
    in_flight_t *entry;
    for (unsigned i = 0; i < MOST; i++)
        insert(dispatcher, numbered(i));
    while ((entry = dispatcher_first(dispatcher)) != NULL) {
        dispatcher_remove(dispatcher, entry);
        in_flight_free(entry);
        taken++;
    }
    assert_int_equal(taken, MOST);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wire_id_is_the_clients_id_and_eight_digits),
        cmocka_unit_test(test_an_id_is_copied),
        TEST(test_an_entry_is_found_by_its_wire_id_only),
        TEST(test_a_removed_entry_is_the_callers_again),
        TEST(test_a_wire_id_that_is_taken_is_refused),
        cmocka_unit_test(test_the_hash_is_of_the_text_and_not_of_its_place),
        TEST(test_100000_entries_are_inserted_found_and_removed),
        TEST(test_100000_entries_come_and_go),
        TEST(test_everything_is_taken_out_by_way_of_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
