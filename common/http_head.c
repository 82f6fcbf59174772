#include "common/http_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
    const char *length; /* the value of Content-Length */
    unsigned lengths;
    unsigned encodings;
    bool is_chunked;
    bool has_spaced_name;
    bool has_broken_line;
    size_t headers;
} framing_t;

/* libmicrohttpd takes a value to its first NUL, and drops the rest. But it has also put NULs where the CR and
 * the LF of the line were: behind a value that is whole, there are two. (One, where the line ended without a
 * CR: such a line is refused, too. Not even the last header stands at the end of the memory that holds them.) */
static bool is_whole(const char *value)
{
    return value[strlen(value) + 1] == '\0';
}

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    framing_t *framing = context;
    framing->headers++;
    framing->has_broken_line = framing->has_broken_line || !value || !is_whole(value);
    if (strcasecmp(name, "Content-Length") == 0) {
        framing->lengths++;
        framing->length = value;
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        framing->encodings++;
        framing->is_chunked = strcasecmp(value, "chunked") == 0;
    } else if (strpbrk(name, " \t")) {
        framing->has_spaced_name = true;
    }
    return MHD_YES;
}

/* Where a proxy before us and libmicrohttpd could disagree on the end of the request, what follows could be
 * taken for another client's request. libmicrohttpd accepts all of these. */
static wg_status_t check_framing(const framing_t *framing, wg_error_t *error)
{
    if (framing->lengths > 1)
        return wg_invalid_field(error, "Content-Length", "given %u times, must be given once",
                                framing->lengths);
    if (framing->lengths && framing->encodings)
        return wg_invalid_field(error, "Content-Length",
                                "given together with Transfer-Encoding, must be one");
    if (framing->encodings > 1 || (framing->encodings && !framing->is_chunked))
        return wg_invalid_field(error, "Transfer-Encoding", "must be `chunked`, or not be given");
    if (framing->has_broken_line)
        return wg_invalid_field(error, "header",
                                "a header's line must end with CR and LF, without a NUL before");
    if (framing->has_spaced_name)
        return wg_invalid_field(error, "header", "a header's name must not have a blank in it");
    return WG_OK;
}

/* libmicrohttpd takes the parts of the line, too, each to its first NUL. Where they are whole, only the NUL in
 * place of one blank stands between them. */
static bool is_line_whole(const http_exchange_t *exchange, const http_line_t *line)
{
    const char *target_end = exchange->connection->target_end;
    return line->method + strlen(line->method) + 1 == line->target && target_end &&
           target_end + 1 == line->version;
}

wg_status_t http_head_check(const http_exchange_t *exchange, const http_line_t *line, wg_error_t *error)
{
    const http_server_options_t *options = &exchange->connection->server->options;
    framing_t framing = {0};
    MHD_get_connection_values(exchange->mhd, MHD_HEADER_KIND, on_header, &framing);
    if (!is_line_whole(exchange, line))
        return wg_invalid_field(error, "request line",
                                "must be a method, a target and a version, with one blank "
                                "between them and no NUL");
    if (framing.headers > options->max_headers)
        return WG_FAIL(error, HEADER_TOO_LARGE, options->max_headers);
    wg_status_t status = check_framing(&framing, error);
    /* libmicrohttpd has refused what is not a number. */
    if (status == WG_OK && framing.length && strtoull(framing.length, NULL, 10) > options->max_body_bytes)
        status = WG_FAIL(error, BODY_TOO_LARGE, options->max_body_bytes);
    return status;
}
