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
    size_t headers;
    size_t bytes; /* of the headers' lines */
} framing_t;

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    framing_t *framing = context;
    framing->headers++;
    /* Both stand where they were received, in one line: the blanks between them count, too. */
    framing->bytes += (size_t)(value - name) + strlen(value) + strlen("\r\n");
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

static size_t head_size(const http_exchange_t *exchange)
{
    return MHD_get_connection_info(exchange->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
}

/* libmicrohttpd takes what it reads for C strings: of a value or a path with a NUL in it, it passes on the
 * part before, and a header's line that begins with one is to it the end of the headers. It also joins
 * folded lines and takes a lone LF for the end of a line. In each of these cases the strings that it
 * passes on are fewer bytes than it has read. */
static bool is_every_byte_known(const http_exchange_t *exchange, const char *method, const char *version,
                                const framing_t *framing)
{
    const http_connection_t *connection = exchange->connection;
    size_t line = strlen(method) + strlen(" ") + connection->target_size + strlen(" ") + strlen(version);
    size_t known = line + strlen("\r\n") + framing->bytes + strlen("\r\n");
    return known == head_size(exchange) && !connection->is_target_cut;
}

static wg_status_t check_size(const http_exchange_t *exchange, const framing_t *framing, wg_error_t *error)
{
    const http_server_options_t *options = &exchange->connection->server->options;
    if (framing->headers > options->max_headers)
        return WG_FAIL(error, HEADER_TOO_LARGE, options->max_headers, "headers");
    if (head_size(exchange) > options->max_header_bytes)
        return WG_FAIL(error, HEADER_TOO_LARGE, options->max_header_bytes, "bytes");
    return WG_OK;
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
    if (framing->has_spaced_name)
        return wg_invalid_field(error, "header", "a header's name must not have a blank in it");
    return WG_OK;
}

static wg_status_t check_body_size(const framing_t *framing, size_t limit, wg_error_t *error)
{
    /* libmicrohttpd has refused what is not a number. */
    if (framing->length && strtoull(framing->length, NULL, 10) > limit)
        return WG_FAIL(error, BODY_TOO_LARGE, limit);
    return WG_OK;
}

wg_status_t http_head_check(const http_exchange_t *exchange, const char *method, const char *version,
                            wg_error_t *error)
{
    framing_t framing = {0};
    MHD_get_connection_values(exchange->mhd, MHD_HEADER_KIND, on_header, &framing);
    wg_status_t status = check_size(exchange, &framing, error);
    if (status == WG_OK)
        status = check_framing(&framing, error);
    if (status == WG_OK && !is_every_byte_known(exchange, method, version, &framing))
        status =
            wg_invalid_field(error, "header",
                             "the request's line and headers must each be one line that ends with CR and "
                             "LF, single blanks in the first, and have no NUL");
    if (status == WG_OK)
        status = check_body_size(&framing, exchange->connection->server->options.max_body_bytes, error);
    return status;
}
