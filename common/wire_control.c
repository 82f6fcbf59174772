#include "common/wire_control.h"

#include "common/engine_id.h"
#include "common/wire_pack.h"

static const char *const words[] = {
    [WIRE_CONTROL_JOIN] = "JOIN",   [WIRE_CONTROL_BEAT] = "BEAT",     [WIRE_CONTROL_RANKS] = "RANKS",
    [WIRE_CONTROL_HEARD] = "HEARD", [WIRE_CONTROL_REJOIN] = "REJOIN", [WIRE_CONTROL_REFUSED] = "REFUSED",
};

const char *wg_rank_state_name(wg_rank_state_t state)
{
    static const char *const names[] = {"absent", "hello", "ready", "lost", "silent"};
    return (unsigned)state < sizeof names / sizeof *names ? names[state] : "unknown";
}

static void pack_states(wire_pack_t *pack, const wire_control_entry_t *ranks, uint32_t count)
{
    wire_pack_array(pack, count);
    for (uint32_t i = 0; i < count; i++) {
        wire_pack_array(pack, 3);
        wire_pack_int(pack, ranks[i].rank);
        wire_pack_int(pack, ranks[i].number);
        if (ranks[i].has_response)
            wire_pack_bytes(pack, ranks[i].response);
        else
            wire_pack_nil(pack);
    }
}

wg_status_t wire_control_encode_join(msgpack_sbuffer *out, uint64_t fingerprint, int64_t wave,
                                     const wire_control_entry_t *ranks, uint32_t count, wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, out);
    wire_pack_array(&pack, 5);
    wire_pack_literal(&pack, words[WIRE_CONTROL_JOIN]);
    wire_pack_int(&pack, WIRE_CONTROL_VERSION);
    wire_pack_int(&pack, (int64_t)fingerprint);
    wire_pack_int(&pack, wave);
    pack_states(&pack, ranks, count);
    return wire_pack_finish(&pack, "JOIN", error);
}

wg_status_t wire_control_encode_beat(msgpack_sbuffer *out, const wire_control_entry_t *ranks, uint32_t count,
                                     wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, out);
    wire_pack_array(&pack, 2);
    wire_pack_literal(&pack, words[WIRE_CONTROL_BEAT]);
    wire_pack_array(&pack, count);
    for (uint32_t i = 0; i < count; i++) {
        wire_pack_array(&pack, 2);
        wire_pack_int(&pack, ranks[i].rank);
        wire_pack_int(&pack, ranks[i].number);
    }
    return wire_pack_finish(&pack, "BEAT", error);
}

wg_status_t wire_control_encode_ranks(msgpack_sbuffer *out, int64_t number, const wire_control_entry_t *ranks,
                                      uint32_t count, wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, out);
    wire_pack_array(&pack, 3);
    wire_pack_literal(&pack, words[WIRE_CONTROL_RANKS]);
    wire_pack_int(&pack, number);
    pack_states(&pack, ranks, count);
    return wire_pack_finish(&pack, "RANKS", error);
}

wg_status_t wire_control_encode_heard(msgpack_sbuffer *out, int64_t number, wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, out);
    wire_pack_array(&pack, 2);
    wire_pack_literal(&pack, words[WIRE_CONTROL_HEARD]);
    wire_pack_int(&pack, number);
    return wire_pack_finish(&pack, words[WIRE_CONTROL_HEARD], error);
}

wg_status_t wire_control_encode_word(msgpack_sbuffer *out, wire_control_kind_t kind, const char *why,
                                     wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, out);
    wire_pack_array(&pack, why ? 2 : 1);
    wire_pack_literal(&pack, words[kind]);
    if (why)
        wire_pack_literal(&pack, why);
    return wire_pack_finish(&pack, words[kind], error);
}

static void read_entry(wire_reader_t *reader, wire_control_kind_t kind, wire_control_entry_t *out)
{
    uint32_t fields = 0;
    int64_t rank = 0;
    *out = (wire_control_entry_t){0};
    if (!wire_reader_array(reader, &fields))
        return;
    if (fields != (kind == WIRE_CONTROL_BEAT ? 2 : 3))
        wire_reader_fail(reader, "an entry with the wrong number of fields");
    if (wire_reader_int(reader, &rank) && (rank < 0 || rank > WG_RANK_MAX))
        wire_reader_fail(reader, "a rank out of range");
    out->rank = (uint32_t)rank;
    if (wire_reader_int(reader, &out->number) && out->number < 0)
        wire_reader_fail(reader, "a negative number");
    if (kind != WIRE_CONTROL_BEAT && out->number > WG_RANK_LOST)
        wire_reader_fail(reader, "an unknown rank state");
    if (kind == WIRE_CONTROL_BEAT || wire_reader_nil(reader))
        return;
    out->has_response = wire_reader_bytes(reader, &out->response);
}

static void read_entries(wire_reader_t *reader, wire_control_t *out)
{
    wire_control_entry_t entry;
    if (!wire_reader_array(reader, &out->count))
        return;
    out->entries = *reader;
    for (uint32_t i = 0; i < out->count && !reader->fault; i++)
        read_entry(reader, out->kind, &entry);
}

static const uint32_t field_counts[] = {
    [WIRE_CONTROL_JOIN] = 5,  [WIRE_CONTROL_BEAT] = 2,   [WIRE_CONTROL_RANKS] = 3,
    [WIRE_CONTROL_HEARD] = 2, [WIRE_CONTROL_REJOIN] = 1, [WIRE_CONTROL_REFUSED] = 2,
};

static void read_body(wire_reader_t *reader, uint32_t fields, wire_control_t *out)
{
    switch (out->kind) {
    case WIRE_CONTROL_JOIN:
        wire_reader_int(reader, &out->version);
        wire_reader_int(reader, &out->fingerprint);
        if (wire_reader_int(reader, &out->wave) && out->wave < 0)
            wire_reader_fail(reader, "a negative wave");
        if (out->version == WIRE_CONTROL_VERSION)
            read_entries(reader, out);
        else
            wire_reader_skip(reader); /* of another shape perhaps; the version is enough to refuse it */
        break;
    case WIRE_CONTROL_BEAT:
        read_entries(reader, out);
        break;
    case WIRE_CONTROL_RANKS:
        wire_reader_int(reader, &out->number);
        read_entries(reader, out);
        break;
    case WIRE_CONTROL_HEARD:
        wire_reader_int(reader, &out->number);
        break;
    case WIRE_CONTROL_REFUSED:
        wire_reader_text(reader, &out->why);
        break;
    case WIRE_CONTROL_REJOIN:
        break;
    }
    if (fields != field_counts[out->kind])
        wire_reader_fail(reader, "a message with the wrong number of fields");
}

wg_status_t wire_control_decode(wire_control_t *out, const void *data, size_t size, wg_error_t *error)
{
    wire_reader_t reader;
    uint32_t fields = 0;
    wire_text_t word = {NULL, 0};
    bool known = false;
    *out = (wire_control_t){0};
    wire_reader_init(&reader, data, size);
    if (wire_reader_array(&reader, &fields))
        wire_reader_text(&reader, &word);
    for (unsigned i = 0; word.data && i < sizeof words / sizeof *words && !known; i++) {
        known = wire_text_is(word, words[i]);
        out->kind = (wire_control_kind_t)i;
    }
    if (known)
        read_body(&reader, fields, out);
    else
        wire_reader_fail(&reader, "an unknown message");
    return wire_reader_finish(&reader, "control message", error);
}

void wire_control_next(wire_control_t *control, wire_control_entry_t *out)
{
    read_entry(&control->entries, control->kind, out);
}
