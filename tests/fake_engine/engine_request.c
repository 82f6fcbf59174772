#include "tests/fake_engine/engine_request.h"

#include "tests/fake_engine/tokens.h"

#include <stdlib.h>
#include <string.h>

engine_request_t *engine_request_new(wire_text_t id)
{
    engine_request_t *request = calloc(1, sizeof *request + id.size + 1);
    if (!request)
        return NULL;
    if (id.size > 0)
        memcpy(request->id_bytes, id.data, id.size);
    request->id = (wire_text_t){request->id_bytes, id.size};
    request->prompt_hash = TOKENS_EMPTY_PROMPT;
    request->max_tokens = ENGINE_MAX_TOKENS_DEFAULT;
    return request;
}

void engine_request_destroy(engine_request_t **request)
{
    if (!*request)
        return;
    free((*request)->stop_ids);
    free(*request);
    *request = NULL;
}

static int compare_ids(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

void engine_request_set_stop_ids(engine_request_t *request, int64_t *ids, size_t count)
{
    free(request->stop_ids);
    request->stop_ids = ids;
    request->stop_count = count;
    if (count > 1)
        qsort(ids, count, sizeof *ids, compare_ids);
}

bool engine_request_stops_at(const engine_request_t *request, int64_t token)
{
    return request->stop_count > 0 &&
           bsearch(&token, request->stop_ids, request->stop_count, sizeof token, compare_ids);
}
