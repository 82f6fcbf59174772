/* in_flight.h: one engine request between its ADD and its end, and sets of them by id. Owned by its client.
 * Tests: tests/unit/dispatcher_in_flight_test.c */
#ifndef WG_FRONTEND_IN_FLIGHT_H
#define WG_FRONTEND_IN_FLIGHT_H

#include "common/wire_reader.h"

#include <czmq.h>
#include <sys/queue.h>

typedef struct client_request client_request_t;

typedef struct in_flight {
    wire_text_t wire_id; /* `<client's id>-<8 hex>`: belongs to the entry, NUL-terminated */
    wire_text_t id;      /* the client's id: the front part of wire_id, not NUL-terminated */
    client_request_t *request;
    uint32_t choice; /* of that request */
    uint32_t rank;
    int64_t max_tokens; /* as the engine was told */
    bool fits;      /* so many fit into the model length for certain: the engine cannot stop short of them */
    int64_t tokens; /* that have come */
    LIST_ENTRY(in_flight) by_rank; /* its dispatcher's list */
    bool ended; /* the engine is done with it, or is to be told so; it lives as long as its request */
    struct in_flight *next; /* once ended: in its rank's list of entries to abort */
} in_flight_t;

/* The wire id is made from the client's id and eight hex digits of `salt`. NULL without memory. */
WG_MUST_CHECK in_flight_t *in_flight_new(wire_text_t id, uint32_t salt);
void in_flight_free(in_flight_t *entry);

/* A zhashx whose keys are wire_text_t inside the entries: nothing is copied. The items stay the user's. NULL
 * without memory. */
WG_MUST_CHECK zhashx_t *in_flight_set_new(void);

/* The hash of a wire_text_t, given by its address. */
size_t in_flight_hash(const void *key);

#endif
