#include "common/config_address.h"

#include "common/wire_reader.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#define TCP "tcp://"
#define IPC "ipc://"
#define HOST_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

WG_PRINTF(2, 3) static bool refuse(char reason[CONFIG_REASON_SIZE], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, CONFIG_REASON_SIZE, format, arguments);
    va_end(arguments);
    return false;
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool parse_port(const char *text, uint32_t least, uint16_t *out, char *reason)
{
    uint32_t port = 0;
    size_t length = strlen(text);
    bool number = length > 0 && length <= 5 && strspn(text, "0123456789") == length;
    for (const char *at = text; number && *at; at++)
        port = port * 10 + (uint32_t)(*at - '0');
    if (!number || port < least || port > UINT16_MAX)
        return refuse(reason, "the port must be a number in [%u, 65535], not `%.16s`", least, text);
    *out = (uint16_t)port;
    return true;
}

/* --- hosts --- */

/* Nothing, or % and the name of a network interface. */
static bool is_scope(const char *text)
{
    size_t length = strlen(text);
    return length == 0 ||
           (length > 1 && length <= IF_NAMESIZE && strspn(text + 1, HOST_CHARACTERS) == length - 1);
}

static bool set_ipv6(const char *text, config_target_t *out, char *reason)
{
    char number[INET6_ADDRSTRLEN];
    struct in6_addr bytes;
    size_t length = strcspn(text, "%");
    const char *scope = text + length;
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    if (length >= sizeof number || inet_pton(AF_INET6, number, &bytes) != 1 || !is_scope(scope))
        return refuse(reason, "`%.64s` is not an IPv6 address", text);
    inet_ntop(AF_INET6, &bytes, number, sizeof number);
    snprintf(out->host, sizeof out->host, "%s%s", number, scope);
    out->wildcard = IN6_IS_ADDR_UNSPECIFIED(&bytes);
    out->loopback = IN6_IS_ADDR_LOOPBACK(&bytes);
    return true;
}

static bool set_ipv4(const char *text, config_target_t *out, char *reason)
{
    struct in_addr bytes;
    if (inet_pton(AF_INET, text, &bytes) != 1)
        return refuse(reason, "`%.64s` is not an IPv4 address", text);
    inet_ntop(AF_INET, &bytes, out->host, sizeof out->host);
    out->wildcard = bytes.s_addr == htonl(INADDR_ANY);
    out->loopback = ntohl(bytes.s_addr) >> 24 == 127;
    return true;
}

