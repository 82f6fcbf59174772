/* What engines say at start-up: HELLO and READY, and the registration. Each input is tried as both. */
#include "common/wire_handshake.h"
#include "common/wire_registration.h"
#include "tests/fuzz/fuzz.h"

static void decode_handshake(const uint8_t *data, size_t size)
{
    wire_handshake_t out;
    wg_error_t error = {0};
    wg_status_t status = wire_handshake_decode(&out, data, size, &error);
    if (status != WG_OK) {
        FUZZ_CHECK(status == WG_E_DECODE);
        fuzz_refusal(status, &error);
        return;
    }
    FUZZ_CHECK(out.kind == WIRE_HANDSHAKE_HELLO || out.kind == WIRE_HANDSHAKE_READY);
    fuzz_text(out.parallel_config_hash);
}

static void decode_registration(const uint8_t *data, size_t size)
{
    wire_registration_t out;
    wg_error_t error = {0};
    wg_status_t status = wire_registration_decode(&out, data, size, &error);
    if (status != WG_OK) {
        FUZZ_CHECK(status == WG_E_DECODE && size > 0);
        fuzz_refusal(status, &error);
        return;
    }
    const char *end = memchr(out.vllm_version, '\0', sizeof out.vllm_version);
    FUZZ_CHECK(end);
    FUZZ_CHECK(wire_utf8_valid(out.vllm_version, (size_t)(end - out.vllm_version)));
    FUZZ_CHECK(out.max_model_len >= WIRE_UNKNOWN && out.num_gpu_blocks >= WIRE_UNKNOWN);
    FUZZ_CHECK(out.block_size >= WIRE_UNKNOWN && out.max_num_seqs >= WIRE_UNKNOWN);
    FUZZ_CHECK(out.data_parallel_size >= WIRE_UNKNOWN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode_handshake(data, size);
    decode_registration(data, size);
    return 0;
}
