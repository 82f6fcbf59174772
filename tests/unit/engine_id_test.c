/* The two bytes that are an engine's identity. */
#include "common/engine_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static void a_rank_is_two_bytes_little_endian(void **state)
{
    (void)state;
    static const struct {
        uint64_t rank;
        uint8_t bytes[2];
    } cases[] = {{0, {0, 0}},   {1, {1, 0}},   {255, {0xff, 0}},
                 {256, {0, 1}}, {258, {2, 1}}, {65535, {0xff, 0xff}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_engine_id_t id;
        assert_int_equal(wg_engine_id_from_rank(&id, cases[i].rank), WG_OK);
        assert_memory_equal(id.bytes, cases[i].bytes, 2);
    }
}

static void every_rank_comes_back(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank <= WG_RANK_MAX; rank++) {
        wg_engine_id_t id;
        wg_engine_id_t parsed;
        if (wg_engine_id_from_rank(&id, rank) != WG_OK ||
            wg_engine_id_parse(&parsed, id.bytes, sizeof id.bytes, NULL) != WG_OK ||
            wg_engine_id_rank(parsed) != rank)
            fail_msg("rank %u is lost", rank);
    }
}

static void a_rank_above_the_largest_is_refused_not_cut(void **state)
{
    (void)state;
    static const uint64_t ranks[] = {65536, 65537, (uint64_t)UINT32_MAX + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        wg_engine_id_t id = {{0xaa, 0xbb}};
        assert_int_equal(wg_engine_id_from_rank(&id, ranks[i]), WG_E_INVALID_DATA_PARALLEL_RANK);
        assert_memory_equal(id.bytes, "\xaa\xbb", 2);
    }
}

static void an_identity_of_another_size_is_refused_with_its_bytes(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        const char *message;
    } cases[] = {
        {0, "coordinator requires a two-byte engine id, got (empty)"},
        {1, "coordinator requires a two-byte engine id, got 01"},
        {3, "coordinator requires a two-byte engine id, got 01ab00"},
        {5, "coordinator requires a two-byte engine id, got 01ab00ff7f"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_engine_id_t id;
        wg_error_t error = {0};
        assert_int_equal(wg_engine_id_parse(&id, "\x01\xab\x00\xff\x7f", cases[i].size, &error),
                         WG_E_UNSUPPORTED_COORDINATOR_ENGINE_ID);
        assert_int_equal(error.status, WG_E_UNSUPPORTED_COORDINATOR_ENGINE_ID);
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(wg_engine_id_parse(&id, "\x01\xab\x00\xff\x7f", cases[i].size, NULL),
                         WG_E_UNSUPPORTED_COORDINATOR_ENGINE_ID);
    }
}

static void any_identity_has_a_text(void **state)
{
    (void)state;
    char bytes[256];
    char text[WG_ID_TEXT_SIZE];
    memset(bytes, 0xa5, sizeof bytes);
    assert_string_equal(wg_id_text(text, NULL, 0), "(empty)");
    assert_string_equal(wg_id_text(text, "\x02\x01", 2), "0201");
    assert_string_equal(wg_id_text(text, bytes, 16), "a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5");
    assert_string_equal(wg_id_text(text, bytes, 17), "a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5...");
    assert_string_equal(wg_id_text(text, bytes, 255), "a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_is_two_bytes_little_endian),
        cmocka_unit_test(every_rank_comes_back),
        cmocka_unit_test(a_rank_above_the_largest_is_refused_not_cut),
        cmocka_unit_test(an_identity_of_another_size_is_refused_with_its_bytes),
        cmocka_unit_test(any_identity_has_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
