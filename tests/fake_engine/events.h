/* events.h: what the ranks do, as JSON lines on standard output, for tests that wait for it. Each line is
 * written out at once; whoever asks for them must read them, for a full pipe would stop the ranks. Owned by
 * the loop. Tests: tests/integration
 *
 *   {"event":"hello","rank":0}                       HELLO was sent
 *   {"event":"init","rank":0,"clients":3}            INIT came
 *   {"event":"ready","rank":0}                       READY was sent; requests are served from here on
 *   {"event":"add","rank":0,"request_id":"a-1","client_index":1,"prompt_tokens":4,"max_tokens":16}
 *   {"event":"abort","rank":0,"request_id":"a-1","client_index":1,"tokens":7}
 *   {"event":"abort_unknown","rank":0,"request_id":"a-2","client_index":1}
 *   {"event":"finish","rank":0,"request_id":"a-1","client_index":1,"finish_reason":1,"tokens":16}
 *
 * and of a rank of a lockstep group, each with "rank", its "wave" and its "step":
 *
 *   wave_start      it enters its first step since it paused
 *   start_wave      it asks the coordinator to wake the group
 *   blocked         it has waited for others for more than 200 ms; once a step
 *   wave_complete   rank 0 has reported the end of that wave
 *   paused          that wave has ended on this rank
 *   held            a pause call has taken hold: wakes are dropped from here on
 *   resumed         until here
 *
 * client_index is the request's, and of abort_unknown that of the socket it came on. Each request that was
 * added has one end: abort where a client asked for it by an ABORT, else finish. */
#ifndef WG_TESTS_FAKE_ENGINE_EVENTS_H
#define WG_TESTS_FAKE_ENGINE_EVENTS_H

#include "common/text_buffer.h"
#include "tests/fake_engine/engine.h"

#include <stdint.h>

typedef struct {
    bool on; /* off: every call is ignored */
    text_buffer_t line;
} events_t; /* all zero is off; events_free gives its memory back */

void events_free(events_t *events);

void events_rank(events_t *events, const char *name, uint32_t rank);
void events_init(events_t *events, uint32_t rank, uint32_t client_count);
void events_add(events_t *events, uint32_t rank, const engine_request_t *request);
void events_abort(events_t *events, uint32_t rank, const engine_request_t *request);
void events_abort_unknown(events_t *events, uint32_t rank, wire_text_t request_id, uint32_t client_index);
void events_finish(events_t *events, uint32_t rank, const engine_output_t *output);
/* Of the engine's outputs, those that are an end which is not told yet: all but by an ABORT. */
void events_finished(events_t *events, uint32_t rank, const engine_t *engine);

void events_wave(events_t *events, const char *name, uint32_t rank, int64_t wave, uint64_t step);

#endif
