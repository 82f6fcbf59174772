/* Sampling parameters in an ADD: what is the engine's default is not sent, everything else is, and msgpack-c
 * reads from random ones what they are. */
#include "tests/unit/request_frame.h"
#include "tests/unit/wire_random.h"

static const uint32_t seven[] = {7};

static void assert_sampling(const wire_sampling_t *sampling, const char *json)
{
    char text[512];
    wire_add_t add = add_of(seven, 1);
    add.sampling = *sampling;
    snprintf(text, sizeof text,
             "['req-1-0000abcd',[7],null,%s,null,1750000000.25,null,null,null,null,null,1,0,0,null,false,"
             "'req-1']",
             json);
    frame_t expected = frame_of_json(text);
    assert_add(&add, expected.data, expected.size);
    frame_free(&expected);
}

static void test_a_sampling_parameter_is_sent_where_it_is_not_the_default(void **state)
{
    (void)state;
#define SAMPLING(json, ...)                                                                                  \
    {                                                                                                        \
        json,                                                                                                \
        {                                                                                                    \
            .repetition_penalty = 1.0, .temperature = 1.0, .top_p = 1.0, NOTHING_ELSE, __VA_ARGS__           \
        }                                                                                                    \
    }
#define EOS_NONE .eos_token_id = WIRE_NO_TOKEN, .max_tokens = 16
    static const struct {
        const char *json;
        wire_sampling_t sampling;
    } rows[] = {
        SAMPLING("{'max_tokens':16}", EOS_NONE),
        SAMPLING("{'presence_penalty':-2.0,'max_tokens':16}", .presence_penalty = -2.0, EOS_NONE),
        SAMPLING("{'frequency_penalty':0.001,'max_tokens':16}", .frequency_penalty = 0.001, EOS_NONE),
        SAMPLING("{'top_k':-1,'max_tokens':16}", .top_k = -1, EOS_NONE),
        SAMPLING("{'min_p':1.0,'max_tokens':16}", .min_p = 1.0, EOS_NONE),
        SAMPLING("{'seed':0,'max_tokens':16}", .has_seed = true, EOS_NONE),
        SAMPLING("{'max_tokens':16}", .seed = 9, EOS_NONE), /* has_seed decides */
        SAMPLING("{'ignore_eos':true,'max_tokens':16}", .ignore_eos = true, EOS_NONE),
        SAMPLING("{'max_tokens':16,'min_tokens':16}", .min_tokens = 16, EOS_NONE),
        SAMPLING("{'max_tokens':1,'_eos_token_id':0}", .max_tokens = 1, .eos_token_id = 0),
        SAMPLING("{'max_tokens':1}", .max_tokens = 1, .eos_token_id = WIRE_NO_TOKEN),
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_sampling(&rows[i].sampling, rows[i].json);
}

static void test_floats_differ_from_their_default_by_any_amount(void **state)
{
    (void)state;
    wire_sampling_t sampling;
    wire_sampling_defaults(&sampling);
    sampling.temperature = 0.0;
    assert_sampling(&sampling, "{'temperature':0.0,'max_tokens':16}");
    sampling.temperature = 1.0000000000000002;
    assert_sampling(&sampling, "{'temperature':1.0000000000000002,'max_tokens':16}");
    sampling.temperature = 1.0;
    sampling.top_p = 0.99999999999999989;
    assert_sampling(&sampling, "{'top_p':0.99999999999999989,'max_tokens':16}");
    sampling.top_p = 1.0;
    sampling.repetition_penalty = 2.0; /* never as an int, although it is whole */
    assert_sampling(&sampling, "{'repetition_penalty':2.0,'max_tokens':16}");
    sampling.repetition_penalty = 1.0;
    sampling.presence_penalty = -0.0; /* is the default */
    assert_sampling(&sampling, "{'max_tokens':16}");
}

static void test_stop_ids_are_sent_to_stop_and_to_be_masked(void **state)
{
    (void)state;
    static const int64_t stops[] = {9, 65536, 2};
    wire_sampling_t sampling;
    wire_sampling_defaults(&sampling);
    sampling.all_stop_token_ids = stops;
    sampling.all_stop_count = 3;
    sampling.eos_token_id = 2;
    assert_sampling(&sampling, "{'max_tokens':16,'_eos_token_id':2,'_all_stop_token_ids':[9,65536,2]}");
    sampling.stop_count = 2;
    assert_sampling(&sampling, "{'stop_token_ids':[9,65536],'max_tokens':16,'_eos_token_id':2,"
                               "'_all_stop_token_ids':[9,65536,2]}");
    sampling.all_stop_count = 0;
    sampling.stop_count = 0;
    assert_sampling(&sampling, "{'max_tokens':16,'_eos_token_id':2}");
}

typedef struct {
    const char *json;
    int64_t logprobs;
    int64_t prompt_logprobs;
    int64_t thinking_token_budget;
    int8_t skip_reading_prefix_cache;
} optional_t;

/* None of these has a number for "not sent" that a user could mean: 0 and -1 are both requests. */
static void test_zero_and_all_are_not_the_same_as_unset(void **state)
{
    (void)state;
    static const optional_t rows[] = {
        {"{'max_tokens':16}", WIRE_UNSET, WIRE_UNSET, WIRE_UNSET, -1},
        {"{'max_tokens':16,'logprobs':0}", 0, WIRE_UNSET, WIRE_UNSET, -1},
        {"{'max_tokens':16,'logprobs':-1}", -1, WIRE_UNSET, WIRE_UNSET, -1},
        {"{'max_tokens':16,'logprobs':20}", 20, WIRE_UNSET, WIRE_UNSET, -1},
        {"{'max_tokens':16,'prompt_logprobs':0}", WIRE_UNSET, 0, WIRE_UNSET, -1},
        {"{'max_tokens':16,'prompt_logprobs':-1}", WIRE_UNSET, -1, WIRE_UNSET, -1},
        {"{'max_tokens':16,'thinking_token_budget':0}", WIRE_UNSET, WIRE_UNSET, 0, -1},
        {"{'max_tokens':16,'thinking_token_budget':-1}", WIRE_UNSET, WIRE_UNSET, -1, -1},
        {"{'max_tokens':16,'skip_reading_prefix_cache':false}", WIRE_UNSET, WIRE_UNSET, WIRE_UNSET, 0},
        {"{'max_tokens':16,'skip_reading_prefix_cache':true}", WIRE_UNSET, WIRE_UNSET, WIRE_UNSET, 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        wire_sampling_t sampling;
        wire_sampling_defaults(&sampling);
        sampling.logprobs = rows[i].logprobs;
        sampling.prompt_logprobs = rows[i].prompt_logprobs;
        sampling.thinking_token_budget = rows[i].thinking_token_budget;
        sampling.skip_reading_prefix_cache = rows[i].skip_reading_prefix_cache;
        assert_sampling(&sampling, rows[i].json);
    }
}

static void test_lists_of_ids_are_sent_where_they_have_any(void **state)
{
    (void)state;
    static const int64_t ids[] = {0, 127, 128, 65536};
    wire_sampling_t sampling;
    wire_sampling_defaults(&sampling);
    sampling.logprob_token_ids = (wire_ids_t){ids, 0};
    sampling.allowed_token_ids = (wire_ids_t){ids, 0};
    assert_sampling(&sampling, "{'max_tokens':16}");
    sampling.logprob_token_ids.count = 1;
    assert_sampling(&sampling, "{'max_tokens':16,'logprob_token_ids':[0]}");
    sampling.allowed_token_ids.count = 4;
    assert_sampling(&sampling,
                    "{'max_tokens':16,'logprob_token_ids':[0],'allowed_token_ids':[0,127,128,65536]}");
}

/* A value that is packed already is copied, whatever it is. */
static void test_packed_maps_are_sent_as_they_are(void **state)
{
    (void)state;
    frame_t map = frame_of_json("{'a':[1,{'b':null}],'c':0.5}");
    const wire_bytes_t packed = {map.data, map.size};
    wire_sampling_t sampling;
    wire_sampling_defaults(&sampling);
    sampling.structured_outputs = packed;
    assert_sampling(&sampling, "{'max_tokens':16,'structured_outputs':{'a':[1,{'b':null}],'c':0.5}}");
    sampling.structured_outputs = (wire_bytes_t){NULL, 0};
    sampling.repetition_detection = packed;
    assert_sampling(&sampling, "{'max_tokens':16,'repetition_detection':{'a':[1,{'b':null}],'c':0.5}}");
    sampling.repetition_detection = (wire_bytes_t){NULL, 0};
    sampling.extra_args = packed;
    assert_sampling(&sampling, "{'max_tokens':16,'extra_args':{'a':[1,{'b':null}],'c':0.5}}");
    frame_free(&map);
}

/* --- random parameters, as msgpack-c reads them --- */

static const msgpack_object *find(const msgpack_object *map, const char *key)
{
    const msgpack_object *found = NULL;
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object_kv *pair = &map->via.map.ptr[i];
        assert_int_equal(pair->key.type, MSGPACK_OBJECT_STR);
        if (pair->key.via.str.size == strlen(key) &&
            memcmp(pair->key.via.str.ptr, key, pair->key.via.str.size) == 0) {
            assert_null(found); /* none stands twice */
            found = &pair->val;
        }
    }
    return found;
}

/* Each counts the pair if it is there, and says whether it must be. */
static size_t assert_int_pair(const msgpack_object *map, const char *key, int64_t value, bool sent)
{
    const msgpack_object *object = find(map, key);
    assert_int_equal(object != NULL, sent);
    if (object)
        assert_true(object->type ==
                        (value < 0 ? MSGPACK_OBJECT_NEGATIVE_INTEGER : MSGPACK_OBJECT_POSITIVE_INTEGER) &&
                    object->via.i64 == value);
    return sent;
}

static size_t assert_float_pair(const msgpack_object *map, const char *key, double value, double absent)
{
    const msgpack_object *object = find(map, key);
    bool sent = value < absent || value > absent;
    assert_int_equal(object != NULL, sent);
    if (object)
        assert_true(object->type == MSGPACK_OBJECT_FLOAT64 && object->via.f64 >= value &&
                    object->via.f64 <= value);
    return sent;
}

static size_t assert_ids_pair(const msgpack_object *map, const char *key, const int64_t *ids, size_t count)
{
    const msgpack_object *object = find(map, key);
    assert_int_equal(object != NULL, count > 0);
    if (!object)
        return 0;
    assert_int_equal(object->type, MSGPACK_OBJECT_ARRAY);
    assert_int_equal(object->via.array.size, count);
    for (size_t i = 0; i < count; i++)
        assert_true(object->via.array.ptr[i].via.i64 == ids[i]);
    return 1;
}

static size_t assert_bias_pair(const msgpack_object *map, const wire_sampling_t *sampling)
{
    const msgpack_object *object = find(map, "logit_bias");
    assert_int_equal(object != NULL, sampling->logit_bias_count > 0);
    if (!object)
        return 0;
    assert_int_equal(object->via.map.size, sampling->logit_bias_count);
    for (size_t i = 0; i < sampling->logit_bias_count; i++) {
        assert_true(object->via.map.ptr[i].key.via.i64 == sampling->logit_bias[i].id);
        assert_int_equal(object->via.map.ptr[i].val.type, MSGPACK_OBJECT_FLOAT64);
        assert_memory_equal(&object->via.map.ptr[i].val.via.f64, &sampling->logit_bias[i].bias, 8);
    }
    return 1;
}

static void assert_same_sampling(const msgpack_object *map, const wire_sampling_t *s)
{
    size_t pairs = 0;
    assert_int_equal(map->type, MSGPACK_OBJECT_MAP);
    pairs += assert_float_pair(map, "presence_penalty", s->presence_penalty, 0.0);
    pairs += assert_float_pair(map, "frequency_penalty", s->frequency_penalty, 0.0);
    pairs += assert_float_pair(map, "repetition_penalty", s->repetition_penalty, 1.0);
    pairs += assert_float_pair(map, "temperature", s->temperature, 1.0);
    pairs += assert_float_pair(map, "top_p", s->top_p, 1.0);
    pairs += assert_float_pair(map, "min_p", s->min_p, 0.0);
    pairs += assert_int_pair(map, "top_k", s->top_k, s->top_k != 0);
    pairs += assert_int_pair(map, "seed", s->seed, s->has_seed);
    pairs += assert_int_pair(map, "max_tokens", s->max_tokens, true);
    pairs += assert_int_pair(map, "min_tokens", s->min_tokens, s->min_tokens != 0);
    pairs += assert_int_pair(map, "_eos_token_id", s->eos_token_id, s->eos_token_id != WIRE_NO_TOKEN);
    pairs += assert_int_pair(map, "logprobs", s->logprobs, s->logprobs != WIRE_UNSET);
    pairs += assert_int_pair(map, "prompt_logprobs", s->prompt_logprobs, s->prompt_logprobs != WIRE_UNSET);
    pairs += assert_ids_pair(map, "stop_token_ids", s->all_stop_token_ids, s->stop_count);
    pairs += assert_ids_pair(map, "_all_stop_token_ids", s->all_stop_token_ids, s->all_stop_count);
    pairs += assert_ids_pair(map, "logprob_token_ids", s->logprob_token_ids.ids, s->logprob_token_ids.count);
    pairs += assert_ids_pair(map, "allowed_token_ids", s->allowed_token_ids.ids, s->allowed_token_ids.count);
    pairs += assert_bias_pair(map, s);
    assert_int_equal(find(map, "ignore_eos") != NULL, s->ignore_eos);
    assert_int_equal(map->via.map.size, pairs + s->ignore_eos); /* and nothing else */
}

static bool chance(void)
{
    return random_below(2) == 0;
}

static double random_double(double absent)
{
    return chance() ? absent : (double)(random_number() >> 11) / 1048576.0;
}

static int64_t random_id(void)
{
    return (int64_t)(random_number() >> 1);
}

enum { IDS = 20 };

static wire_sampling_t random_sampling(int64_t ids[IDS], wire_logit_bias_t biases[IDS])
{
    wire_sampling_t out;
    wire_sampling_defaults(&out);
    for (size_t i = 0; i < IDS; i++) {
        ids[i] = random_id();
        biases[i] = (wire_logit_bias_t){random_id(), random_double(0.0)};
    }
    out.presence_penalty = -random_double(0.0);
    out.frequency_penalty = random_double(0.0);
    out.repetition_penalty = random_double(1.0);
    out.temperature = random_double(1.0);
    out.top_p = random_double(1.0);
    out.min_p = random_double(0.0);
    out.top_k = chance() ? 0 : (int64_t)random_number();
    out.has_seed = chance();
    out.seed = (int64_t)random_number();
    out.max_tokens = random_id();
    out.min_tokens = chance() ? 0 : random_id();
    out.ignore_eos = chance();
    out.eos_token_id = chance() ? WIRE_NO_TOKEN : random_id();
    out.logprobs = chance() ? WIRE_UNSET : (int64_t)random_below(22) - 1;
    out.prompt_logprobs = chance() ? WIRE_UNSET : (int64_t)random_below(22) - 1;
    out.all_stop_token_ids = ids;
    out.all_stop_count = random_below(IDS);
    out.stop_count = random_below(out.all_stop_count + 1);
    out.logprob_token_ids = (wire_ids_t){ids, random_below(IDS)};
    out.allowed_token_ids = (wire_ids_t){ids, chance() ? 0 : random_below(IDS)};
    out.logit_bias = biases;
    out.logit_bias_count = chance() ? 0 : random_below(IDS);
    return out;
}

static void test_random_parameters_are_what_msgpack_c_reads(void **state)
{
    (void)state;
    enum { ROUNDS = 3000 };
    random_seed = 21;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t ids[IDS];
        wire_logit_bias_t biases[IDS];
        msgpack_sbuffer buffer;
        msgpack_unpacked result;
        size_t at = 0;
        wire_add_t add = add_of(seven, 1);
        add.sampling = random_sampling(ids, biases);
        msgpack_sbuffer_init(&buffer);
        msgpack_unpacked_init(&result);
        assert_int_equal(wire_add_encode(&buffer, &add, NULL), WG_OK);
        assert_int_equal(msgpack_unpack_next(&result, buffer.data, buffer.size, &at), MSGPACK_UNPACK_SUCCESS);
        assert_int_equal(at, buffer.size);
        assert_int_equal(result.data.via.array.size, 17);
        assert_same_sampling(&result.data.via.array.ptr[3], &add.sampling);
        msgpack_unpacked_destroy(&result);
        msgpack_sbuffer_destroy(&buffer);
    }
}

