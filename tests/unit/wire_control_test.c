/* The control link's messages: each comes back as it was sent, and what is malformed is refused. */
#include "common/wire_control.h"

#include "common/engine_id.h"
#include "tests/unit/wire_frame.h"

static const char type[] = "control message";

static wg_status_t decode(const void *data, size_t size, wg_error_t *error)
{
    wire_control_t out;
    wg_status_t status = wire_control_decode(&out, data, size, error);
    for (uint32_t i = 0; status == WG_OK && i < out.count; i++) {
        wire_control_entry_t entry;
        wire_control_next(&out, &entry);
        assert_null(out.entries.fault); /* it was checked as a whole */
        assert_true(entry.rank <= WG_RANK_MAX);
    }
    return status;
}

static wire_control_t control_of(const frame_t *frame)
{
    wire_control_t out;
    wg_error_t error;
    if (wire_control_decode(&out, frame->data, frame->size, &error) != WG_OK)
        fail_msg("refused: %s", error.message);
    return out;
}

static frame_t frame_like(msgpack_sbuffer *buffer, const char *json)
{
    frame_t frame = frame_of_buffer(buffer);
    frame_t expected = frame_of_json(json);
    assert_int_equal(frame.size, expected.size);
    assert_memory_equal(frame.data, expected.data, frame.size);
    frame_free(&expected);
    return frame;
}

static void assert_response(const wire_control_entry_t *entry, const char *bytes, size_t size)
{
    assert_true(entry->has_response);
    assert_int_equal(entry->response.size, size);
    assert_true(size == 0 || memcmp(entry->response.data, bytes, size) == 0);
}

static wire_bytes_t response(const char *bytes, size_t size)
{
    return (wire_bytes_t){(const uint8_t *)bytes, size};
}

static void test_a_join_comes_back(void **state)
{
    (void)state;
    const wire_control_entry_t entries[] = {
        {.rank = 0, .number = WG_RANK_READY, .has_response = true, .response = response("\x81\xa1k\x00", 4)},
        {.rank = WG_RANK_MAX, .number = WG_RANK_LOST, .has_response = true, .response = response("", 0)},
    };
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_control_encode_join(&buffer, UINT64_MAX, INT64_MAX, entries, 2, NULL), WG_OK);
    frame_t frame = frame_of_buffer(&buffer);
    wire_control_t out = control_of(&frame);
    wire_control_entry_t entry;
    assert_int_equal(out.kind, WIRE_CONTROL_JOIN);
    assert_int_equal(out.version, WIRE_CONTROL_VERSION);
    assert_true((uint64_t)out.fingerprint == UINT64_MAX);
    assert_true(out.wave == INT64_MAX);
    assert_int_equal(out.count, 2);
    wire_control_next(&out, &entry);
    assert_int_equal(entry.rank, 0);
    assert_int_equal(entry.number, WG_RANK_READY);
    assert_response(&entry, "\x81\xa1k\x00", 4);
    wire_control_next(&out, &entry);
    assert_int_equal(entry.rank, WG_RANK_MAX);
    assert_int_equal(entry.number, WG_RANK_LOST);
    assert_response(&entry, "", 0);
    frame_free(&frame);
}

static void test_a_join_without_ranks_comes_back(void **state)
{
    (void)state;
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_control_encode_join(&buffer, 77, 9, NULL, 0, NULL), WG_OK);
    frame_t frame = frame_like(&buffer, "['JOIN',2,77,9,[]]");
    wire_control_t out = control_of(&frame);
    assert_int_equal(out.fingerprint, 77);
    assert_int_equal(out.wave, 9);
    assert_int_equal(out.count, 0);
    frame_free(&frame);
}

