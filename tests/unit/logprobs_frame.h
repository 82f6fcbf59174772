/* logprobs_frame.h: logprobs for the tests of wire_logprobs, tensor by tensor, so that a test may spoil one.
 */
#ifndef WG_TESTS_LOGPROBS_FRAME_H
#define WG_TESTS_LOGPROBS_FRAME_H

#include "common/wire_logprobs.h"
#include "tests/unit/wire_frame.h"

#include <math.h>

typedef struct {
    const char *dtype;
    int64_t shape[4];
    size_t dimensions;
    const void *data;
    size_t size;
    int64_t frame; /* 0: inline */
    int8_t ext;    /* the type of inline data */
} tensor_t;

typedef struct {
    tensor_t tensors[3]; /* token ids, logprobs, ranks */
    const char *tail;    /* JSON, so many times behind them */
    size_t tail_times;
} tensors_t;

#define SHAPE(...) {__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
/* of an array, whose bytes are the data */
#define TENSOR(dtype, array, frame, ...)                                                                     \
    ((tensor_t){dtype, SHAPE(__VA_ARGS__), array, sizeof array, frame, 3})
#define TENSOR_EMPTY(dtype, ...) ((tensor_t){dtype, SHAPE(__VA_ARGS__), "", 0, 0, 3})

static inline void pack_tensor(msgpack_packer *packer, const tensor_t *tensor)
{
    msgpack_pack_array(packer, 3);
    msgpack_pack_str_with_body(packer, tensor->dtype, strlen(tensor->dtype));
    msgpack_pack_array(packer, tensor->dimensions);
    for (size_t i = 0; i < tensor->dimensions; i++)
        msgpack_pack_int64(packer, tensor->shape[i]);
    if (tensor->frame == 0)
        msgpack_pack_ext_with_body(packer, tensor->data, tensor->size, tensor->ext);
    else
        msgpack_pack_int64(packer, tensor->frame);
}

static inline frame_t frame_of_tensors(const tensors_t *tensors)
{
    msgpack_sbuffer buffer;
    msgpack_packer packer;
    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    msgpack_pack_array(&packer, 3 + tensors->tail_times);
    for (size_t i = 0; i < 3; i++)
        pack_tensor(&packer, &tensors->tensors[i]);
    for (size_t i = 0; i < tensors->tail_times; i++) {
        frame_t tail = frame_of_json(tensors->tail);
        msgpack_sbuffer_write(&buffer, (const char *)tail.data, tail.size);
        frame_free(&tail);
    }
    return frame_of_buffer(&buffer);
}

static inline wg_status_t read_frame(wire_logprobs_t *out, const frame_t *frame, const wire_bytes_t *frames,
                                     size_t count, wg_error_t *error)
{
    return wire_logprobs_read(out, (wire_bytes_t){frame->data, frame->size}, frames, count, error);
}

/* Everything that there is to read: the sanitizers watch. */
static inline void read_all(const wire_logprobs_t *logprobs)
{
    volatile double sum = 0;
    for (uint32_t i = 0; i < logprobs->positions; i++) {
        sum = sum + (double)wire_logprobs_rank(logprobs, i);
        for (uint32_t j = 0; j < logprobs->width; j++)
            sum =
                sum + (double)wire_logprobs_id(logprobs, i, j) + (double)wire_logprobs_value(logprobs, i, j);
    }
}

/* --- two positions, three ids each --- */

static const int32_t sound_ids[] = {1, 2, 3, 4, 5, 70000};
static const float sound_values[] = {-0.5f, -1.0f, -1.5f, -2.0f, -2.5f, -3.0f};
static const int64_t sound_ranks[] = {9, (int64_t)1 << 40};

static const tensors_t sound_inline = {.tensors = {
                                           {"<i4", SHAPE(2, 3), sound_ids, sizeof sound_ids, 0, 3},
                                           {"float32", SHAPE(2, 3), sound_values, sizeof sound_values, 0, 3},
                                           {"int64", SHAPE(2), sound_ranks, sizeof sound_ranks, 0, 3},
                                       }};

static const tensors_t sound_in_frames = {
    .tensors = {
        {"<i4", SHAPE(2, 3), sound_ids, sizeof sound_ids, 1, 3},
        {"float32", SHAPE(2, 3), sound_values, sizeof sound_values, 2, 3},
        {"int64", SHAPE(2), sound_ranks, sizeof sound_ranks, 3, 3},
    }};

static inline void assert_sound(const wire_logprobs_t *logprobs)
{
    assert_int_equal(logprobs->positions, 2);
    assert_int_equal(logprobs->width, 3);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(wire_logprobs_id(logprobs, i / 3, i % 3), sound_ids[i]);
        assert_float_equal(wire_logprobs_value(logprobs, i / 3, i % 3), sound_values[i], 0.0);
    }
    assert_true(wire_logprobs_rank(logprobs, 0) == sound_ranks[0]);
    assert_true(wire_logprobs_rank(logprobs, 1) == sound_ranks[1]);
}

#endif
