/* engine_sampling.h: the sampling_params of an ADD, checked as strictly as vLLM's engine core does: types and
 * ranges as in protocol.md 5. Keys that are not there are passed over, as the engine's decoder does.
 * No state; any thread. Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_ENGINE_SAMPLING_H
#define WG_TESTS_FAKE_ENGINE_ENGINE_SAMPLING_H

#include "common/wire_reader.h"
#include "tests/fake_engine/engine_request.h"

/* Reads the map and sets what steers a request: its limits, stop ids and EOS. False with the reader's fault
 * set; then *key is the key at fault, a static text, or NULL where the map itself is at fault. */
WG_MUST_CHECK bool engine_sampling_read(wire_reader_t *reader, engine_request_t *request, uint32_t vocab_size,
                                        const char **key);

#endif
