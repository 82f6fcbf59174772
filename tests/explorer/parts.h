/* parts.h: what each part of the group does with an event: coordinator, frontends, engines, and those that die. For model.c,
 * which says what can happen when. What returns text returns NULL, or what went wrong. */
#ifndef WG_TESTS_EXPLORER_PARTS_H
#define WG_TESTS_EXPLORER_PARTS_H

#include "tests/explorer/model.h"

unsigned parts_work_of(const engine_t *engine);
const char *parts_push(queue_t *queue, message_t message);
message_t parts_pop(queue_t *queue);
const char *parts_act(model_t *model, const model_config_t *config, wave_actions_t actions);
const char *parts_take_report(model_t *model, const model_config_t *config, unsigned rank);
const char *parts_take_notice(model_t *model, const model_config_t *config, unsigned frontend);
const char *parts_restart_coordinator(model_t *model, const model_config_t *config);
const char *parts_submit(model_t *model, const model_config_t *config, unsigned f, unsigned rank);
const char *parts_send_next(model_t *model, const model_config_t *config, unsigned f);
const char *parts_fall_silent(model_t *model, const model_config_t *config, unsigned f);
void parts_orphan(model_t *model, const model_config_t *config, unsigned f);
const char *parts_take_message(model_t *model, unsigned rank, message_t message);
bool parts_wants_to_step(const model_t *model, unsigned rank);
const char *parts_enter(model_t *model, unsigned rank);
bool parts_all_entered(const model_t *model, const model_config_t *config);
void parts_leave_collective(model_t *model, const model_config_t *config);
void parts_finish(model_t *model, unsigned rank, unsigned owner);
const char *parts_agree(model_t *model, const model_config_t *config);
void parts_next_coordinator_link(model_t *model, const model_config_t *config);
void parts_next_frontend_link(model_t *model, const model_config_t *config, unsigned f);
void parts_lose_on_link(model_t *model, const model_config_t *config, event_t event);

#endif