/* A rank may be READY before its response is known: dispatcher_response is then {NULL, 0}. */
static void test_a_join_with_an_unknown_response_comes_back(void **state)
{
    (void)state;
    const wire_control_entry_t entries[] = {{.rank = 3, .number = WG_RANK_READY}};
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_control_encode_join(&buffer, 0, 0, entries, 1, NULL), WG_OK);
    frame_t frame = frame_of_buffer(&buffer);
    wire_control_t out = control_of(&frame);
    wire_control_entry_t entry;
    wire_control_next(&out, &entry);
    assert_int_equal(entry.rank, 3);
    assert_false(entry.has_response);
    frame_free(&frame);
}

/* Whatever it says: it is told that it is of another version. */
static void test_a_join_of_another_version_is_one(void **state)
{
    (void)state;
    frame_t frame = frame_of_json("['JOIN',1,77,9,[[3,null]]]");
    wire_control_t out = control_of(&frame);
    assert_int_equal(out.kind, WIRE_CONTROL_JOIN);
    assert_int_equal(out.version, 1);
    assert_int_equal(out.count, 0);
    frame_free(&frame);
}

static void test_a_beat_comes_back(void **state)
{
    (void)state;
    static const wire_control_entry_t entries[] = {{.rank = 2, .number = 0},
                                                   {.rank = 5, .number = INT64_MAX}};
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_control_encode_beat(&buffer, entries, 2, NULL), WG_OK);
    frame_t frame = frame_like(&buffer, "['BEAT',[[2,0],[5,9223372036854775807]]]");
    wire_control_t out = control_of(&frame);
    wire_control_entry_t entry;
    assert_int_equal(out.kind, WIRE_CONTROL_BEAT);
    assert_int_equal(out.count, 2);
    wire_control_next(&out, &entry);
    assert_int_equal(entry.rank, 2);
    assert_int_equal(entry.number, 0);
    assert_false(entry.has_response);
    wire_control_next(&out, &entry);
    assert_int_equal(entry.rank, 5);
    assert_true(entry.number == INT64_MAX);
    frame_free(&frame);
}

static void test_the_states_of_ranks_come_back(void **state)
{
    (void)state;
    const wire_control_entry_t entries[] = {
        {.rank = 1, .number = WG_RANK_HELLO, .response = response("never sent", 10)},
        {.rank = 2, .number = WG_RANK_READY, .has_response = true, .response = response("\x80", 1)},
        {.rank = 3, .number = WG_RANK_LOST, .has_response = true, .response = response("", 0)},
    };
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_control_encode_ranks(&buffer, 41, entries, 3, NULL), WG_OK);
    frame_t frame = frame_of_buffer(&buffer);
    wire_control_t out = control_of(&frame);
    assert_int_equal(out.kind, WIRE_CONTROL_RANKS);
    assert_int_equal(out.number, 41);
    assert_int_equal(out.count, 3);
    for (size_t i = 0; i < COUNT_OF(entries); i++) {
        wire_control_entry_t entry;
        wire_control_next(&out, &entry);
        assert_int_equal(entry.rank, entries[i].rank);
        assert_int_equal(entry.number, entries[i].number);
        if (entries[i].has_response)
            assert_response(&entry, "\x80", entries[i].response.size);
        else
            assert_false(entry.has_response);
    }
    frame_free(&frame);
}

static void test_a_rank_that_nobody_has_seen_is_absent(void **state)
{
    (void)state;
    static const wire_control_entry_t absent = {.rank = 9};
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_control_encode_ranks(&buffer, 1, &absent, 1, NULL), WG_OK);
    frame_t frame = frame_like(&buffer, "['RANKS',1,[[9,0,null]]]");
    wire_control_t out = control_of(&frame);
    wire_control_entry_t entry;
    wire_control_next(&out, &entry);
    assert_int_equal(entry.rank, 9);
    assert_int_equal(entry.number, WG_RANK_ABSENT);
    assert_false(entry.has_response);
    frame_free(&frame);
}

