#include "frontend/dispatcher.h"

#include <string.h>

struct dispatcher {
    uint32_t rank;
    wg_rank_state_t state;
    int64_t since_ms;
    bool route_up;
    bool registered;      /* by the engine itself, on the route that is up */
    wg_rank_state_t told; /* by the coordinator */
    bool silent;          /* the coordinator is, so nothing more is expected of it */
    bool rank_silent;
    bool answered; /* over the connections of now */
    bool served;   /* was READY on this route */
    bool lost;     /* served on a route that is gone, and not since */
    wire_registration_t registration;
    wire_bytes_t response;
    wire_load_t load;
    int64_t load_ms;
    int64_t reported_ms;                      /* when the load was last new */
    zhashx_t *in_flight;                      /* by wire id */
    LIST_HEAD(in_flight_list, in_flight) all; /* the same: a hash table finds its next entry slowly */
};

dispatcher_t *dispatcher_new(uint32_t rank)
{
    dispatcher_t *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->rank = rank;
    self->in_flight = in_flight_set_new();
    (void)!wire_registration_decode(&self->registration, NULL, 0, NULL); /* all unknown; cannot fail */
    if (!self->in_flight)
        dispatcher_destroy(&self);
    return self;
}

void dispatcher_destroy(dispatcher_t **dispatcher)
{
    dispatcher_t *self = *dispatcher;
    if (!self)
        return;
    in_flight_t *entry;
    while ((entry = LIST_FIRST(&self->all)) != NULL) {
        dispatcher_remove(self, entry);
        in_flight_free(entry);
    }
    zhashx_destroy(&self->in_flight);
    free((void *)self->response.data);
    free(self);
    *dispatcher = NULL;
}

void dispatcher_set_route(dispatcher_t *dispatcher, bool up)
{
    dispatcher->route_up = up;
    dispatcher->registered = dispatcher->registered && up;
    dispatcher->rank_silent = dispatcher->rank_silent && up;
    dispatcher->answered = dispatcher->answered && up;
    dispatcher->lost = dispatcher->lost || (dispatcher->served && !up);
    dispatcher->served = dispatcher->served && up;
}

void dispatcher_set_answered(dispatcher_t *dispatcher, bool answered)
{
    dispatcher->answered = answered;
}

bool dispatcher_answered(const dispatcher_t *dispatcher)
{
    return dispatcher->answered;
}

void dispatcher_set_registered(dispatcher_t *dispatcher)
{
    dispatcher->registered = true;
}

void dispatcher_set_told(dispatcher_t *dispatcher, wg_rank_state_t state)
{
    dispatcher->told = state;
}

void dispatcher_set_silent(dispatcher_t *dispatcher, bool silent)
{
    dispatcher->silent = silent;
}

void dispatcher_set_rank_silent(dispatcher_t *dispatcher, bool silent)
{
    dispatcher->rank_silent = silent;
}

static wg_rank_state_t conclude(const dispatcher_t *self)
{
    bool vouched = self->told == WG_RANK_READY || (self->registered && self->silent);
    if (self->route_up && (self->served || vouched) && self->answered)
        return self->rank_silent ? WG_RANK_SILENT : WG_RANK_READY;
    if (self->route_up && (self->served || vouched))
        return WG_RANK_HELLO;
    bool awaits_route = self->state == WG_RANK_HELLO && self->told == WG_RANK_READY && !self->lost;
    if (self->registered || self->told == WG_RANK_HELLO || awaits_route)
        return WG_RANK_HELLO;
    return self->state == WG_RANK_ABSENT ? WG_RANK_ABSENT : WG_RANK_LOST;
}

/* The only writer of the state. */
bool dispatcher_settle(dispatcher_t *dispatcher, int64_t now_ms)
{
    wg_rank_state_t next = conclude(dispatcher);
    if (next == dispatcher->state)
        return false;
    dispatcher->state = next;
    dispatcher->served = dispatcher->served || next == WG_RANK_READY;
    dispatcher->lost = dispatcher->lost && next != WG_RANK_READY;
    dispatcher->since_ms = now_ms;
    return true;
}