static bool set_name(const char *text, config_target_t *out, char *reason)
{
    size_t length = strlen(text);
    if (length == 0)
        return refuse(reason, "the host is missing");
    if (length >= sizeof out->host)
        return refuse(reason, "the host has %zu bytes, the most are %zu", length, sizeof out->host - 1);
    if (strspn(text, HOST_CHARACTERS) != length || *text == '-' || *text == '.')
        return refuse(reason, "`%.64s` is not a host name", text);
    for (size_t i = 0; i <= length; i++)
        out->host[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    if (strcmp(out->host, "localhost") == 0)
        return set_ipv4("127.0.0.1", out, reason);
    return true;
}

/* Any host but an IPv6 address. */
static bool set_host(const char *text, config_target_t *out, char *reason)
{
    if (strcmp(text, "*") == 0)
        return set_ipv4("0.0.0.0", out, reason);
    if (*text && strspn(text, "0123456789.") == strlen(text))
        return set_ipv4(text, out, reason);
    return set_name(text, out, reason);
}

/* host:port, where prefix is what stood before it: advice should be text that the user can paste. */
static bool parse_host_port(const char *prefix, const char *text, uint32_t least_port, config_target_t *out,
                            char *reason)
{
    char host[256];
    const char *colon = strrchr(text, ':');
    bool bracketed = *text == '[';
    if (bracketed) {
        const char *bracket = strchr(text, ']');
        if (!bracket || bracket[1] != ':')
            return refuse(reason, "an IPv6 address must end with `]:port`: %s[::1]:5000", prefix);
        colon = bracket + 1;
    }
    if (!colon)
        return refuse(reason, "the port is missing: %shost:port", prefix);
    size_t length = (size_t)(colon - text);
    if (!bracketed && memchr(text, ':', length))
        return refuse(reason, "put the IPv6 address in brackets: %s[%.*s]%.16s", prefix,
                      (int)(length < 64 ? length : 64), text, colon);
    if (length >= sizeof host)
        return refuse(reason, "the host has %zu bytes, the most are %zu", length, sizeof out->host - 1);
    size_t skipped = bracketed ? 1 : 0;
    snprintf(host, sizeof host, "%.*s", (int)(length - 2 * skipped), text + skipped);
    if (!(bracketed ? set_ipv6(host, out, reason) : set_host(host, out, reason)))
        return false;
    return parse_port(colon + 1, least_port, &out->port, reason);
}

bool config_host_parse(const char *text, char reason[CONFIG_REASON_SIZE])
{
    config_target_t target = {0};
    if (!(strchr(text, ':') ? set_ipv6(text, &target, reason) : set_host(text, &target, reason)))
        return false;
    return !target.wildcard ||
           refuse(reason, "`%.64s` is a wildcard; give the address that engines reach", text);
}

/* --- addresses --- */

static bool parse_ipc(const char *path, config_target_t *out, char *reason)
{
    size_t length = strlen(path);
    if (*path != '/')
        return refuse(reason, "an ipc path must be absolute: ipc:///path");
    if (length > CONFIG_IPC_PATH_MAX)
        return refuse(reason, "the ipc path has %zu bytes, the most are %u", length, CONFIG_IPC_PATH_MAX);
    for (const char *at = path; *at; at++) {
        if ((unsigned char)*at <= ' ' || *at == 0x7f)
            return refuse(reason, "the ipc path holds a space or a control character");
    }
    if (!wire_utf8_valid(path, length))
        return refuse(reason, "the ipc path is not UTF-8");
    snprintf(out->host, sizeof out->host, "%s", path);
    out->ipc = true;
    return true;
}

bool config_address_parse(const char *text, const char *bind_key, config_target_t *out,
                          char reason[CONFIG_REASON_SIZE])
{
    *out = (config_target_t){0};
    if (starts_with(text, IPC))
        return parse_ipc(text + strlen(IPC), out, reason);
    if (!starts_with(text, TCP))
        return refuse(reason, "`%.64s` must be tcp://host:port or ipc:///path", text);
    if (!parse_host_port(TCP, text + strlen(TCP), 1, out, reason))
        return false;
    if (strlen(text) >= WG_ADDRESS_SIZE)
        return refuse(reason, "the address has %zu bytes, the most are %u", strlen(text),
                      WG_ADDRESS_SIZE - 1);
    if (out->wildcard && bind_key)
        return refuse(
            reason,
            "`%.64s` is a wildcard: give the address that engines reach, and put the wildcard in `%s`", text,
            bind_key);
    return true;
}

void config_address_text(const char *text, const config_target_t *target, char out[WG_ADDRESS_SIZE])
{
    static const char localhost[] = TCP "localhost:";
    if (strncasecmp(text, localhost, sizeof localhost - 1) == 0)
        snprintf(out, WG_ADDRESS_SIZE, TCP "127.0.0.1:%u", (unsigned)target->port);
    else
        snprintf(out, WG_ADDRESS_SIZE, "%s", text);
}

bool config_http_parse(const char *text, config_http_t *out, char reason[CONFIG_REASON_SIZE])
{
    config_target_t target = {0};
    char bytes[sizeof(struct in6_addr)];
    if (!parse_host_port("", text, 0, &target, reason))
        return false;
    if (inet_pton(AF_INET, target.host, bytes) != 1 && inet_pton(AF_INET6, target.host, bytes) != 1)
        return refuse(reason,
                      "the host must be numeric (IPv4, or IPv6 in brackets) or `localhost`, not `%.64s`",
                      target.host);
    snprintf(out->host, sizeof out->host, "%.*s", (int)(sizeof out->host - 1), target.host);
    out->port = target.port;
    return true;
}

void config_http_target(const config_http_t *http, config_target_t *out)
{
    char reason[CONFIG_REASON_SIZE];
    *out = (config_target_t){.port = http->port};
    /* The host was checked when it was read, so neither can refuse it. */
    (void)(strchr(http->host, ':') ? set_ipv6(http->host, out, reason) : set_ipv4(http->host, out, reason));
}

bool config_target_equal(const config_target_t *left, const config_target_t *right)
{
    return left->ipc == right->ipc && left->port == right->port && strcmp(left->host, right->host) == 0;
}

bool config_target_collides(const config_target_t *left, const config_target_t *right)
{
    if (left->ipc || right->ipc || left->port != right->port)
        return config_target_equal(left, right);
    return left->port != 0 && (left->wildcard || right->wildcard || config_target_equal(left, right));
}
