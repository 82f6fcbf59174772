#include "common/wire_logprobs.h"

#include <string.h>

#define EXT_INLINE 3 /* vLLM's extension type for a tensor's bytes */
#define DIMENSIONS_MAX 2u

typedef struct {
    const wire_bytes_t *frames;
    size_t frame_count;
    wg_error_t *error;
} tensor_source_t;

static wg_status_t unsupported(const tensor_source_t *source, const char *why)
{
    return WG_FAIL(source->error, UNSUPPORTED_AUX_FRAMES, why);
}

typedef struct {
    bool is_float;
    bool is_wide;
} dtype_t;

static bool find_dtype(wire_text_t name, dtype_t *out)
{
    static const struct {
        const char *name;
        dtype_t dtype;
    } dtypes[] = {
        {"<i4", {false, false}},   {"<i8", {false, true}},   {"<f4", {true, false}},     /* numpy */
        {"int32", {false, false}}, {"int64", {false, true}}, {"float32", {true, false}}, /* torch */
    };
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (wire_text_is(name, dtypes[i].name)) {
            *out = dtypes[i].dtype;
            return true;
        }
    }
    return false;
}

static wg_status_t find_data(wire_reader_t *reader, const tensor_source_t *source, wire_bytes_t *out)
{
    int8_t type;
    int64_t frame;
    if (wire_reader_peek(reader) == WIRE_EXT)
        return wire_reader_ext(reader, &type, out) && type == EXT_INLINE
                   ? WG_OK
                   : unsupported(source, "inline data of an unknown extension type");
    if (!wire_reader_int(reader, &frame))
        return unsupported(source, "a tensor's data is neither inline nor a frame");
    if (frame < 1 || (uint64_t)frame >= source->frame_count)
        return unsupported(source, "a tensor's data is in a frame that is not there");
    *out = source->frames[frame];
    return WG_OK;
}

/* `[dtype, shape, data]` of that many dimensions; shape: their lengths. */
static wg_status_t read_tensor(wire_reader_t *reader, const tensor_source_t *source, bool is_float,
                               uint32_t dimensions, wire_tensor_t *out, uint32_t shape[DIMENSIONS_MAX])
{
    uint32_t items = 0;
    uint32_t found = 0;
    uint64_t elements = 1;
    wire_text_t name;
    dtype_t dtype = {false, false};
    if (!wire_reader_array(reader, &items) || items != 3 || !wire_reader_text(reader, &name))
        return unsupported(source, "a tensor is not [dtype, shape, data]");
    if (!find_dtype(name, &dtype) || dtype.is_float != is_float)
        return unsupported(source, "a tensor's dtype is wrong");
    if (!wire_reader_array(reader, &found) || found != dimensions)
        return unsupported(source, "a tensor's shape is wrong");
    for (uint32_t i = 0; i < dimensions; i++) {
        int64_t length = -1;
        if (!wire_reader_int(reader, &length) || length < 0 || length > INT32_MAX)
            return unsupported(source, "a tensor's shape is wrong");
        shape[i] = (uint32_t)length;
        elements *= (uint64_t)length; /* two lengths of 31 bits */
    }
    wg_status_t status = find_data(reader, source, &out->data);
    out->is_wide = dtype.is_wide;
    if (status == WG_OK && (elements > SIZE_MAX / 8 || out->data.size != elements * (dtype.is_wide ? 8 : 4)))
        return unsupported(source, "a tensor's bytes do not match its shape");
    return status;
}

wg_status_t wire_logprobs_read(wire_logprobs_t *out, wire_bytes_t raw, const wire_bytes_t *frames,
                               size_t frame_count, wg_error_t *error)
{
    wire_reader_t reader;
    uint32_t items = 0;
    uint32_t ids_shape[DIMENSIONS_MAX] = {0};
    uint32_t values_shape[DIMENSIONS_MAX] = {0};
    uint32_t ranks_shape[DIMENSIONS_MAX] = {0};
    const tensor_source_t source = {frames, frame_count, error};
    wire_reader_init(&reader, raw.data, raw.size);
    if (!wire_reader_array(&reader, &items) || items < 3)
        return WG_FAIL(error, DECODE, "logprobs", reader.at, "not an array of token ids, logprobs and ranks");
    wg_status_t status = read_tensor(&reader, &source, false, 2, &out->ids, ids_shape);
    if (status == WG_OK)
        status = read_tensor(&reader, &source, true, 2, &out->values, values_shape);
    if (status == WG_OK)
        status = read_tensor(&reader, &source, false, 1, &out->ranks, ranks_shape);
    if (status != WG_OK)
        return status;
    if (ids_shape[0] != values_shape[0] || ids_shape[1] != values_shape[1] ||
        ids_shape[0] != ranks_shape[0] || ids_shape[1] == 0)
        return unsupported(&source, "the shapes of token ids, logprobs and ranks do not fit together");
    out->positions = ids_shape[0];
    out->width = ids_shape[1];
    return WG_OK;
}

static uint64_t little_endian(const uint8_t *bytes, size_t width)
{
    uint64_t value = 0;
    for (size_t i = width; i > 0; i--)
        value = value << 8 | bytes[i - 1];
    return value;
}

static int64_t integer_at(const wire_tensor_t *tensor, size_t index)
{
    if (tensor->is_wide)
        return (int64_t)little_endian(tensor->data.data + 8 * index, 8);
    return (int32_t)little_endian(tensor->data.data + 4 * index, 4);
}

int64_t wire_logprobs_id(const wire_logprobs_t *logprobs, uint32_t position, uint32_t column)
{
    return integer_at(&logprobs->ids, (size_t)position * logprobs->width + column);
}

float wire_logprobs_value(const wire_logprobs_t *logprobs, uint32_t position, uint32_t column)
{
    float value;
    size_t index = (size_t)position * logprobs->width + column;
    uint32_t bits = (uint32_t)little_endian(logprobs->values.data.data + 4 * index, 4);
    memcpy(&value, &bits, sizeof value);
    return value;
}

int64_t wire_logprobs_rank(const wire_logprobs_t *logprobs, uint32_t position)
{
    return integer_at(&logprobs->ranks, position);
}
