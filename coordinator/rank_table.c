#include "coordinator/rank_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_MAX = 128 };

typedef struct {
    rank_table_rank_t public;
    bool served;        /* some engine of this rank has been READY, and none has dialled since */
    bool waiting_hello; /* a second engine dialled while the first was READY */
    bool early_ready;   /* READY came while the rank was ABSENT: its registration may be on its way */
    bool dialled;       /* its HELLO has come to us, and its READY will */
    bool said_ready;
    bool refused; /* for its hash, when it said READY */
    char hash[HASH_MAX + 1];
} entry_t;

struct rank_table {
    entry_t *entries;
    uint32_t count;
    bool lockstep;
    rank_table_changed_fn *on_changed;
    void *context;
};

wg_status_t rank_table_new(rank_table_t **out, uint32_t count, bool lockstep,
                           rank_table_changed_fn *on_changed, void *context, wg_error_t *error)
{
    rank_table_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (self)
        self->entries = calloc(count, sizeof *self->entries);
    if (!self || !self->entries) {
        free(self);
        return WG_FAIL(error, SYSTEM, "rank table", "out of memory");
    }
    self->count = count;
    self->lockstep = lockstep;
    self->on_changed = on_changed;
    self->context = context;
    for (uint32_t rank = 0; rank < count; rank++) /* all unknown: an empty response never fails */
        (void)!wire_registration_decode(&self->entries[rank].public.registration, NULL, 0, NULL);
    *out = self;
    return WG_OK;
}

void rank_table_destroy(rank_table_t **table)
{
    rank_table_t *self = *table;
    if (!self)
        return;
    for (uint32_t rank = 0; rank < self->count; rank++)
        free((void *)self->entries[rank].public.response.data);
    free(self->entries);
    free(self);
    *table = NULL;
}

uint32_t rank_table_count(const rank_table_t *table)
{
    return table->count;
}

uint32_t rank_table_count_in(const rank_table_t *table, wg_rank_state_t state)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < table->count; rank++)
        count += table->entries[rank].public.state == state;
    return count;
}

/* An engine that has dialled is not, before it has registered: its predecessor may be. */
static bool is_connected(const entry_t *entry)
{
    bool loads = entry->public.state == WG_RANK_HELLO && entry->dialled && !entry->public.registered;
    return entry->public.route_up && !loads;
}

uint32_t rank_table_connected(const rank_table_t *table)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < table->count; rank++)
        count += is_connected(&table->entries[rank]);
    return count;
}

const rank_table_rank_t *rank_table_get(const rank_table_t *table, uint32_t rank)
{
    return rank < table->count ? &table->entries[rank].public : NULL;
}

wg_status_t rank_table_identify(const rank_table_t *table, wire_bytes_t identity, uint32_t *rank,
                                wg_error_t *error)
{
    wg_engine_id_t id;
    wg_status_t status = wg_engine_id_parse(&id, identity.data, identity.size, error);
    if (status != WG_OK)
        return status;
    *rank = wg_engine_id_rank(id);
    if (*rank >= table->count) {
        char text[WG_ID_TEXT_SIZE];
        char why[64];
        snprintf(why, sizeof why, "rank %u is not below ranks.count = %u", *rank, table->count);
        return WG_FAIL(error, UNEXPECTED_HANDSHAKE_IDENTITY, wg_id_text(text, id.bytes, sizeof id.bytes),
                       why);
    }
    return WG_OK;
}

/* The only writer of a rank's state. */
static void set_state(rank_table_t *self, uint32_t rank, wg_rank_state_t state, int64_t now_ms)
{
    rank_table_rank_t *public = &self->entries[rank].public;
    wg_rank_state_t before = public->state;
    public->state = state;
    public->since_ms = now_ms;
    if (state == WG_RANK_READY)
        self->entries[rank].served = true;
    if (self->on_changed && state != before)
        self->on_changed(self->context, rank, before);
}

static void begin_hello(rank_table_t *self, uint32_t rank, bool dialled, int64_t now_ms)
{
    entry_t *entry = &self->entries[rank];
    entry->public.registered = false;
    entry->served = false;
    entry->waiting_hello = false;
    entry->early_ready = false;
    entry->dialled = dialled;
    entry->said_ready = false;
    entry->refused = false;
    entry->hash[0] = '\0';
    set_state(self, rank, WG_RANK_HELLO, now_ms);
}

wg_status_t rank_table_hello(rank_table_t *table, uint32_t rank, int64_t now_ms, wg_error_t *error)
{
    entry_t *entry = &table->entries[rank];
    if (entry->public.state != WG_RANK_HELLO && entry->public.route_up) {
        entry->waiting_hello = true;
        return WG_FAIL(error, UNEXPECTED_HANDSHAKE_MESSAGE, rank,
                       "a second HELLO while the first engine lives; the first stays");
    }
    begin_hello(table, rank, true, now_ms);
    return WG_OK;
}

void rank_table_offered(rank_table_t *table, uint32_t rank, int64_t now_ms)
{
    begin_hello(table, rank, false, now_ms);
}

bool rank_table_waiting_hello(rank_table_t *table, uint32_t rank)
{
    bool waiting = table->entries[rank].waiting_hello;
    table->entries[rank].waiting_hello = false;
    return waiting;
}

/* A rank whose hash is known and differs from this one, or -1. */
static int64_t rank_with_other_hash(const rank_table_t *self, uint32_t rank, const char *hash)
{
    for (uint32_t other = 0; other < self->count; other++) {
        const entry_t *entry = &self->entries[other];
        if (other != rank && entry->public.state == WG_RANK_READY && entry->hash[0] &&
            strcmp(entry->hash, hash) != 0)
            return other;
    }
    return -1;
}

