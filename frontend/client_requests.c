/* The life of a request: client_submit puts an entry into by_id and into its rank's dispatcher and sends the
 * ADD. Outputs find it by rank and wire id. One function, take_out, ends it: out of both sets, counted, onto
 * a list that lives until the end of the turn, since callbacks up the stack may still hold it. Only then is
 * it freed, after its ABORT was sent where one is due. */
#include "frontend/client_parts.h"

#include "common/log.h"

/* --- ends --- */

static void take_out(client_t *self, in_flight_t *entry, client_cause_t cause, bool tell_engine)
{
    client_rank_t *rank = &self->ranks[client_place(self, entry->rank)];
    zhashx_delete(self->by_id, &entry->id);
    dispatcher_remove(rank->dispatcher, entry);
    self->counters.ended[cause]++;
    in_flight_t **list = tell_engine ? &rank->aborting : &self->ended;
    entry->ended = true;
    entry->next = *list;
    *list = entry;
    turn_schedule(self->turn);
    log_debug("request ended id=%.*s wire_id=%s rank=%u cause=%s", (int)entry->id.size, entry->id.data,
              entry->wire_id.data, entry->rank, client_cause_name(cause));
}

static void end(client_t *self, in_flight_t *entry, client_cause_t cause, const wg_error_t *error,
                bool tell_engine)
{
    take_out(self, entry, cause, tell_engine);
    entry->events->on_end(entry->user, cause, error);
}

static void end_stream_closed(client_t *self, in_flight_t *entry, bool tell_engine)
{
    wg_error_t error;
    char id[LOG_TEXT_SIZE];
    WG_FAIL(&error, REQUEST_STREAM_CLOSED, log_text(id, entry->id.data, entry->id.size));
    end(self, entry, CLIENT_STREAM_CLOSED, &error, tell_engine);
}

void client_abort(client_t *client, in_flight_t *request, client_cause_t cause)
{
    if (!request->ended)
        take_out(client, request, cause, true);
}

void client_end_rank(client_t *client, uint32_t place, client_cause_t cause, const wg_error_t *error)
{
    dispatcher_t *dispatcher = client->ranks[place].dispatcher;
    bool tell_engine = engine_link_route_up(client->link, dispatcher_rank(dispatcher));
    in_flight_t *entry;
    while ((entry = dispatcher_first(dispatcher)) != NULL)
        end(client, entry, cause, error, tell_engine);
}

void client_on_outputs_cut(void *context, uint32_t rank)
{
    client_t *self = context;
    dispatcher_t *dispatcher = self->ranks[client_place(self, rank)].dispatcher;
    in_flight_t *entry;
    while ((entry = dispatcher_first(dispatcher)) != NULL)
        end_stream_closed(self, entry, true);
}

void client_drain(client_t *client)
{
    wg_error_t error;
    client->draining = true;
    wg_error_format(&error, WG_E_DRAINING, WG_E_DRAINING_FORMAT);
    for (uint32_t place = 0; place < client->frontend->rank_count; place++)
        client_end_rank(client, place, CLIENT_DRAINING, &error);
}

static void free_list(in_flight_t **list)
{
    while (*list) {
        in_flight_t *entry = *list;
        *list = entry->next;
        in_flight_free(entry);
    }
}

/* One ABORT with all ids of the list. What cannot be sent is not lost: the engine's next output for such an
 * id is an orphan and gets its ABORT then. */
static void send_aborts(client_t *self, uint32_t rank, const in_flight_t *list)
{
    size_t count = 0;
    for (const in_flight_t *entry = list; entry; entry = entry->next)
        count++;
    wire_text_t *ids = malloc(count * sizeof *ids);
    if (!ids)
        return;
    size_t at = 0;
    int64_t now_ms = zclock_mono();
    for (const in_flight_t *entry = list; entry; entry = entry->next) {
        ids[at++] = entry->wire_id;
        /* the outputs that are already on their way need no second ABORT */
        (void)!orphans_may_abort(&self->orphans, entry->wire_id, now_ms);
    }
    msgpack_sbuffer_clear(&self->payload);
    if (wire_abort_encode(&self->payload, ids, count, NULL) == WG_OK &&
        engine_link_send(self->link, rank, WIRE_REQUEST_ABORT, self->payload.data, self->payload.size,
                         NULL) == WG_OK)
        self->counters.aborts_sent += count;
    free(ids);
}

void client_end_turn(void *context)
{
    client_t *self = context;
    for (uint32_t place = 0; place < self->frontend->rank_count; place++) {
        client_rank_t *rank = &self->ranks[place];
        if (!rank->aborting)
            continue;
        send_aborts(self, dispatcher_rank(rank->dispatcher), rank->aborting);
        free_list(&rank->aborting);
    }
    free_list(&self->ended);
}

/* --- the way out --- */

