/* Frames that were made to hurt (cases B079 and B111): every decoder refuses them, on a stack of 256 KiB.
 * And each kind of text that is not UTF-8. */
#include "common/wire_control.h"
#include "common/wire_handshake.h"
#include "common/wire_json.h"
#include "common/wire_logprobs.h"
#include "common/wire_outputs.h"
#include "common/wire_publish.h"
#include "common/wire_registration.h"
#include "tests/unit/wire_frame.h"

#include <pthread.h>

static wg_status_t decode_any(const void *data, size_t size, wg_error_t *error)
{
    wire_reader_t reader;
    wire_reader_init(&reader, data, size);
    wire_reader_skip(&reader);
    return wire_reader_finish(&reader, "value", error);
}

static wg_status_t decode_handshake(const void *data, size_t size, wg_error_t *error)
{
    wire_handshake_t out;
    return wire_handshake_decode(&out, data, size, error);
}

static wg_status_t decode_registration(const void *data, size_t size, wg_error_t *error)
{
    wire_registration_t out;
    return wire_registration_decode(&out, data, size, error);
}

static wg_status_t decode_outputs(const void *data, size_t size, wg_error_t *error)
{
    wire_outputs_t out;
    return wire_outputs_decode(&out, data, size, error);
}

static wg_status_t decode_publish(const void *data, size_t size, wg_error_t *error)
{
    wire_publish_t out;
    return wire_publish_decode(&out, data, size, error);
}

static wg_status_t decode_control(const void *data, size_t size, wg_error_t *error)
{
    wire_control_t out;
    return wire_control_decode(&out, data, size, error);
}

/* A tensor that is refused has a status of its own; here only that it is refused matters. */
static wg_status_t decode_logprobs(const void *data, size_t size, wg_error_t *error)
{
    wire_logprobs_t out;
    const wire_bytes_t frames[] = {{data, size}, {data, size}};
    wg_status_t status = wire_logprobs_read(&out, frames[0], frames, COUNT_OF(frames), error);
    return status == WG_OK ? WG_OK : WG_FAIL(error, DECODE, "logprobs", (size_t)0, "refused");
}

/* Of what is not sound it makes null, and without a large text on the way. */
static wg_status_t decode_json(const void *data, size_t size, wg_error_t *error)
{
    text_buffer_t out = {0};
    wire_json_write(&out, (wire_bytes_t){data, size});
    bool is_null = out.size == 4 && memcmp(out.data, "null", 4) == 0 && out.capacity < 4096;
    text_buffer_free(&out);
    return is_null ? WG_FAIL(error, DECODE, "JSON", (size_t)0, "null") : WG_OK;
}

static decode_fn *const decoders[] = {decode_any,     decode_handshake, decode_registration, decode_outputs,
                                      decode_publish, decode_control,   decode_logprobs,     decode_json};

/* --- bombs --- */

/* So many times the same bytes, in a message that is sound up to there. */
typedef struct {
    const char *prefix;
    size_t prefix_size;
    const char *unit;
    size_t unit_size;
    size_t times;
} bomb_t;

#define BYTES(literal) literal, sizeof(literal) - 1
#define MAP_KEY "\x81\xa1k"
#define OUTPUT "\x92\x00\x91\x9a\xa1r\x90"   /* EngineCoreOutputs, up to the output's index 2 */
#define TENSOR "\x94\x93\xa3<i4\x92\x01\x01" /* logprobs, up to the first tensor's data */

