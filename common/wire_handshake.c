#include "common/wire_handshake.h"

#include "common/rank_map.h"
#include "common/wire_pack.h"

wg_status_t wire_handshake_decode(wire_handshake_t *out, const void *data, size_t size, wg_error_t *error)
{
    wire_reader_t reader;
    uint32_t pairs = 0;
    wire_text_t status = {NULL, 0};
    *out = (wire_handshake_t){.kind = WIRE_HANDSHAKE_HELLO};
    wire_reader_init(&reader, data, size);
    wire_reader_map(&reader, &pairs);
    for (uint32_t i = 0; i < pairs && !reader.fault; i++) {
        wire_text_t key = {NULL, 0};
        bool flag;
        if (!wire_reader_text(&reader, &key))
            break;
        if (wire_text_is(key, "status"))
            wire_reader_text(&reader, &status);
        else if (wire_text_is(key, "local") || wire_text_is(key, "headless"))
            wire_reader_bool(&reader, &flag);
        else if (wire_text_is(key, "parallel_config_hash") && !wire_reader_nil(&reader))
            wire_reader_text(&reader, &out->parallel_config_hash);
        else if (!wire_text_is(key, "parallel_config_hash"))
            wire_reader_skip(&reader);
    }
    if (!reader.fault && !status.data)
        wire_reader_fail(&reader, "no status");
    else if (!reader.fault && wire_text_is(status, "READY"))
        out->kind = WIRE_HANDSHAKE_READY;
    else if (!reader.fault && !wire_text_is(status, "HELLO"))
        wire_reader_fail(&reader, "a status that is neither HELLO nor READY");
    return wire_reader_finish(&reader, "HandshakeMessage", error);
}

static void pack_addresses(wire_pack_t *pack, const wg_config_t *config, uint32_t rank, const char *key)
{
    bool inputs = strcmp(key, "inputs") == 0;
    uint32_t count = rank_map_client_count(config, rank);
    wire_pack_literal(pack, key);
    wire_pack_array(pack, count);
    for (uint32_t index = 0; index < count; index++) {
        rank_map_client_t client;
        if (!rank_map_client(config, rank, index, &client))
            pack->failed = true;
        else
            wire_pack_literal(pack, inputs ? client.input->address : client.output->address);
    }
}

static void pack_optional(wire_pack_t *pack, const char *key, const config_endpoint_t *endpoint)
{
    wire_pack_literal(pack, key);
    if (endpoint->address[0])
        wire_pack_literal(pack, endpoint->address);
    else
        wire_pack_nil(pack);
}

/* Exactly these keys: the engine assigns each onto its own configuration (protocol.md 3). */
static void pack_parallel_config(wire_pack_t *pack, const wg_config_t *config)
{
    wire_pack_literal(pack, "parallel_config");
    if (!config->ranks.lockstep) {
        wire_pack_map(pack, 0);
        return;
    }
    wire_pack_map(pack, 4);
    wire_pack_literal(pack, "data_parallel_master_ip");
    wire_pack_literal(pack, config->ranks.master_ip);
    wire_pack_literal(pack, "data_parallel_master_port");
    wire_pack_int(pack, config->ranks.master_port);
    wire_pack_literal(pack, "_data_parallel_master_port_list");
    wire_pack_array(pack, config->ranks.master_port_count);
    for (uint32_t i = 0; i < config->ranks.master_port_count; i++)
        wire_pack_int(pack, config->ranks.master_ports[i]);
    wire_pack_literal(pack, "data_parallel_size");
    wire_pack_int(pack, config->ranks.count);
}

wg_status_t wire_init_encode(msgpack_sbuffer *out, const wg_config_t *config, uint32_t rank,
                             wg_error_t *error)
{
    wire_pack_t pack;
    wire_pack_init(&pack, out);
    wire_pack_map(&pack, 2);
    wire_pack_literal(&pack, "addresses");
    wire_pack_map(&pack, 5);
    pack_addresses(&pack, config, rank, "inputs");
    pack_addresses(&pack, config, rank, "outputs");
    pack_optional(&pack, "coordinator_input", &config->coordinator.engine_publish);
    pack_optional(&pack, "coordinator_output", &config->coordinator.engine_output);
    pack_optional(&pack, "frontend_stats_publish_address", &config->coordinator.frontend_publish);
    pack_parallel_config(&pack, config);
    return wire_pack_finish(&pack, "INIT", error);
}
