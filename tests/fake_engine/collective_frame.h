/* collective_frame.h: what the processes of a lockstep group say to each other. This is the fake engine's
 * own protocol: it stands in for the collectives of a real group. A frame is MessagePack, an array
 * [kind, step, unfinished, pausing, [rank…]]. No state; any thread. Tests: tests/integration */
#ifndef WG_TESTS_FAKE_ENGINE_COLLECTIVE_FRAME_H
#define WG_TESTS_FAKE_ENGINE_COLLECTIVE_FRAME_H

#include "common/wire_pack.h"
#include "tests/fake_engine/lockstep.h"

typedef enum {
    COLLECTIVE_JOIN,    /* up, once: these ranks are mine */
    COLLECTIVE_ENTER,   /* up: all my ranks have entered this step */
    COLLECTIVE_ASK,     /* up, when it takes long: all but these have; who else is missing? */
    COLLECTIVE_MISSING, /* down, to the one who asked: these are */
    COLLECTIVE_RELEASE, /* down: the step is done, with this result */
    COLLECTIVE_KINDS
} collective_kind_t;

typedef struct {
    collective_kind_t kind;
    uint64_t step;
    lockstep_vote_t vote;
    uint32_t *ranks;
    uint32_t rank_count;
} collective_frame_t;

/* Appends it. WG_E_ENCODE without memory. */
WG_MUST_CHECK wg_status_t collective_frame_encode(msgpack_sbuffer *out, const collective_frame_t *frame,
                                                  wg_error_t *error);

/* The caller frees out->ranks, NULL where there is none. WG_E_DECODE with byte and reason. */
WG_MUST_CHECK wg_status_t collective_frame_decode(collective_frame_t *out, const void *data, size_t size,
                                                  wg_error_t *error);

#endif