static void abort_orphan(client_t *self, uint32_t rank, const wire_output_t *output)
{
    self->counters.orphan_outputs++;
    if (output->finish != WIRE_FINISH_NONE ||
        !orphans_may_abort(&self->orphans, output->request_id, zclock_mono()))
        return;
    msgpack_sbuffer_clear(&self->payload);
    if (wire_abort_encode(&self->payload, &output->request_id, 1, NULL) == WG_OK &&
        engine_link_send(self->link, rank, WIRE_REQUEST_ABORT, self->payload.data, self->payload.size,
                         NULL) == WG_OK)
        self->counters.aborts_sent++;
}

static void end_by_engine(client_t *self, in_flight_t *entry, wire_finish_t finish)
{
    wg_error_t error;
    char id[LOG_TEXT_SIZE];
    log_text(id, entry->id.data, entry->id.size);
    switch (finish) {
    case WIRE_FINISH_STOP:
        end(self, entry, CLIENT_STOP, NULL, false);
        break;
    case WIRE_FINISH_LENGTH:
        end(self, entry, CLIENT_LENGTH, NULL, false);
        break;
    case WIRE_FINISH_REPETITION:
        end(self, entry, CLIENT_REPETITION, NULL, false);
        break;
    case WIRE_FINISH_ABORT:
        WG_FAIL(&error, REQUEST_ABORTED, id, "by the engine");
        end(self, entry, CLIENT_ABORT, &error, false);
        break;
    case WIRE_FINISH_ERROR:
        WG_FAIL(&error, ENGINE_REQUEST_ERROR, id);
        end(self, entry, CLIENT_ERROR, &error, false);
        break;
    case WIRE_FINISH_NONE:
        break;
    }
}

/* A connection that was reset under the engine's feet loses what was on its way. The count tells, where the engine says that it
 * made all it was asked for; more than that it must not make. */
static bool has_all_tokens(const in_flight_t *entry, wire_finish_t finish)
{
    if (finish == WIRE_FINISH_LENGTH && entry->fits)
        return entry->tokens == entry->max_tokens;
    return entry->tokens <= entry->max_tokens;
}

static void handle_output(client_t *self, uint32_t place, const wire_output_t *output, wg_status_t status,
                          const wg_error_t *error)
{
    dispatcher_t *dispatcher = self->ranks[place].dispatcher;
    in_flight_t *entry = output->request_id.data ? dispatcher_find(dispatcher, output->request_id) : NULL;
    if (status != WG_OK) {
        faults_report_rank(self->faults, FAULTS_OUTPUT, dispatcher_rank(dispatcher), error);
        if (entry)
            end(self, entry, CLIENT_DECODE, error, true);
        return;
    }
    if (!entry) {
        abort_orphan(self, dispatcher_rank(dispatcher), output);
        return;
    }
    entry->tokens += output->token_count;
    if (!has_all_tokens(entry, output->finish)) {
        end_stream_closed(self, entry, true);
        return;
    }
    entry->events->on_output(entry->user, output);
    if (!entry->ended)
        end_by_engine(self, entry, output->finish);
}

/* What the engine has finished without a final output. */
static void handle_finished(client_t *self, uint32_t place, const wire_outputs_t *outputs)
{
    wire_outputs_cursor_t cursor;
    wire_text_t wire_id;
    wire_finished_begin(&cursor, outputs);
    while (wire_finished_next(&cursor, &wire_id)) {
        in_flight_t *entry = dispatcher_find(self->ranks[place].dispatcher, wire_id);
        if (entry)
            end_stream_closed(self, entry, false);
    }
}

static wg_status_t check_envelope(const client_t *self, const wire_outputs_t *outputs, int64_t *place,
                                  wg_error_t *error)
{
    const char *fault = NULL;
    *place = client_place(self, outputs->engine_index);
    if (*place < 0)
        fault = "this frontend does not serve the rank";
    else if (outputs->has_wave_complete || outputs->has_start_wave)
        fault = "a wave";
    else if (outputs->has_utility &&
             outputs->utility.call_id >= 0) /* negative: notices that nobody asked for */
        fault = "the answer to a utility call that nobody made";
    return fault ? WG_FAIL(error, UNEXPECTED_DISPATCHER_OUTPUT, outputs->engine_index, fault) : WG_OK;
}

int64_t client_on_outputs(void *context, const wire_bytes_t *frames, size_t count)
{
    client_t *self = context;
    wire_outputs_t outputs;
    wire_outputs_cursor_t cursor;
    wire_output_t output;
    wg_error_t error;
    int64_t place = -1;
    (void)count; /* the auxiliary frames hold tensors, which nobody has asked for yet */
    wg_status_t status = wire_outputs_decode(&outputs, frames[0].data, frames[0].size, &error);
    if (status == WG_OK)
        status = check_envelope(self, &outputs, &place, &error);
    if (status != WG_OK) {
        faults_report_rank(self->faults, FAULTS_OUTPUT, outputs.engine_index, &error);
        return -1;
    }
    wire_outputs_begin(&cursor, &outputs);
    while (wire_outputs_next(&cursor, &output, &status, &error))
        handle_output(self, (uint32_t)place, &output, status, &error);
    handle_finished(self, (uint32_t)place, &outputs);
    return outputs.engine_index;
}
