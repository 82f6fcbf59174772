/* wire_control.h: the control link between a frontend (DEALER, its identity is its name) and the coordinator
 * (ROUTER). It is ours, not vLLM's: one MessagePack array a message, whose first item is its name.
 *
 *   up    ["JOIN", version, fingerprint, wave, [[rank, state, ready response or nil], ...]]
 *                      what this frontend knows: the group's wave, and its ranks
 *   up    ["BEAT", [[rank, in flight], ...]]
 *                      once a second
 *   down  ["RANKS", number, [[rank, state, ready response or nil], ...]]
 *                      all on joining, then each change, counted
 *   down  ["HEARD", number]
 *                      the answer to a beat, with the number of the last RANKS: a frontend that has not seen
 *                      that one joins again
 *   down  ["REJOIN"]   the answer to a beat from a frontend that has not joined
 *   down  ["REFUSED", why]
 *                      a JOIN that cannot be
 *
 * No state; any thread. Tests: tests/unit/wire_control_test.c */
#ifndef WG_COMMON_WIRE_CONTROL_H
#define WG_COMMON_WIRE_CONTROL_H

#include "common/wire_reader.h"

#include <msgpack.h>

#define WIRE_CONTROL_VERSION 2

/* A rank's life as the coordinator sees it. Their numbers are on the control link: do not renumber. */
typedef enum {
    WG_RANK_ABSENT = 0, /* no engine has dialled */
    WG_RANK_HELLO = 1,  /* it has its INIT and loads its model */
    WG_RANK_READY = 2,  /* it serves */
    WG_RANK_LOST = 3,   /* its route is gone */
    WG_RANK_SILENT = 4, /* a frontend's own finding, never on the link: its route is up, but nothing comes */
} wg_rank_state_t;

const char *wg_rank_state_name(wg_rank_state_t state); /* "absent", "hello", "ready", "lost", "silent" */

typedef enum {
    WIRE_CONTROL_JOIN,
    WIRE_CONTROL_BEAT,
    WIRE_CONTROL_RANKS,
    WIRE_CONTROL_HEARD,
    WIRE_CONTROL_REJOIN,
    WIRE_CONTROL_REFUSED,
} wire_control_kind_t;

typedef struct {
    wire_control_kind_t kind;
    int64_t version;     /* JOIN */
    int64_t fingerprint; /* JOIN: wg_config_fingerprint, as a signed number */
    int64_t wave;        /* JOIN */
    int64_t number;      /* RANKS, HEARD */
    wire_text_t why;     /* REFUSED */
    uint32_t count;      /* JOIN, BEAT, RANKS: entries, to be read with wire_control_next */
    wire_reader_t entries;
} wire_control_t;

typedef struct {
    uint32_t rank;
    int64_t number;        /* BEAT: in flight; JOIN, RANKS: the wg_rank_state_t */
    bool has_response;     /* JOIN, RANKS */
    wire_bytes_t response; /* as the engine sent it; may be empty */
} wire_control_entry_t;

/* All append to *out. */
WG_MUST_CHECK wg_status_t wire_control_encode_join(msgpack_sbuffer *out, uint64_t fingerprint, int64_t wave,
                                                   const wire_control_entry_t *ranks, uint32_t count,
                                                   wg_error_t *error);
WG_MUST_CHECK wg_status_t wire_control_encode_beat(msgpack_sbuffer *out, const wire_control_entry_t *ranks,
                                                   uint32_t count, wg_error_t *error);
WG_MUST_CHECK wg_status_t wire_control_encode_ranks(msgpack_sbuffer *out, int64_t number,
                                                    const wire_control_entry_t *ranks, uint32_t count,
                                                    wg_error_t *error);
WG_MUST_CHECK wg_status_t wire_control_encode_heard(msgpack_sbuffer *out, int64_t number, wg_error_t *error);
/* REJOIN, and REFUSED with the reason. */
WG_MUST_CHECK wg_status_t wire_control_encode_word(msgpack_sbuffer *out, wire_control_kind_t kind,
                                                   const char *why, wg_error_t *error);

/* Checks the whole frame, so that wire_control_next cannot fail. WG_E_DECODE. */
WG_MUST_CHECK wg_status_t wire_control_decode(wire_control_t *out, const void *data, size_t size,
                                              wg_error_t *error);
void wire_control_next(wire_control_t *control, wire_control_entry_t *out);

#endif
