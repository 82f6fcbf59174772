#include "common/wire_publish.h"

#include "common/wire_pack.h"

wg_status_t wire_publish_encode(msgpack_sbuffer *out, const wire_load_t *loads, uint32_t count,
                                int64_t current_wave, bool engines_running, wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, out);
    wire_pack_array(&pack, 3);
    if (loads)
        wire_pack_array(&pack, count);
    else
        wire_pack_nil(&pack);
    for (uint32_t i = 0; loads && i < count; i++) {
        wire_pack_array(&pack, 3);
        wire_pack_int(&pack, loads[i].waiting);
        wire_pack_int(&pack, loads[i].running);
        wire_pack_float(&pack, loads[i].kv_cache_usage);
    }
    wire_pack_int(&pack, current_wave);
    wire_pack_bool(&pack, engines_running);
    return wire_pack_finish(&pack, "publish", error);
}

static void read_load(wire_reader_t *reader, wire_load_t *out)
{
    uint32_t numbers = 0;
    *out = (wire_load_t){0};
    if (!wire_reader_array(reader, &numbers))
        return;
    if (numbers < 2)
        wire_reader_fail(reader, "a load of less than two numbers");
    wire_reader_int(reader, &out->waiting);
    wire_reader_int(reader, &out->running);
    if (numbers > 2)
        wire_reader_float(reader, &out->kv_cache_usage);
    for (uint32_t i = 3; i < numbers && !reader->fault; i++)
        wire_reader_skip(reader);
    if (out->waiting < 0 || out->running < 0 || !(out->kv_cache_usage >= 0.0 && out->kv_cache_usage <= 1.0))
        wire_reader_fail(reader, "a load out of range");
}

wg_status_t wire_publish_decode(wire_publish_t *out, const void *data, size_t size, wg_error_t *error)
{
    wire_reader_t reader;
    uint32_t fields = 0;
    wire_load_t load;
    *out = (wire_publish_t){0};
    wire_reader_init(&reader, data, size);
    if (wire_reader_array(&reader, &fields) && fields < 3)
        wire_reader_fail(&reader, "less than three fields");
    out->has_counts = !wire_reader_nil(&reader);
    if (out->has_counts && wire_reader_array(&reader, &out->count)) {
        out->loads = reader;
        for (uint32_t i = 0; i < out->count && !reader.fault; i++)
            read_load(&reader, &load);
    }
    if (wire_reader_int(&reader, &out->current_wave) && out->current_wave < 0)
        wire_reader_fail(&reader, "a negative wave");
    wire_reader_bool(&reader, &out->engines_running);
    for (uint32_t i = 3; i < fields && !reader.fault; i++)
        wire_reader_skip(&reader);
    return wire_reader_finish(&reader, "publish", error);
}

void wire_publish_next(wire_publish_t *publish, wire_load_t *out)
{
    read_load(&publish->loads, out);
}