static const bomb_t bombs[] = {
    {BYTES(""), BYTES("\xdd\xff\xff\xff\xff"), 1},
    {BYTES(""), BYTES("\xdd\xff\x00\x00\x00"), 1},
    {BYTES(""), BYTES("\xdf\x80\x00\x00\x00\x01\x02\x03"), 1},
    {BYTES(""), BYTES("\xdf\xff\xff\xff\xff"), 1},
    {BYTES(""), BYTES("\xdb\xff\xff\xff\xffhello"), 1}, /* a text of 4 GiB in 10 bytes */
    {BYTES(""), BYTES("\xc6\xff\xff\xff\xffhello"), 1},
    {BYTES(""), BYTES("\xc9\xff\xff\xff\xff\x01hell"), 1},
    {BYTES(""), BYTES("\xc7\xff"), 1},
    {BYTES(""), BYTES("\xd8\x01"), 1},
    {BYTES(""), BYTES("\x91"), 100000},
    {BYTES(""), BYTES("\x81\x91"), 100000},
    {BYTES(""), BYTES("\xdc\xff\xff"), 24000},
    {BYTES(""), BYTES("\xde\xff\xff"), 24000},
    {BYTES(""), BYTES("\xdd\x00\x01\x00\x00"), 24000},
    {BYTES(MAP_KEY), BYTES("\x91"), 100000},    /* where an unknown key is passed over */
    {BYTES("\x98\x00"), BYTES("\x91"), 100000}, /* EngineCoreOutputs: outputs */
    {BYTES("\x98\x00"), BYTES("\xdc\xff\xff"), 24000},
    {BYTES("\x98\x00\x90" MAP_KEY), BYTES("\x91"), 100000},            /* scheduler_stats */
    {BYTES(OUTPUT), BYTES("\x91"), 100000},                            /* an output's logprobs */
    {BYTES(OUTPUT "\xc0\xc0\xc0\xc0\xc0\xc0"), BYTES(MAP_KEY), 50000}, /* its kv_transfer_params */
    {BYTES(OUTPUT TENSOR), BYTES("\xc9\xff\xff\xff\xff\x03"), 1},
    {BYTES(TENSOR), BYTES("\xdd\xff\xff\xff\xff"), 1}, /* logprobs: a tensor's data */
    {BYTES(TENSOR), BYTES("\xc9\xff\xff\xff\xff\x03"), 1},
    {BYTES(TENSOR), BYTES("\xc6\xff\xff\xff\xff"), 1},
    {BYTES(TENSOR), BYTES("\x91"), 100000},
    {BYTES("\x94\x93\xa3<i4"), BYTES("\xdd\xff\xff\xff\xff"), 1}, /* and its shape */
    {BYTES("\x94\x93\xa3<i4"), BYTES("\x91"), 100000},
    {BYTES("\x94\x93\xa3<i4"), BYTES("\x92\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"), 10000},
    {BYTES("\x93"), BYTES("\xdd\xff\xff\xff\xff"), 1}, /* publish: counts */
    {BYTES("\x93"), BYTES("\x91"), 100000},
    {BYTES("\x92\xa4"
           "BEAT"),
     BYTES("\xdd\xff\xff\xff\xff"), 1},
    {BYTES("\x92\xa4"
           "BEAT"),
     BYTES("\x91"), 100000},
};

static frame_t bomb_frame(const bomb_t *bomb)
{
    frame_t frame = frame_of_size(bomb->prefix_size + bomb->times * bomb->unit_size);
    memcpy(frame.data, bomb->prefix, bomb->prefix_size);
    for (size_t at = bomb->prefix_size; at < frame.size; at += bomb->unit_size)
        memcpy(frame.data + at, bomb->unit, bomb->unit_size);
    return frame;
}

/* In a thread of its own, so cmocka's asserts, which jump, must wait for the verdict. */
static void *defuse_all(void *context)
{
    size_t *survived = context;
    for (size_t i = 0; i < COUNT_OF(bombs); i++) {
        frame_t frame = bomb_frame(&bombs[i]);
        for (size_t d = 0; d < COUNT_OF(decoders); d++) {
            wg_error_t error = {0};
            *survived +=
                decoders[d](frame.data, frame.size, &error) == WG_E_DECODE && error.status == WG_E_DECODE;
        }
        frame_free(&frame);
    }
    return NULL;
}

static void test_bombs_are_refused_on_a_small_stack(void **state)
{
    (void)state;
    pthread_t thread;
    pthread_attr_t attributes;
    size_t survived = 0;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, (size_t)256 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attributes, defuse_all, &survived), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    assert_int_equal(survived, COUNT_OF(bombs) * COUNT_OF(decoders));
}

static void test_a_bomb_is_refused_at_its_header(void **state)
{
    (void)state;
    static const frame_refusal_t refusals[] = {
        {RAW("\xdd\xff\xff\xff\xff"), 5, "a count is larger than the frame"},
        {RAW("\xdf\x80\x00\x00\x00\x01\x02\x03"), 5, "a count is larger than the frame"},
        {RAW("\xdb\xff\xff\xff\xffhello"), 5, "a length is larger than the frame"},
        {RAW("\xc6\xff\xff\xff\xffhello"), 5, "a length is larger than the frame"},
        {RAW("\xc9\xff\xff\xff\xff\x01hell"), 6, "a length is larger than the frame"},
        {RAW("\x92\x01\xc1"), 2, "not MessagePack (byte c1)"},
    };
    assert_frames_refused(decode_any, "value", refusals, COUNT_OF(refusals));
}

/* --- nesting --- */

static frame_t nested(const char *opening, size_t size, unsigned depth, const char *leaf)
{
    frame_t frame = frame_of_size(size * depth + 1);
    for (unsigned i = 0; i < depth; i++)
        memcpy(frame.data + i * size, opening, size);
    frame.data[size * depth] = (uint8_t)*leaf;
    return frame;
}