static void test_the_defaults_are_those_of_the_engine(void **state)
{
    (void)state;
    wire_sampling_t out;
    memset(&out, 0xff, sizeof out);
    wire_sampling_defaults(&out);
    assert_int_equal(out.max_tokens, 16);
    assert_int_equal(out.min_tokens, 0);
    assert_int_equal(out.top_k, 0);
    assert_int_equal(out.eos_token_id, WIRE_NO_TOKEN);
    assert_int_equal(out.all_stop_count, 0);
    assert_int_equal(out.stop_count, 0);
    assert_false(out.has_seed || out.ignore_eos);
    assert_true(out.logprobs == WIRE_UNSET && out.prompt_logprobs == WIRE_UNSET);
    assert_true(out.thinking_token_budget == WIRE_UNSET);
    assert_int_equal(out.skip_reading_prefix_cache, -1);
    assert_int_equal(out.logprob_token_ids.count + out.allowed_token_ids.count + out.logit_bias_count, 0);
    assert_int_equal(out.structured_outputs.size + out.repetition_detection.size + out.extra_args.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sampling_parameter_is_sent_where_it_is_not_the_default),
        cmocka_unit_test(test_floats_differ_from_their_default_by_any_amount),
        cmocka_unit_test(test_stop_ids_are_sent_to_stop_and_to_be_masked),
        cmocka_unit_test(test_zero_and_all_are_not_the_same_as_unset),
        cmocka_unit_test(test_lists_of_ids_are_sent_where_they_have_any),
        cmocka_unit_test(test_packed_maps_are_sent_as_they_are),
        cmocka_unit_test(test_random_parameters_are_what_msgpack_c_reads),
        cmocka_unit_test(test_the_defaults_are_those_of_the_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
