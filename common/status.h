/* status.h: every way in which an operation can fail, and the text that says so.
 *
 * One enum for both processes. Each status has a stable name (for logs and counters), a snake case code
 * and a type (for JSON error bodies), an HTTP status, and a message format. The formats are literals, so
 * that the compiler checks the arguments of each WG_FAIL. No state; any thread. Tests:
 * tests/unit/status_test.c */
#ifndef WG_COMMON_STATUS_H
#define WG_COMMON_STATUS_H

#include <stdbool.h>

#define WG_MUST_CHECK __attribute__((warn_unused_result))
#define WG_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))

#define WG_TYPE_REQUEST "invalid_request_error"
#define WG_TYPE_SERVER "server_error"
#define WG_TYPE_OVERLOAD "overloaded_error"

/* X (constant, name, code, HTTP status or 0 where no HTTP client can meet it, JSON type) */
#define WG_STATUS_TABLE(X)                                                                                   \
    X(INVALID_DATA_PARALLEL_RANK, "InvalidDataParallelRank", "invalid_data_parallel_rank", 400,              \
      WG_TYPE_REQUEST)                                                                                       \
    X(DUPLICATE_REQUEST_ID, "DuplicateRequestId", "duplicate_request_id", 409, WG_TYPE_REQUEST)              \
    X(UNSUPPORTED_FIELD, "UnsupportedField", "unsupported_field", 400, WG_TYPE_REQUEST)                      \
    X(INVALID_REQUEST, "InvalidRequest", "invalid_request", 400, WG_TYPE_REQUEST)                            \
    X(MODEL_NOT_FOUND, "ModelNotFound", "model_not_found", 404, WG_TYPE_REQUEST)                             \
    X(ROUTE_NOT_FOUND, "RouteNotFound", "route_not_found", 404, WG_TYPE_REQUEST)                             \
    X(METHOD_NOT_ALLOWED, "MethodNotAllowed", "method_not_allowed", 405, WG_TYPE_REQUEST)                    \
    X(BODY_TOO_LARGE, "BodyTooLarge", "body_too_large", 413, WG_TYPE_REQUEST)                                \
    X(HEADER_TOO_LARGE, "HeaderTooLarge", "header_too_large", 431, WG_TYPE_REQUEST)                          \
    X(REQUEST_TIMEOUT, "RequestTimeout", "request_timeout", 408, WG_TYPE_REQUEST)                            \
    X(UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", "unsupported_media_type", 415, WG_TYPE_REQUEST)        \
    X(OVERLOADED, "Overloaded", "overloaded", 429, WG_TYPE_OVERLOAD)                                         \
    X(NO_RANK_READY, "NoRankReady", "no_rank_ready", 503, WG_TYPE_SERVER)                                    \
    X(DRAINING, "Draining", "draining", 503, WG_TYPE_SERVER)                                                 \
    X(ENGINE_CORE_DEAD, "EngineCoreDead", "engine_core_dead", 503, WG_TYPE_SERVER)                           \
    X(DISPATCHER_CLOSED, "DispatcherClosed", "dispatcher_closed", 503, WG_TYPE_SERVER)                       \
    X(REQUEST_STREAM_CLOSED, "RequestStreamClosed", "request_stream_closed", 500, WG_TYPE_SERVER)            \
    X(ENGINE_REQUEST_ERROR, "EngineRequestError", "engine_request_error", 500, WG_TYPE_SERVER)               \
    X(REQUEST_ABORTED, "RequestAborted", "request_aborted", 499, WG_TYPE_SERVER)                             \
    X(SLOW_CONSUMER, "SlowConsumer", "slow_consumer", 0, WG_TYPE_REQUEST)                                    \
    X(DEADLINE_EXCEEDED, "DeadlineExceeded", "deadline_exceeded", 504, WG_TYPE_SERVER)                       \
    X(CLIENT_CLOSED, "ClientClosed", "client_closed", 503, WG_TYPE_SERVER)                                   \
    X(CONTROL_CLOSED, "ControlClosed", "control_closed", 503, WG_TYPE_SERVER)                                \
    X(UTILITY_CALL_FAILED, "UtilityCallFailed", "utility_call_failed", 500, WG_TYPE_SERVER)                  \
    X(UTILITY_RESULT_DECODE, "UtilityResultDecode", "utility_result_decode", 500, WG_TYPE_SERVER)            \
    X(UTILITY_CALL_CLOSED, "UtilityCallClosed", "utility_call_closed", 503, WG_TYPE_SERVER)                  \
    X(UTILITY_CALL_TIMEOUT, "UtilityCallTimeout", "utility_call_timeout", 504, WG_TYPE_SERVER)               \
    X(INCONSISTENT_UTILITY_RESULTS, "InconsistentUtilityResults", "inconsistent_utility_results", 500,       \
      WG_TYPE_SERVER)                                                                                        \
    X(HANDSHAKE_TIMEOUT, "HandshakeTimeout", "handshake_timeout", 0, WG_TYPE_SERVER)                         \
    X(INPUT_REGISTRATION_TIMEOUT, "InputRegistrationTimeout", "input_registration_timeout", 0,               \
      WG_TYPE_SERVER)                                                                                        \
    X(UNEXPECTED_HANDSHAKE_IDENTITY, "UnexpectedHandshakeIdentity", "unexpected_handshake_identity", 0,      \
      WG_TYPE_SERVER)                                                                                        \
    X(UNEXPECTED_HANDSHAKE_MESSAGE, "UnexpectedHandshakeMessage", "unexpected_handshake_message", 0,         \
      WG_TYPE_SERVER)                                                                                        \
    X(UNSUPPORTED_COORDINATOR_ENGINE_ID, "UnsupportedCoordinatorEngineId",                                   \
      "unsupported_coordinator_engine_id", 0, WG_TYPE_SERVER)                                                \
    X(UNEXPECTED_COORDINATOR_OUTPUT, "UnexpectedCoordinatorOutput", "unexpected_coordinator_output", 0,      \
      WG_TYPE_SERVER)                                                                                        \
    X(UNEXPECTED_DISPATCHER_OUTPUT, "UnexpectedDispatcherOutput", "unexpected_dispatcher_output", 0,         \
      WG_TYPE_SERVER)                                                                                        \
    X(UNSUPPORTED_AUX_FRAMES, "UnsupportedAuxFrames", "unsupported_aux_frames", 500, WG_TYPE_SERVER)         \
    X(ENCODE, "Encode", "encode", 500, WG_TYPE_SERVER)                                                       \
    X(DECODE, "Decode", "decode", 500, WG_TYPE_SERVER)                                                       \
    X(CONFIG, "Config", "config", 0, WG_TYPE_SERVER)                                                         \
    X(SYSTEM, "System", "system", 500, WG_TYPE_SERVER)

/* The message of each status, with the printf type of each hole. What fills it stands beside it. */
#define WG_E_INVALID_DATA_PARALLEL_RANK_FORMAT /* rank as given, list of ranks */                            \
    "data parallel rank %s is not connected to this frontend; connected ranks: [%s]"
#define WG_E_DUPLICATE_REQUEST_ID_FORMAT /* client's id */ "request `%s` is already in flight"
#define WG_E_UNSUPPORTED_FIELD_FORMAT /* field, where it stood */ "unsupported field `%s` in %s"
#define WG_E_INVALID_REQUEST_FORMAT /* field, fault and allowed range */ "%s: %s"
#define WG_E_MODEL_NOT_FOUND_FORMAT /* model */ "the model `%s` does not exist"
#define WG_E_ROUTE_NOT_FOUND_FORMAT /* path */ "there is nothing at `%s`"
#define WG_E_METHOD_NOT_ALLOWED_FORMAT /* method, path, allowed */ "`%s` is not allowed on `%s`; use %s"
#define WG_E_BODY_TOO_LARGE_FORMAT /* bytes */ "the request body is larger than the limit of %zu bytes"
#define WG_E_HEADER_TOO_LARGE_FORMAT /* limit, unit */                                                       \
    "the request's line and headers exceed the limit of %zu %s"
#define WG_E_REQUEST_TIMEOUT_FORMAT /* part, ms */ "the request's %s did not arrive within %lld ms"
#define WG_E_UNSUPPORTED_MEDIA_TYPE_FORMAT /* wanted type */ "the content type must be %s"
#define WG_E_OVERLOADED_FORMAT /* limit */ "%zu requests are in flight, the limit; retry later"
#define WG_E_NO_RANK_READY_FORMAT /* per rank: state, since */ "no data parallel rank is ready (%s)"
#define WG_E_DRAINING_FORMAT "this frontend is shutting down"
#define WG_E_ENGINE_CORE_DEAD_FORMAT /* rank */ "engine core of rank %u reported fatal failure"
#define WG_E_DISPATCHER_CLOSED_FORMAT /* rank, why */ "engine-core output dispatcher of rank %u closed: %s"
#define WG_E_REQUEST_STREAM_CLOSED_FORMAT /* id */ "request output stream for `%s` closed unexpectedly"
#define WG_E_ENGINE_REQUEST_ERROR_FORMAT /* id */                                                            \
    "engine reported an internal error for `%s` (finish reason 3)"
#define WG_E_REQUEST_ABORTED_FORMAT /* id, by whom */ "request `%s` was aborted: %s"
#define WG_E_SLOW_CONSUMER_FORMAT /* id, bytes */ "output of `%s` was not read: %zu bytes queued, the limit"
#define WG_E_DEADLINE_EXCEEDED_FORMAT /* id, ms */ "request `%s` exceeded its deadline of %lld ms"
#define WG_E_CLIENT_CLOSED_FORMAT /* why */ "engine-core client is closed: %s"
#define WG_E_CONTROL_CLOSED_FORMAT /* why */ "engine control channel closed unexpectedly: %s"
#define WG_E_UTILITY_CALL_FAILED_FORMAT /* method, call, rank, message */                                    \
    "utility call `%s` failed (call_id=%llu, rank=%u): %s"
#define WG_E_UTILITY_RESULT_DECODE_FORMAT /* method, call, rank, why */                                      \
    "utility call `%s` returned an invalid result (call_id=%llu, rank=%u): %s"
#define WG_E_UTILITY_CALL_CLOSED_FORMAT /* method, call, rank */                                             \
    "utility call `%s` closed unexpectedly (call_id=%llu, rank=%u)"
#define WG_E_UTILITY_CALL_TIMEOUT_FORMAT /* method, ranks, ms */                                             \
    "utility call `%s` got no answer from ranks [%s] in %lld ms"
#define WG_E_INCONSISTENT_UTILITY_RESULTS_FORMAT /* method, values */                                        \
    "utility call `%s` returned inconsistent results across ranks: %s"
#define WG_E_HANDSHAKE_TIMEOUT_FORMAT /* stage, ranks, s */                                                  \
    "startup handshake timed out while waiting for %s of ranks [%s] after %lld s"
#define WG_E_INPUT_REGISTRATION_TIMEOUT_FORMAT /* ranks, s */                                                \
    "no input registration from ranks [%s] after %lld s"
#define WG_E_UNEXPECTED_HANDSHAKE_IDENTITY_FORMAT /* id in hex, why */                                       \
    "unexpected engine id in startup handshake: %s: %s"
#define WG_E_UNEXPECTED_HANDSHAKE_MESSAGE_FORMAT /* rank, why */                                             \
    "unexpected startup handshake message from rank %u: %s"
#define WG_E_UNSUPPORTED_COORDINATOR_ENGINE_ID_FORMAT /* id in hex */                                        \
    "coordinator requires a two-byte engine id, got %s"
#define WG_E_UNEXPECTED_COORDINATOR_OUTPUT_FORMAT /* rank, what */                                           \
    "unexpected non-control output on coordinator path from rank %u: %s"
#define WG_E_UNEXPECTED_DISPATCHER_OUTPUT_FORMAT /* rank, what */                                            \
    "unexpected output on dispatcher path of rank %u: %s"
#define WG_E_UNSUPPORTED_AUX_FRAMES_FORMAT /* why */ "unsupported auxiliary frame(s): %s"
#define WG_E_ENCODE_FORMAT /* type, why */ "messagepack encode failed for %s: %s"
#define WG_E_DECODE_FORMAT /* type, byte, why */ "messagepack decode failed for %s at byte %zu: %s"
#define WG_E_CONFIG_FORMAT /* file, line, key, why */ "%s:%d: %s: %s"
#define WG_E_SYSTEM_FORMAT /* what was tried, errno's text */ "%s: %s"

typedef enum {
    WG_OK = 0,
#define X(constant, name, code, http, type) WG_E_##constant,
    WG_STATUS_TABLE(X)
#undef X
        WG_STATUS_COUNT
} wg_status_t;

/* A failure with its words. `param` names the request field at fault, or is empty. Plain value: copy freely.
 */
typedef struct {
    wg_status_t status;
    char param[64];
    char message[512];
} wg_error_t;

/* Fills *error (may be NULL: then only the status is of interest) and yields the status, so that a
 * failing function ends with `return WG_FAIL (error, MODEL_NOT_FOUND, name)`. Too long a message is cut.
 * C11 wants an argument for `...`, so the one format without a hole goes to wg_error_format itself. */
#define WG_FAIL(error, constant, ...)                                                                        \
    wg_error_format(error, WG_E_##constant, WG_E_##constant##_FORMAT, __VA_ARGS__)

wg_status_t wg_error_format(wg_error_t *error, wg_status_t status, const char *format, ...) WG_PRINTF(3, 4);

/* InvalidRequest for one field: the message is "field: fault", param is the field. */
wg_status_t wg_invalid_field(wg_error_t *error, const char *field, const char *format, ...) WG_PRINTF(3, 4);

/* All four return static strings, also for a value outside the enum ("Unknown"). */
const char *wg_status_name(wg_status_t status);
const char *wg_status_code(wg_status_t status);
const char *wg_status_type(wg_status_t status);

/* 0 where the status never reaches an HTTP client. */
int wg_status_http(wg_status_t status);

#endif
