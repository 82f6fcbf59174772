/* Prompts as they are packed for the ADD: what msgpack-c unpacks is what was added. */
#include "common/wire_prompt.h"
#include "tests/unit/wire_random.h"

/* realloc is to fail in one test, as it does without the sanitizers, which would end it. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

typedef struct {
    size_t start;
    size_t size;
    size_t count;
} packed_t;

static packed_t pack_ids(msgpack_sbuffer *buffer, const uint32_t *ids, size_t count)
{
    wire_prompt_packer_t packer;
    packed_t packed = {0};
    wire_prompt_begin(&packer, buffer);
    for (size_t i = 0; i < count; i++)
        wire_prompt_add(&packer, ids[i]);
    assert_true(wire_prompt_end(&packer, &packed.start, &packed.size, &packed.count));
    return packed;
}

static void assert_ids(const msgpack_sbuffer *buffer, const packed_t *packed, const uint32_t *ids,
                       size_t count)
{
    msgpack_unpacked result;
    size_t at = packed->start;
    msgpack_unpacked_init(&result);
    assert_int_equal(packed->count, count);
    assert_true(packed->start + packed->size <= buffer->size && buffer->size <= buffer->alloc);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(msgpack_unpack_next(&result, buffer->data, packed->start + packed->size, &at),
                         MSGPACK_UNPACK_SUCCESS);
        assert_int_equal(result.data.type, MSGPACK_OBJECT_POSITIVE_INTEGER);
        assert_int_equal(result.data.via.u64, ids[i]);
    }
    assert_int_equal(at, packed->start + packed->size);
    msgpack_unpacked_destroy(&result);
}

/* The bytes themselves: the engine's own encoder would write no longer ones. */
static void assert_shortest(const msgpack_sbuffer *buffer, const packed_t *packed, const uint32_t *ids,
                            size_t count)
{
    msgpack_sbuffer expected;
    msgpack_packer packer;
    msgpack_sbuffer_init(&expected);
    msgpack_packer_init(&packer, &expected, msgpack_sbuffer_write);
    for (size_t i = 0; i < count; i++)
        msgpack_pack_uint32(&packer, ids[i]);
    assert_int_equal(packed->size, expected.size);
    if (expected.size > 0)
        assert_memory_equal(buffer->data + packed->start, expected.data, expected.size);
    msgpack_sbuffer_destroy(&expected);
}

static void test_each_id_takes_the_width_that_it_needs(void **state)
{
    (void)state;
    static const uint32_t ids[] = {0,      1,       0x7f,       0x80,       0xff,       0x100,
                                   0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffffe, UINT32_MAX};
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    packed_t packed = pack_ids(&buffer, ids, COUNT_OF(ids));
    assert_int_equal(packed.size, 3 + 2 * 2 + 2 * 3 + 5 * 5);
    assert_ids(&buffer, &packed, ids, COUNT_OF(ids));
    assert_shortest(&buffer, &packed, ids, COUNT_OF(ids));
    msgpack_sbuffer_destroy(&buffer);
}

static void test_a_prompt_without_ids_is_no_bytes(void **state)
{
    (void)state;
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    packed_t packed = pack_ids(&buffer, NULL, 0);
    assert_int_equal(packed.start, 0);
    assert_int_equal(packed.size, 0);
    assert_int_equal(packed.count, 0);
    msgpack_sbuffer_destroy(&buffer);
}

static void test_random_prompts_one_after_the_other_are_each_what_was_added(void **state)
{
    (void)state;
    enum { ROUNDS = 200, PROMPTS = 8, LONGEST = 3000 };
    static uint32_t ids[PROMPTS][LONGEST];
    random_seed = 1;
    for (int round = 0; round < ROUNDS; round++) {
        packed_t packed[PROMPTS];
        size_t counts[PROMPTS];
        msgpack_sbuffer buffer;
        msgpack_sbuffer_init(&buffer);
        for (size_t p = 0; p < PROMPTS; p++) {
            counts[p] = random_below(random_below(10) == 0 ? LONGEST : 40);
            for (size_t i = 0; i < counts[p]; i++)
                ids[p][i] = (uint32_t)random_bits() >> random_below(32);
            packed[p] = pack_ids(&buffer, ids[p], counts[p]);
        }
        for (size_t p = 0; p < PROMPTS; p++) { /* the buffer has moved by now */
            assert_ids(&buffer, &packed[p], ids[p], counts[p]);
            assert_shortest(&buffer, &packed[p], ids[p], counts[p]);
            assert_int_equal(packed[p].start, p == 0 ? 0 : packed[p - 1].start + packed[p - 1].size);
        }
        msgpack_sbuffer_destroy(&buffer);
    }
}

