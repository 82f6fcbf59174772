#include "tests/bench/target.h"

#include <netdb.h>
#include <string.h>

#define SCHEME "http://"

static wg_status_t refuse(const char *url, const char *why, wg_error_t *error)
{
    return wg_invalid_field(error, "--url", "`%s`: %s", url, why);
}

static wg_status_t look_up(target_t *out, const char *url, const char *name, const char *port,
                           wg_error_t *error)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *info = NULL;
    int code = getaddrinfo(name, port, &hints, &info);
    if (code != 0)
        return refuse(url, gai_strerror(code), error);
    memcpy(&out->address, info->ai_addr, info->ai_addrlen);
    out->address_size = info->ai_addrlen;
    freeaddrinfo(info);
    return WG_OK;
}

wg_status_t target_parse(target_t *out, const char *url, wg_error_t *error)
{
    static const char expected[] = "not of the form http://HOST:PORT";
    *out = (target_t){0};
    size_t scheme = strlen(SCHEME);
    if (strncmp(url, SCHEME, scheme) != 0)
        return refuse(url, expected, error);
    size_t size = strcspn(url + scheme, "/");
    const char *rest = url + scheme + size;
    if (size >= sizeof out->host || strcmp(rest, *rest ? "/" : "") != 0)
        return refuse(url, expected, error);
    memcpy(out->host, url + scheme, size);
    char text[TARGET_HOST_SIZE];
    memcpy(text, out->host, sizeof text);
    char *colon = strrchr(text, ':');
    if (!colon || colon == text || !colon[1])
        return refuse(url, expected, error);
    *colon = '\0';
    char *name = text;
    if (*name == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        name++;
    }
    return look_up(out, url, name, colon + 1, error);
}
