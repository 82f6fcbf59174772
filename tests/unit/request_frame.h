/* request_frame.h: ADDs for the tests of wire_request, with defaults that a test changes, and what their
 * bytes must be. */
#ifndef WG_TESTS_REQUEST_FRAME_H
#define WG_TESTS_REQUEST_FRAME_H

#include "common/wire_prompt.h"
#include "common/wire_request.h"
#include "tests/unit/wire_frame.h"

#define TEXT(literal) ((wire_text_t){literal, sizeof(literal) - 1})

static inline void assert_frame(msgpack_sbuffer *buffer, const void *expected, size_t size)
{
    frame_t frame = frame_of_buffer(buffer);
    assert_int_equal(frame.size, size);
    assert_memory_equal(frame.data, expected, size);
    frame_free(&frame);
}

static inline void assert_add(const wire_add_t *add, const void *expected, size_t size)
{
    msgpack_sbuffer buffer;
    wg_error_t error;
    msgpack_sbuffer_init(&buffer);
    assert_int_equal(wire_add_encode(&buffer, add, &error), WG_OK);
    assert_frame(&buffer, expected, size);
}

/* Lives until the next one. */
static inline wire_prompt_t prompt_of(const uint32_t *ids, size_t count)
{
    static msgpack_sbuffer buffer;
    wire_prompt_packer_t packer;
    size_t start;
    size_t size;
    msgpack_sbuffer_destroy(&buffer);
    msgpack_sbuffer_init(&buffer);
    wire_prompt_begin(&packer, &buffer);
    for (size_t i = 0; i < count; i++)
        wire_prompt_add(&packer, ids[i]);
    assert_true(wire_prompt_end(&packer, &start, &size, &count));
    return (wire_prompt_t){{(const uint8_t *)buffer.data + start, size}, count};
}

/* What is not 0 where it is not sent. */
#define NOTHING_ELSE                                                                                         \
    .logprobs = WIRE_UNSET, .prompt_logprobs = WIRE_UNSET, .thinking_token_budget = WIRE_UNSET,              \
    .skip_reading_prefix_cache = -1

static inline wire_add_t add_of(const uint32_t *prompt, size_t count)
{
    wire_add_t add = {
        .request_id = TEXT("req-1-0000abcd"),
        .external_req_id = TEXT("req-1"),
        .prompt = prompt_of(prompt, count),
        .arrival_time = 1750000000.25,
        .data_parallel_rank = -1,
        .client_index = 1,
    };
    wire_sampling_defaults(&add.sampling);
    return add;
}

#endif
