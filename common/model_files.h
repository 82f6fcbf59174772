/* model_files.h: what a model's own config.json and generation_config.json say (Hugging Face's names), for
 * what the configuration leaves open. For the frontends only: the coordinator may run where there is no
 * model. Read once at start. Tests: tests/unit/model_files_test.c */
#ifndef WG_COMMON_MODEL_FILES_H
#define WG_COMMON_MODEL_FILES_H

#include "common/config.h"

/* With model.path: fills vocab_size, eos_token_ids and defaults where they are not set. Always: afterwards no
 * default is unset. Nothing of what wg_config_fingerprint is made of changes. WG_E_CONFIG names the file and
 * the member, or model.path where the file as a whole is at fault; only generation_config.json may be absent.
 * After a failure the config may be filled in part. */
WG_MUST_CHECK wg_status_t model_files_apply(wg_config_t *config, wg_error_t *error);

#endif
