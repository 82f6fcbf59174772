#include "tests/fake_engine/collective_frame.h"

#include "common/engine_id.h"

#include <stdlib.h>

wg_status_t collective_frame_encode(msgpack_sbuffer *out, const collective_frame_t *frame, wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, out);
    wire_pack_array(&pack, 5);
    wire_pack_int(&pack, frame->kind);
    wire_pack_int(&pack, (int64_t)frame->step);
    wire_pack_bool(&pack, frame->vote.unfinished);
    wire_pack_bool(&pack, frame->vote.pausing);
    wire_pack_array(&pack, frame->rank_count);
    for (uint32_t i = 0; i < frame->rank_count; i++)
        wire_pack_int(&pack, frame->ranks[i]);
    return wire_pack_finish(&pack, "collective", error);
}

static void read_ranks(wire_reader_t *reader, collective_frame_t *out)
{
    uint32_t count = 0;
    int64_t rank;
    if (!wire_reader_array(reader, &count) || count == 0)
        return;
    out->ranks = calloc(count, sizeof *out->ranks);
    if (!out->ranks) {
        wire_reader_fail(reader, "out of memory");
        return;
    }
    while (out->rank_count < count && wire_reader_int(reader, &rank)) {
        if (rank < 0 || rank > WG_RANK_MAX)
            wire_reader_fail(reader, "not a rank");
        else
            out->ranks[out->rank_count++] = (uint32_t)rank;
    }
}

wg_status_t collective_frame_decode(collective_frame_t *out, const void *data, size_t size, wg_error_t *error)
{
    wire_reader_t reader;
    uint32_t count = 0;
    int64_t kind = 0;
    int64_t step = 0;
    *out = (collective_frame_t){0};
    wire_reader_init(&reader, data, size);
    if (wire_reader_array(&reader, &count) && count != 5)
        wire_reader_fail(&reader, "not five values");
    wire_reader_int(&reader, &kind);
    if (kind < 0 || kind >= COLLECTIVE_KINDS)
        wire_reader_fail(&reader, "no such kind");
    wire_reader_int(&reader, &step);
    wire_reader_bool(&reader, &out->vote.unfinished);
    wire_reader_bool(&reader, &out->vote.pausing);
    read_ranks(&reader, out);
    out->kind = (collective_kind_t)kind;
    out->step = (uint64_t)step;
    wg_status_t status = wire_reader_finish(&reader, "collective", error);
    if (status != WG_OK) {
        free(out->ranks);
        *out = (collective_frame_t){0};
    }
    return status;
}
