/* json_body.h: a request body as a JSON object, strictly: no key twice, no number out of range, valid UTF-8,
 * no NUL, nothing behind it. No state; any thread. Tests: tests/unit/generate_body*_test.c */
#ifndef WG_FRONTEND_JSON_BODY_H
#define WG_FRONTEND_JSON_BODY_H

#include "frontend/prompt_scan.h"

#include <jansson.h>

/* Of the text, or where the prompt is cut out of it, of the rest. WG_E_INVALID_REQUEST naming the place in
 * the text, or the member whose number is out of range; never bytes of the body. *out is NULL where it is not
 * JSON at all, else the caller's to json_decref, also on failure. */
WG_MUST_CHECK wg_status_t json_body_load(json_t **out, const prompt_scan_t *scan, const char *text,
                                         size_t size, wg_error_t *error);

#endif
