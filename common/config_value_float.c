#include "common/config_value.h"

#include "common/config_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_TEXT_SIZE 32u

/* As short as it can be and still mean the same. */
static const char *shortest(double number, char text[NUMBER_TEXT_SIZE])
{
    snprintf(text, NUMBER_TEXT_SIZE, "%.15g", number);
    if (strtod(text, NULL) < number || strtod(text, NULL) > number)
        snprintf(text, NUMBER_TEXT_SIZE, "%.17g", number);
    return text;
}

static double number_of(const config_node_t *node)
{
    return config_node_kind(node) == CONFIG_NODE_INT ? (double)config_node_int(node)
                                                     : config_node_float(node);
}

static wg_status_t read_in_range(const config_value_t *value, const config_node_t *node, bool above)
{
    const config_key_t *key = value->key;
    char text[NUMBER_TEXT_SIZE];
    double number = number_of(node);
    bool good = above ? number > (double)key->min : number >= (double)key->min;
    if (!good || !(number <= (double)key->max))
        return config_fail(value->reading, value->place,
                           "%s is out of range, must be %s %" PRId64 " and at most %" PRId64,
                           shortest(number, text), above ? "above" : "at least", key->min, key->max);
    *(double *)config_value_field(value) = number;
    return WG_OK;
}

static wg_status_t read_float(const config_value_t *value, const config_node_t *node)
{
    return read_in_range(value, node, false);
}

static wg_status_t read_float_above(const config_value_t *value, const config_node_t *node)
{
    return read_in_range(value, node, true);
}

static wg_status_t fall_back(const config_value_t *value)
{
    *(double *)config_value_field(value) = NAN;
    return WG_OK;
}

static bool is_set(const config_key_t *key, const void *base)
{
    return !isnan(*(const double *)config_value_at(key, base));
}

/* libconfig takes a float only with a point or an exponent. */
static void print(const config_key_t *key, const void *base, FILE *stream)
{
    char text[NUMBER_TEXT_SIZE];
    shortest(*(const double *)config_value_at(key, base), text);
    fprintf(stream, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

const config_type_t config_type_float = {
    "float", CONFIG_NODE_FLOAT, read_float, fall_back, is_set, print,
};

const config_type_t config_type_float_above = {
    "float", CONFIG_NODE_FLOAT, read_float_above, fall_back, is_set, print,
};