static void test_single_words_come_back(void **state)
{
    (void)state;
    static const struct {
        wire_control_kind_t kind;
        const char *why;
        const char *json;
    } rows[] = {
        {WIRE_CONTROL_REJOIN, NULL, "['REJOIN']"},
        {WIRE_CONTROL_REFUSED, "another configuration", "['REFUSED','another configuration']"},
        {WIRE_CONTROL_REFUSED, "", "['REFUSED','']"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        msgpack_sbuffer buffer;
        msgpack_sbuffer_init(&buffer);
        assert_int_equal(wire_control_encode_word(&buffer, rows[i].kind, rows[i].why, NULL), WG_OK);
        frame_t frame = frame_like(&buffer, rows[i].json);
        wire_control_t out = control_of(&frame);
        assert_int_equal(out.kind, rows[i].kind);
        assert_int_equal(out.count, 0);
        if (rows[i].why)
            assert_true(wire_text_is(out.why, rows[i].why));
        frame_free(&frame);
    }
}

static void test_the_answer_to_a_beat_comes_back(void **state)
{
    (void)state;
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_control_encode_heard(&buffer, 12, NULL), WG_OK);
    frame_t frame = frame_like(&buffer, "['HEARD',12]");
    wire_control_t out = control_of(&frame);
    assert_int_equal(out.kind, WIRE_CONTROL_HEARD);
    assert_int_equal(out.number, 12);
    frame_free(&frame);
}

static void test_each_state_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(wg_rank_state_name(WG_RANK_ABSENT), "absent");
    assert_string_equal(wg_rank_state_name(WG_RANK_HELLO), "hello");
    assert_string_equal(wg_rank_state_name(WG_RANK_READY), "ready");
    assert_string_equal(wg_rank_state_name(WG_RANK_LOST), "lost");
    assert_string_equal(wg_rank_state_name(WG_RANK_SILENT), "silent");
    assert_string_equal(wg_rank_state_name((wg_rank_state_t)5), "unknown");
}

static void test_malformed_messages_are_refused(void **state)
{
    (void)state;
    static const frame_refusal_t refusals[] = {
        {RAW(""), 0, "the frame ends too early"},
        {JSON("{}"), 0, "not an array"},
        {JSON("'JOIN'"), 0, "not an array"},
        {JSON("[]"), 1, "the frame ends too early"},
        {JSON("[1]"), 1, "not a string"},
        {JSON("['']"), 2, "an unknown message"},
        {JSON("['join']"), 6, "an unknown message"},
        {JSON("['LEAVE']"), 7, "an unknown message"},
        {JSON("['JOIN']"), 6, "the frame ends too early"},
        {JSON("['JOIN','1',0,0,[]]"), 6, "not an integer"},
        {JSON("['JOIN',2,0.5,0,[]]"), 7, "not an integer"},
        {JSON("['JOIN',2,0,null,[]]"), 8, "not an integer"},
        {JSON("['JOIN',2,0,-1,[]]"), 9, "a negative wave"},
        {JSON("['JOIN',2,0,0,null]"), 9, "not an array"},
        {JSON("['JOIN',2,0,0,[0]]"), 10, "not an array"},
        {JSON("['JOIN',2,0,0,[[0]]]"), 11, "an entry with the wrong number of fields"},
        {JSON("['JOIN',2,0,0,[[0,2]]]"), 11, "an entry with the wrong number of fields"},
        {JSON("['JOIN',2,0,0,[[-1,2,null]]]"), 12, "a rank out of range"},
        {JSON("['JOIN',2,0,0,[[65536,2,null]]]"), 16, "a rank out of range"},
        {JSON("['JOIN',2,0,0,[[0,4,null]]]"), 13, "an unknown rank state"},
        {JSON("['JOIN',2,0,0,[[0,2,'text']]]"), 13, "not a byte string"},
        {JSON("['BEAT']"), 6, "the frame ends too early"},
        {JSON("['BEAT',null]"), 6, "not an array"},
        {JSON("['BEAT',[[0,-1]]]"), 10, "a negative number"},
        {JSON("['BEAT',[[0,null]]]"), 9, "not an integer"},
        {JSON("['BEAT',[['0',1]]]"), 8, "not an integer"},
        {JSON("['BEAT',[[0,1,2]]]"), 8, "an entry with the wrong number of fields"},
        {JSON("['RANKS']"), 7, "the frame ends too early"},
        {JSON("['RANKS',[]]"), 7, "not an integer"},
        {JSON("['RANKS',1]"), 8, "the frame ends too early"},
        {JSON("['HEARD']"), 7, "the frame ends too early"},
        {JSON("['HEARD',null]"), 7, "not an integer"},
        {JSON("['RANKS',1,[[0,4,null]]]"), 12, "an unknown rank state"},
        {JSON("['RANKS',1,[[0,-1,null]]]"), 12, "a negative number"},
        {JSON("['RANKS',1,[[0,2]]]"), 10, "an entry with the wrong number of fields"},
        {JSON("['RANKS',1,[[0,2,'text']]]"), 12, "not a byte string"},
        {JSON("['REFUSED']"), 9, "the frame ends too early"},
        {JSON("['REFUSED',null]"), 9, "not a string"},
        {RAW("\x92\xa7REFUSED\xa1\xff"), 11, "a string that is not UTF-8"},
        {RAW("\x91\xa6REJOIN\xc0"), 8, "bytes are left over"},
    };
    assert_frames_refused(decode, type, refusals, COUNT_OF(refusals));
}