static wg_status_t check_hash(rank_table_t *self, uint32_t rank, wire_text_t hash, wg_error_t *error)
{
    char *kept = self->entries[rank].hash;
    if (hash.size > HASH_MAX)
        return WG_FAIL(error, UNEXPECTED_HANDSHAKE_MESSAGE, rank, "parallel_config_hash is too long");
    if (hash.size > 0)
        memcpy(kept, hash.data, hash.size);
    kept[hash.size] = '\0';
    if (hash.size == 0)
        return WG_FAIL(error, UNEXPECTED_HANDSHAKE_MESSAGE, rank,
                       "READY without parallel_config_hash in a lockstep group");
    int64_t other = rank_with_other_hash(self, rank, kept);
    if (other >= 0) {
        char why[128];
        snprintf(
            why, sizeof why,
            "parallel_config_hash differs from that of rank %lld: the group would hang; give all the same "
            "parallel options",
            (long long)other);
        return WG_FAIL(error, UNEXPECTED_HANDSHAKE_MESSAGE, rank, why);
    }
    return WG_OK;
}

wg_status_t rank_table_ready(rank_table_t *table, uint32_t rank, wire_text_t hash, int64_t now_ms,
                             wg_error_t *error)
{
    entry_t *entry = &table->entries[rank];
    const rank_table_rank_t *public = &entry->public;
    bool connected = is_connected(entry); /* in an earlier life of ours it has dialled, then */
    if (entry->said_ready || (public->state == WG_RANK_LOST && !connected))
        return WG_FAIL(error, UNEXPECTED_HANDSHAKE_MESSAGE, rank, "READY without a HELLO before it");
    if (table->lockstep) {
        wg_status_t status = check_hash(table, rank, hash, error);
        entry->refused = status != WG_OK;
        if (status != WG_OK)
            return status;
    }
    if (public->state == WG_RANK_ABSENT && !connected) {
        entry->early_ready = true;
        return WG_FAIL(error, UNEXPECTED_HANDSHAKE_MESSAGE, rank, "READY without a HELLO before it");
    }
    entry->said_ready = true;
    if (public->state != WG_RANK_READY)
        set_state(table, rank, WG_RANK_READY, now_ms);
    return WG_OK;
}

static wg_status_t keep_response(rank_table_t *table, uint32_t rank, wire_bytes_t response, wg_error_t *error)
{
    rank_table_rank_t *public = &table->entries[rank].public;
    wire_registration_t registration;
    wg_status_t status = wire_registration_decode(&registration, response.data, response.size, error);
    if (status != WG_OK)
        return status;
    uint8_t *copy = malloc(response.size + 1); /* an empty response is one, too */
    if (!copy)
        return WG_FAIL(error, SYSTEM, "ready response", "out of memory");
    if (response.size > 0)
        memcpy(copy, response.data, response.size);
    free((void *)public->response.data);
    public->response = (wire_bytes_t){copy, response.size};
    public->registration = registration;
    public->registered = true;
    return WG_OK;
}

wg_status_t rank_table_register(rank_table_t *table, uint32_t rank, wire_bytes_t response, int64_t now_ms,
                                wg_error_t *error)
{
    wg_status_t status = keep_response(table, rank, response, error);
    if (status != WG_OK || table->entries[rank].public.state != WG_RANK_ABSENT)
        return status;
    const entry_t *entry = &table->entries[rank];
    bool ready =
        entry->early_ready && (!table->lockstep || rank_with_other_hash(table, rank, entry->hash) < 0);
    set_state(table, rank, ready ? WG_RANK_READY : WG_RANK_HELLO, now_ms);
    return WG_OK;
}

bool rank_table_learn(rank_table_t *table, const wire_control_entry_t *known, int64_t now_ms)
{
    entry_t *entry = &table->entries[known->rank];
    bool served = known->number == WG_RANK_READY && entry->public.state == WG_RANK_ABSENT && !entry->served;
    bool response = known->has_response && !entry->public.registered;
    if (entry->public.state == WG_RANK_HELLO) /* what is known of the rank is its predecessor's */
        return false;
    if (response && keep_response(table, known->rank, known->response, NULL) != WG_OK)
        return false;
    entry->served = entry->served || served;
    if (served && entry->public.route_up)
        set_state(table, known->rank, WG_RANK_READY, now_ms);
    return served || response;
}

void rank_table_answered(rank_table_t *table, uint32_t rank, int64_t now_ms)
{
    const entry_t *entry = &table->entries[rank];
    bool will_say_so = entry->public.state == WG_RANK_HELLO && entry->dialled;
    if (entry->public.state != WG_RANK_READY && is_connected(entry) && !will_say_so && !entry->refused)
        set_state(table, rank, WG_RANK_READY, now_ms);
}

void rank_table_ready_lost(rank_table_t *table, uint32_t rank)
{
    table->entries[rank].dialled = false;
}

void rank_table_route(rank_table_t *table, uint32_t rank, bool up, int64_t now_ms)
{
    entry_t *entry = &table->entries[rank];
    wg_rank_state_t state = entry->public.state;
    bool was_up = entry->public.route_up;
    entry->public.route_up = up;
    if (up && entry->served && (state == WG_RANK_ABSENT || state == WG_RANK_LOST))
        set_state(table, rank, WG_RANK_READY, now_ms);
    else if (!up && was_up &&
             (state == WG_RANK_READY || (state == WG_RANK_HELLO && entry->public.registered)))
        set_state(table, rank, WG_RANK_LOST, now_ms);
}

void rank_table_left(rank_table_t *table, uint32_t rank, int64_t now_ms)
{
    if (table->entries[rank].public.state == WG_RANK_HELLO)
        set_state(table, rank, WG_RANK_LOST, now_ms);
}
