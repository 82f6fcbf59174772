#include "common/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name;
    const char *code;
    const char *type;
    int http;
} status_row_t;

static const status_row_t rows[WG_STATUS_COUNT] = {[WG_OK] = {"Ok", "ok", "", 200},
#define X(constant, name, code, http, type) [WG_E_##constant] = {name, code, type, http},
                                                   WG_STATUS_TABLE(X)
#undef X
};

static const status_row_t unknown_row = {"Unknown", "unknown", WG_TYPE_SERVER, 500};

static const status_row_t *row_of(wg_status_t status)
{
    return (unsigned)status < WG_STATUS_COUNT ? &rows[status] : &unknown_row;
}

const char *wg_status_name(wg_status_t status)
{
    return row_of(status)->name;
}

const char *wg_status_code(wg_status_t status)
{
    return row_of(status)->code;
}

const char *wg_status_type(wg_status_t status)
{
    return row_of(status)->type;
}

int wg_status_http(wg_status_t status)
{
    return row_of(status)->http;
}

wg_status_t wg_error_format(wg_error_t *error, wg_status_t status, const char *format, ...)
{
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        error->status = status;
        error->param[0] = '\0';
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return status;
}

wg_status_t wg_invalid_field(wg_error_t *error, const char *field, const char *format, ...)
{
    char fault[384];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault, sizeof fault, format, arguments);
    va_end(arguments);
    WG_FAIL(error, INVALID_REQUEST, field, fault);
    if (error)
        snprintf(error->param, sizeof error->param, "%s", field);
    return WG_E_INVALID_REQUEST;
}