/* An array's count must be that of the values behind it, whatever they are. */
static void test_a_message_whose_count_is_wrong_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {
#define ROW(literal) {literal, sizeof(literal) - 1}
        ROW("\x91\xa4JOIN\x02\x00\x00\x90"),
        ROW("\x94\xa4JOIN\x02\x00\x00\x90"),
        ROW("\x97\xa4JOIN\x02\x00\x00\x90"),
        ROW("\x93\xa4"
            "BEAT\x90"),
        ROW("\x92\xa5RANKS\x01\x90"),
        ROW("\x94\xa5RANKS\x01\x90"),
        ROW("\x91\xa5HEARD\x01"),
        ROW("\x93\xa5HEARD\x01"),
        ROW("\x91\xa7REFUSED\xa1x"),
        ROW("\x93\xa7REFUSED\xa1x"),
        ROW("\x92\xa6REJOIN"),
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (decode(rows[i].bytes, rows[i].size, NULL) != WG_E_DECODE)
            fail_msg("accepted: row %zu, whose count is %d", i, (uint8_t)rows[i].bytes[0] - 0x90);
    }
}

static const char *const sound[] = {"['BEAT',[[2,0],[5,300]]]", "['RANKS',3,[[0,0,null],[7,2,null]]]",
                                    "['JOIN',2,77,9,[[3,2,null]]]", "['HEARD',300]",
                                    "['REFUSED','another configuration']"};

static void test_no_part_of_a_message_is_a_message(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sound); i++) {
        frame_t frame = frame_of_json(sound[i]);
        assert_truncations_refused(decode, type, frame.data, frame.size, 0);
        frame_free(&frame);
    }
}

static void test_damage_does_no_harm(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sound); i++) {
        frame_t frame = frame_of_json(sound[i]);
        assert_survives_damage(decode, frame.data, frame.size);
        frame_free(&frame);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_join_comes_back),
        cmocka_unit_test(test_a_join_without_ranks_comes_back),
        cmocka_unit_test(test_a_join_with_an_unknown_response_comes_back),
        cmocka_unit_test(test_a_join_of_another_version_is_one),
        cmocka_unit_test(test_a_beat_comes_back),
        cmocka_unit_test(test_the_states_of_ranks_come_back),
        cmocka_unit_test(test_a_rank_that_nobody_has_seen_is_absent),
        cmocka_unit_test(test_single_words_come_back),
        cmocka_unit_test(test_the_answer_to_a_beat_comes_back),
        cmocka_unit_test(test_each_state_has_a_name),
        cmocka_unit_test(test_malformed_messages_are_refused),
        cmocka_unit_test(test_a_message_whose_count_is_wrong_is_refused),
        cmocka_unit_test(test_no_part_of_a_message_is_a_message),
        cmocka_unit_test(test_damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
