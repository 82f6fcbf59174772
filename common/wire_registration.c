#include "common/wire_registration.h"

#include <string.h>

static void read_value(wire_reader_t *reader, wire_text_t key, wire_registration_t *out)
{
    const struct {
        const char *key;
        int64_t *target;
    } numbers[] = {
        {"max_model_len", &out->max_model_len},
        {"num_gpu_blocks", &out->num_gpu_blocks},
        {"block_size", &out->block_size},
        {"max_num_seqs", &out->max_num_seqs},
        {"data_parallel_size", &out->data_parallel_size},
    };
    if (wire_reader_nil(reader))
        return;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!wire_text_is(key, numbers[i].key))
            continue;
        int64_t value = 0;
        if (wire_reader_int(reader, &value) && value < 0)
            wire_reader_fail(reader, "a negative count");
        *numbers[i].target = value;
        return;
    }
    wire_text_t text;
    if (!wire_text_is(key, "vllm_version")) {
        wire_reader_skip(reader);
    } else if (wire_reader_text(reader, &text)) {
        size_t size = text.size < sizeof out->vllm_version ? text.size : sizeof out->vllm_version - 1;
        while (size > 0 && !wire_utf8_valid(text.data, size))
            size--; /* a cut must not split a character */
        memcpy(out->vllm_version, text.data, size);
        out->vllm_version[size] = '\0';
    }
}

wg_status_t wire_registration_decode(wire_registration_t *out, const void *data, size_t size,
                                     wg_error_t *error)
{
    wire_reader_t reader;
    uint32_t pairs = 0;
    *out = (wire_registration_t){
        .max_model_len = WIRE_UNKNOWN,
        .num_gpu_blocks = WIRE_UNKNOWN,
        .block_size = WIRE_UNKNOWN,
        .max_num_seqs = WIRE_UNKNOWN,
        .data_parallel_size = WIRE_UNKNOWN,
    };
    if (size == 0)
        return WG_OK;
    wire_reader_init(&reader, data, size);
    wire_reader_map(&reader, &pairs);
    for (uint32_t i = 0; i < pairs && !reader.fault; i++) {
        wire_text_t key;
        if (wire_reader_text(&reader, &key))
            read_value(&reader, key, out);
    }
    return wire_reader_finish(&reader, "EngineCoreReadyResponse", error);
}