wg_status_t dispatcher_set_response(dispatcher_t *dispatcher, wire_bytes_t response, wg_error_t *error)
{
    wire_registration_t registration;
    wg_status_t status = wire_registration_decode(&registration, response.data, response.size, error);
    if (status != WG_OK)
        return status;
    uint8_t *copy = malloc(response.size + 1);
    if (!copy)
        return WG_FAIL(error, SYSTEM, "ready response", "out of memory");
    if (response.size > 0)
        memcpy(copy, response.data, response.size);
    free((void *)dispatcher->response.data);
    dispatcher->response = (wire_bytes_t){copy, response.size};
    dispatcher->registration = registration;
    return WG_OK;
}

uint32_t dispatcher_rank(const dispatcher_t *dispatcher)
{
    return dispatcher->rank;
}

wg_rank_state_t dispatcher_state(const dispatcher_t *dispatcher)
{
    return dispatcher->state;
}

int64_t dispatcher_since_ms(const dispatcher_t *dispatcher)
{
    return dispatcher->since_ms;
}

const wire_registration_t *dispatcher_registration(const dispatcher_t *dispatcher)
{
    return &dispatcher->registration;
}

wire_bytes_t dispatcher_response(const dispatcher_t *dispatcher)
{
    return dispatcher->response;
}

static bool is_zero(const wire_load_t *load)
{
    return load->waiting == 0 && load->running == 0 && !(load->kv_cache_usage > 0.0);
}

static bool differs(const wire_load_t *left, const wire_load_t *right)
{
    return left->waiting != right->waiting || left->running != right->running ||
           left->kv_cache_usage < right->kv_cache_usage || left->kv_cache_usage > right->kv_cache_usage;
}

bool dispatcher_set_load(dispatcher_t *dispatcher, const wire_load_t *load, int64_t now_ms)
{
    bool is_new = differs(load, &dispatcher->load) && !is_zero(load);
    dispatcher->load = *load;
    dispatcher->load_ms = now_ms;
    if (is_new)
        dispatcher->reported_ms = now_ms;
    return is_new;
}

const wire_load_t *dispatcher_load(const dispatcher_t *dispatcher, int64_t *at_ms)
{
    *at_ms = dispatcher->load_ms;
    return &dispatcher->load;
}

int64_t dispatcher_reported_ms(const dispatcher_t *dispatcher)
{
    return dispatcher->reported_ms;
}

const wire_load_t *dispatcher_fresh_load(const dispatcher_t *dispatcher, int64_t now_ms)
{
    bool fresh = dispatcher->reported_ms > 0 && now_ms - dispatcher->reported_ms <= DISPATCHER_LOAD_FRESH_MS;
    return fresh ? &dispatcher->load : NULL;
}

wg_status_t dispatcher_insert(dispatcher_t *dispatcher, in_flight_t *entry, wg_error_t *error)
{
    if (zhashx_insert(dispatcher->in_flight, &entry->wire_id, entry) != 0)
        return WG_FAIL(error, SYSTEM, "in-flight set", "the wire id is taken, or out of memory");
    LIST_INSERT_HEAD(&dispatcher->all, entry, by_rank);
    return WG_OK;
}

in_flight_t *dispatcher_find(const dispatcher_t *dispatcher, wire_text_t wire_id)
{
    return zhashx_lookup(dispatcher->in_flight, &wire_id);
}

void dispatcher_remove(dispatcher_t *dispatcher, in_flight_t *entry)
{
    zhashx_delete(dispatcher->in_flight, &entry->wire_id);
    LIST_REMOVE(entry, by_rank);
}

in_flight_t *dispatcher_first(const dispatcher_t *dispatcher)
{
    return LIST_FIRST(&dispatcher->all);
}

size_t dispatcher_in_flight(const dispatcher_t *dispatcher)
{
    return zhashx_size(dispatcher->in_flight);
}