static void test_values_may_nest_64_deep_and_no_deeper(void **state)
{
    (void)state;
    static const struct {
        const char *opening;
        size_t size;
    } shapes[] = {{BYTES("\x91")}, {BYTES("\x81\x01")}, {BYTES("\xdc\x00\x01")}, {BYTES("\x92\xc0")}};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        wg_error_t error;
        size_t size = shapes[i].size;
        frame_t deep = nested(shapes[i].opening, size, WIRE_DEPTH_MAX, "\xc0");
        assert_int_equal(decode_any(deep.data, deep.size, &error), WG_OK);
        frame_free(&deep);
        deep = nested(shapes[i].opening, size, WIRE_DEPTH_MAX + 1, "\xc0");
        assert_int_equal(decode_any(deep.data, deep.size, &error), WG_E_DECODE);
        assert_non_null(strstr(error.message, "nested too deeply"));
        frame_free(&deep);
    }
}

static void test_an_empty_array_counts_as_a_level(void **state)
{
    (void)state;
    frame_t deep = nested(BYTES("\x91"), WIRE_DEPTH_MAX - 1, "\x90");
    assert_int_equal(decode_any(deep.data, deep.size, NULL), WG_OK);
    frame_free(&deep);
    deep = nested(BYTES("\x91"), WIRE_DEPTH_MAX, "\x80");
    assert_int_equal(decode_any(deep.data, deep.size, NULL), WG_E_DECODE);
    frame_free(&deep);
}

static void test_wide_is_not_deep(void **state)
{
    (void)state;
    enum { ARRAYS = 60000 };
    frame_t frame = frame_of_size(3 + 2 * ARRAYS);
    memcpy(frame.data, (const uint8_t[]){0xdc, ARRAYS >> 8, ARRAYS & 0xff}, 3);
    for (size_t i = 0; i < ARRAYS; i++)
        memcpy(frame.data + 3 + 2 * i, (const uint8_t[]){0x91, 0x80}, 2);
    assert_int_equal(decode_any(frame.data, frame.size, NULL), WG_OK);
    frame_free(&frame);
}

/* --- texts --- */

static const struct {
    const char *kind;
    const char *bytes;
    size_t size;
} not_utf8[] = {
    {"a lone continuation byte", BYTES("\x80")},
    {"a lone continuation byte behind a letter", BYTES("a\xbf")},
    {"an overlong form of two bytes", BYTES("\xc0\xaf")},
    {"the longest overlong form of two bytes", BYTES("\xc1\xbf")},
    {"an overlong form of three bytes", BYTES("\xe0\x80\xaf")},
    {"the longest overlong form of three bytes", BYTES("\xe0\x9f\xbf")},
    {"an overlong form of four bytes", BYTES("\xf0\x80\x80\xaf")},
    {"the longest overlong form of four bytes", BYTES("\xf0\x8f\xbf\xbf")},
    {"an overlong NUL", BYTES("\xc0\x80")},
    {"the first surrogate", BYTES("\xed\xa0\x80")},
    {"the last surrogate", BYTES("\xed\xbf\xbf")},
    {"a pair of surrogates", BYTES("\xed\xa0\xbd\xed\xb8\x80")},
    {"U+110000", BYTES("\xf4\x90\x80\x80")},
    {"far above U+10FFFF", BYTES("\xf7\xbf\xbf\xbf")},
    {"a lead byte of five", BYTES("\xf8\x88\x80\x80\x80")},
    {"a lead byte of six", BYTES("\xfc\x84\x80\x80\x80\x80")},
    {"the byte fe", BYTES("\xfe")},
    {"the byte ff", BYTES("\xff")},
    {"a cut form of two bytes", BYTES("\xc3")},
    {"a cut form of three bytes", BYTES("\xe2\x82")},
    {"a cut form of four bytes", BYTES("\xf0\x9f\x98")},
    {"a letter in place of the second byte", BYTES("\xc3(")},
    {"a letter in place of the third byte", BYTES("\xe2\x82(")},
    {"a letter in place of the fourth byte", BYTES("\xf0\x9f\x98(")},
    {"a lead byte in place of a continuation byte", BYTES("\xe2\xc3\xbc")},
};

