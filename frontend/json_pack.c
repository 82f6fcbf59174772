#include "frontend/json_pack.h"

void json_pack_text(wire_pack_t *pack, const json_t *text)
{
    wire_pack_text(pack, (wire_text_t){json_string_value(text), json_string_length(text)});
}

void json_pack_value(wire_pack_t *pack, const json_t *value)
{
    const char *key;
    json_t *member;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        wire_pack_map(pack, json_object_size(value));
        json_object_foreach((json_t *)value, key, member) /* reads only, but takes no const */
        {
            wire_pack_literal(pack, key);
            json_pack_value(pack, member);
        }
        break;
    case JSON_ARRAY:
        wire_pack_array(pack, json_array_size(value));
        for (size_t i = 0; i < json_array_size(value); i++)
            json_pack_value(pack, json_array_get(value, i));
        break;
    case JSON_STRING:
        json_pack_text(pack, value);
        break;
    case JSON_INTEGER:
        wire_pack_int(pack, json_integer_value(value));
        break;
    case JSON_REAL:
        wire_pack_float(pack, json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        wire_pack_bool(pack, json_is_true(value));
        break;
    case JSON_NULL:
        wire_pack_nil(pack);
        break;
    }
}
