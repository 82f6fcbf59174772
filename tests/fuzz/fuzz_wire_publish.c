/* What a coordinator publishes, and that what was read can be said again in the same meaning. */
#include "common/wire_publish.h"
#include "tests/fuzz/fuzz.h"

static void check_load(const wire_load_t *load)
{
    FUZZ_CHECK(load->waiting >= 0 && load->running >= 0);
    FUZZ_CHECK(load->kv_cache_usage >= 0.0 && load->kv_cache_usage <= 1.0);
}

static void check_same(wire_publish_t *read, const wire_load_t *loads, uint32_t count, int64_t wave,
                       bool running)
{
    FUZZ_CHECK(read->has_counts == (loads != NULL) && read->count == count);
    FUZZ_CHECK(read->current_wave == wave && read->engines_running == running);
    for (uint32_t i = 0; i < count; i++) {
        wire_load_t load;
        wire_publish_next(read, &load);
        FUZZ_CHECK(load.waiting == loads[i].waiting && load.running == loads[i].running);
        FUZZ_CHECK(load.kv_cache_usage >= loads[i].kv_cache_usage &&
                   load.kv_cache_usage <= loads[i].kv_cache_usage);
    }
}

static void encode_again(const wire_load_t *loads, uint32_t count, int64_t wave, bool running)
{
    msgpack_sbuffer buffer;
    wire_publish_t again;
    msgpack_sbuffer_init(&buffer);
    FUZZ_CHECK(wire_publish_encode(&buffer, loads, count, wave, running, NULL) == WG_OK);
    FUZZ_CHECK(wire_publish_decode(&again, buffer.data, buffer.size, NULL) == WG_OK);
    check_same(&again, loads, count, wave, running);
    msgpack_sbuffer_destroy(&buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wire_publish_t out;
    wg_error_t error = {0};
    wg_status_t status = wire_publish_decode(&out, data, size, &error);
    if (status != WG_OK) {
        FUZZ_CHECK(status == WG_E_DECODE);
        fuzz_refusal(status, &error);
        return 0;
    }
    FUZZ_CHECK(out.count <= size);
    FUZZ_CHECK(out.has_counts || out.count == 0);
    wire_load_t *loads = out.has_counts ? calloc((size_t)out.count + 1, sizeof *loads) : NULL;
    FUZZ_CHECK(loads || !out.has_counts);
    for (uint32_t i = 0; i < out.count; i++) {
        wire_publish_next(&out, &loads[i]);
        check_load(&loads[i]);
    }
    encode_again(loads, out.count, out.current_wave, out.engines_running);
    free(loads);
    return 0;
}