static void test_each_kind_of_invalid_text_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(not_utf8); i++) {
        msgpack_sbuffer buffer;
        msgpack_packer packer;
        msgpack_sbuffer_init(&buffer);
        msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
        msgpack_pack_map(&packer, 1); /* as a key, which no decoder knows and none may pass over */
        msgpack_pack_str_with_body(&packer, not_utf8[i].bytes, not_utf8[i].size);
        msgpack_pack_nil(&packer);
        frame_t frame = frame_of_buffer(&buffer);
        wire_text_t text = {"untouched", 9};
        wire_reader_t reader;
        wire_reader_init(&reader, frame.data + 1, frame.size - 1);
        if (wire_utf8_valid(not_utf8[i].bytes, not_utf8[i].size) || wire_reader_text(&reader, &text))
            fail_msg("accepted: %s", not_utf8[i].kind);
        assert_int_equal(text.size, 9);
        assert_string_equal(reader.fault, "a string that is not UTF-8");
        for (size_t d = 0; d < COUNT_OF(decoders); d++)
            assert_int_equal(decoders[d](frame.data, frame.size, NULL), WG_E_DECODE);
        frame_free(&frame);
    }
}

/* What the bits say, and whether they had to be written that long. */
static bool is_code_point(const uint8_t *bytes, size_t size, uint32_t lead_bits, uint32_t least)
{
    uint32_t code = lead_bits;
    for (size_t i = 1; i < size; i++) {
        if (bytes[i] >> 6 != 2)
            return false;
        code = code << 6 | (bytes[i] & 0x3fu);
    }
    return code >= least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

static void test_two_and_three_bytes_are_valid_where_they_make_a_code_point(void **state)
{
    (void)state;
    for (unsigned lead = 0xc0; lead < 0xf0; lead++) {
        for (unsigned rest = 0; rest < 0x10000; rest++) {
            const uint8_t bytes[] = {(uint8_t)lead, (uint8_t)(rest >> 8), (uint8_t)rest};
            size_t size = lead < 0xe0 ? 2 : 3;
            bool valid = lead < 0xe0 ? is_code_point(bytes, 2, lead & 0x1f, 0x80)
                                     : is_code_point(bytes, 3, lead & 0x0f, 0x800);
            if (wire_utf8_valid(bytes, size) != valid)
                fail_msg("%02x %02x %02x", bytes[0], bytes[1], bytes[2]);
        }
    }
}

static void test_four_bytes_are_valid_where_they_make_a_code_point(void **state)
{
    (void)state;
    static const uint8_t tails[] = {0x00, 0x7f, 0x80, 0x81, 0xbf, 0xc0, 0xff};
    for (unsigned lead = 0xf0; lead < 0x100; lead++) {
        for (unsigned i = 0; i < 256 * COUNT_OF(tails) * COUNT_OF(tails); i++) {
            const uint8_t bytes[] = {(uint8_t)lead, (uint8_t)i, tails[i / 256 % COUNT_OF(tails)],
                                     tails[i / 256 / COUNT_OF(tails)]};
            bool valid = lead < 0xf8 && is_code_point(bytes, 4, lead & 7, 0x10000);
            if (wire_utf8_valid(bytes, 4) != valid)
                fail_msg("%02x %02x %02x %02x", bytes[0], bytes[1], bytes[2], bytes[3]);
        }
    }
}

static void test_every_code_point_is_valid(void **state)
{
    (void)state;
    assert_true(wire_utf8_valid(NULL, 0));
    assert_true(wire_utf8_valid("a\0b", 3));
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        const uint8_t two[] = {(uint8_t)(0xc0 | code >> 6), (uint8_t)(0x80 | (code & 0x3f))};
        const uint8_t three[] = {(uint8_t)(0xe0 | code >> 12), (uint8_t)(0x80 | (code >> 6 & 0x3f)), two[1]};
        const uint8_t four[] = {(uint8_t)(0xf0 | code >> 18), (uint8_t)(0x80 | (code >> 12 & 0x3f)), three[1],
                                two[1]};
        const uint8_t one = (uint8_t)code;
        bool valid = code < 0x80      ? wire_utf8_valid(&one, 1)
                     : code < 0x800   ? wire_utf8_valid(two, 2)
                     : code < 0x10000 ? wire_utf8_valid(three, 3)
                                      : wire_utf8_valid(four, 4);
        if (valid != (code < 0xd800 || code > 0xdfff))
            fail_msg("U+%04X", code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bombs_are_refused_on_a_small_stack),
        cmocka_unit_test(test_a_bomb_is_refused_at_its_header),
        cmocka_unit_test(test_values_may_nest_64_deep_and_no_deeper),
        cmocka_unit_test(test_an_empty_array_counts_as_a_level),
        cmocka_unit_test(test_wide_is_not_deep),
        cmocka_unit_test(test_each_kind_of_invalid_text_is_refused),
        cmocka_unit_test(test_two_and_three_bytes_are_valid_where_they_make_a_code_point),
        cmocka_unit_test(test_four_bytes_are_valid_where_they_make_a_code_point),
        cmocka_unit_test(test_every_code_point_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
