/* The ranks of a frontend: "0-3", "0,2", "4-7,9". */
#include "common/config_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const config_value_t *value;
    const char *at;
    bool *listed; /* per rank */
    uint32_t count;
} ranks_scan_t;

static void skip_spaces(ranks_scan_t *scan)
{
    scan->at += strspn(scan->at, " ");
}

static wg_status_t scan_rank(ranks_scan_t *scan, uint32_t *out)
{
    const config_value_t *value = scan->value;
    uint32_t limit = value->reading->config->ranks.count;
    skip_spaces(scan);
    size_t digits = strspn(scan->at, "0123456789");
    if (digits == 0)
        return config_fail(value->reading, value->place,
                           "a rank is expected at `%.32s`; ranks look like \"0-3\", \"0,2\" or \"4-7,9\"",
                           scan->at);
    uint64_t rank = 0;
    for (size_t i = 0; i < digits && rank < limit; i++)
        rank = rank * 10 + (uint64_t)(scan->at[i] - '0');
    if (rank >= limit)
        return config_fail(value->reading, value->place, "rank %.*s is out of range, must be in [0, %u]",
                           (int)(digits < 32 ? digits : 32), scan->at, limit - 1);
    scan->at += digits;
    skip_spaces(scan);
    *out = (uint32_t)rank;
    return WG_OK;
}

static wg_status_t scan_range(ranks_scan_t *scan)
{
    const config_value_t *value = scan->value;
    uint32_t first = 0;
    wg_status_t status = scan_rank(scan, &first);
    if (status != WG_OK)
        return status;
    uint32_t last = first;
    if (*scan->at == '-') {
        scan->at++;
        status = scan_rank(scan, &last);
        if (status != WG_OK)
            return status;
    }
    if (last < first)
        return config_fail(value->reading, value->place, "the range %u-%u runs backwards", first, last);
    for (uint32_t rank = first; rank <= last; rank++) {
        /* Also what keeps a long text from costing more than ranks.count steps. */
        if (scan->listed[rank])
            return config_fail(value->reading, value->place, "rank %u stands twice", rank);
        scan->listed[rank] = true;
    }
    scan->count += last - first + 1;
    return WG_OK;
}

static wg_status_t scan_ranks(ranks_scan_t *scan)
{
    for (;;) {
        wg_status_t status = scan_range(scan);
        if (status != WG_OK || *scan->at == '\0')
            return status;
        if (*scan->at != ',')
            return config_fail(scan->value->reading, scan->value->place, "a comma is expected at `%.32s`",
                               scan->at);
        scan->at++;
    }
}

static wg_status_t keep_ranks(const ranks_scan_t *scan)
{
    uint32_t *ranks = reallocarray(NULL, scan->count, sizeof *ranks);
    if (!ranks)
        return config_value_no_memory(scan->value);
    uint32_t count = 0;
    for (uint32_t rank = 0; count < scan->count; rank++) {
        if (scan->listed[rank])
            ranks[count++] = rank;
    }
    *(uint32_t **)config_value_field(scan->value) = ranks;
    config_value_set_count(scan->value, count);
    return WG_OK;
}

static wg_status_t read_ranks(const config_value_t *value, const config_node_t *node)
{
    ranks_scan_t scan = {.value = value, .at = config_node_text(node)};
    scan.listed = calloc(value->reading->config->ranks.count, sizeof *scan.listed);
    if (!scan.listed)
        return config_value_no_memory(value);
    wg_status_t status = scan_ranks(&scan);
    if (status == WG_OK)
        status = keep_ranks(&scan);
    free(scan.listed);
    return status;
}

static void print_ranks(const config_key_t *key, const void *base, FILE *stream)
{
    const uint32_t *ranks = *(uint32_t *const *)config_value_at(key, base);
    uint32_t count = config_value_count(key, base);
    fputc('"', stream);
    for (uint32_t i = 0; i < count;) {
        uint32_t first = i++;
        while (i < count && ranks[i] == ranks[i - 1] + 1)
            i++;
        fprintf(stream, "%s%" PRIu32, first == 0 ? "" : ",", ranks[first]);
        if (i - first > 1)
            fprintf(stream, "-%" PRIu32, ranks[i - 1]);
    }
    fputc('"', stream);
}

const config_type_t config_type_ranks = {
    "ranks", CONFIG_NODE_TEXT, read_ranks, NULL, NULL, print_ranks,
};