static void test_ids_go_behind_what_the_buffer_has(void **state)
{
    (void)state;
    static const uint32_t ids[] = {5, 70000};
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(msgpack_sbuffer_write(&buffer, "before", 6), 0);
    packed_t packed = pack_ids(&buffer, ids, COUNT_OF(ids));
    assert_int_equal(msgpack_sbuffer_write(&buffer, "behind", 6), 0);
    assert_int_equal(packed.start, 6);
    assert_int_equal(buffer.size, 6 + 6 + 6);
    assert_memory_equal(buffer.data,
                        "before\x05\xce\x00\x01\x11\x70"
                        "behind",
                        buffer.size);
    assert_ids(&buffer, &packed, ids, COUNT_OF(ids));
    msgpack_sbuffer_destroy(&buffer);
}

/* Each id is written where there is room for the widest one, so one byte less must make the buffer grow. */
static void test_any_room_that_is_left_is_enough_or_made(void **state)
{
    (void)state;
    static const uint32_t widest = UINT32_MAX;
    for (size_t room = 0; room <= 10; room++) {
        msgpack_sbuffer buffer = {.size = 0, .data = malloc(300 + room), .alloc = 300 + room};
        assert_non_null(buffer.data);
        memset(buffer.data, 'x', 300);
        buffer.size = 300;
        packed_t packed = pack_ids(&buffer, &widest, 1);
        assert_int_equal(packed.start, 300);
        assert_int_equal(buffer.size, 305);
        assert_ids(&buffer, &packed, &widest, 1);
        assert_int_equal(buffer.data[299], 'x');
        msgpack_sbuffer_destroy(&buffer);
    }
}

static void test_a_long_prompt_does_not_take_much_more_than_its_bytes(void **state)
{
    (void)state;
    enum { LONG = 1000000 };
    msgpack_sbuffer buffer;
    wire_prompt_packer_t packer;
    packed_t packed;
    msgpack_sbuffer_init(&buffer);
    wire_prompt_begin(&packer, &buffer);
    for (uint32_t i = 0; i < LONG; i++)
        wire_prompt_add(&packer, 0x10000 + i);
    assert_true(wire_prompt_end(&packer, &packed.start, &packed.size, &packed.count));
    assert_int_equal(packed.count, LONG);
    assert_int_equal(packed.size, 5 * LONG);
    assert_true(buffer.alloc <= 2 * packed.size + 512);
    msgpack_sbuffer_destroy(&buffer);
}

/* A buffer that claims to be as large as no memory is cannot grow. */
static void test_without_memory_the_prompt_fails_and_the_buffer_keeps_what_it_had(void **state)
{
    (void)state;
    size_t full = SIZE_MAX / 8;
    msgpack_sbuffer buffer = {.size = full, .alloc = full};
    wire_prompt_packer_t packer;
    packed_t packed = {7, 7, 7};
    wire_prompt_begin(&packer, &buffer);
    for (uint32_t i = 0; i < 1000; i++)
        wire_prompt_add(&packer, i);
    assert_false(wire_prompt_end(&packer, &packed.start, &packed.size, &packed.count));
    assert_int_equal(buffer.size, full);
    assert_int_equal(buffer.alloc, full);
    assert_null(buffer.data);
    assert_int_equal(packed.start + packed.size + packed.count, 21); /* untouched */
}

static void test_memory_that_ends_midway_takes_the_first_ids_back(void **state)
{
    (void)state;
    size_t full = SIZE_MAX / 8;
    char room[8];
    wire_prompt_packer_t packer;
    packed_t packed;
    msgpack_sbuffer buffer = {.size = 2, .data = room, .alloc = sizeof room};
    wire_prompt_begin(&packer, &buffer);
    wire_prompt_add(&packer, 1);
    assert_int_equal(buffer.size, 3);
    buffer = (msgpack_sbuffer){.size = full, .alloc = full}; /* from here on there is no room */
    wire_prompt_add(&packer, 2);
    assert_false(wire_prompt_end(&packer, &packed.start, &packed.size, &packed.count));
    assert_int_equal(buffer.size, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_id_takes_the_width_that_it_needs),
        cmocka_unit_test(test_a_prompt_without_ids_is_no_bytes),
        cmocka_unit_test(test_random_prompts_one_after_the_other_are_each_what_was_added),
        cmocka_unit_test(test_ids_go_behind_what_the_buffer_has),
        cmocka_unit_test(test_any_room_that_is_left_is_enough_or_made),
        cmocka_unit_test(test_a_long_prompt_does_not_take_much_more_than_its_bytes),
        cmocka_unit_test(test_without_memory_the_prompt_fails_and_the_buffer_keeps_what_it_had),
        cmocka_unit_test(test_memory_that_ends_midway_takes_the_first_ids_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
