#include "common/exposure.h"

#include "common/config_address.h"
#include "common/config_repeat.h"
#include "common/config_table.h"
#include "common/log.h"
#include "common/text_buffer.h"

#include <string.h>

static bool is_wildcard(const config_key_t *key, const void *base)
{
    const config_endpoint_t *endpoint = config_value_at(key, base);
    config_target_t target;
    char reason[CONFIG_REASON_SIZE];
    /* An optional endpoint that is not configured is empty, and no address. */
    return config_address_parse(endpoint->bind, NULL, &target, reason) && target.wildcard;
}

void exposure_warn(const wg_config_t *config, const config_frontend_t *frontend)
{
    const char *section = frontend ? CONFIG_FRONTENDS : "coordinator";
    const void *base = frontend ? (const void *)frontend : config;
    size_t count;
    const config_key_t *keys = config_keys(&count);
    text_buffer_t names = {0};
    for (const config_key_t *key = keys; key < keys + count; key++) {
        if (key->type == &config_type_address && strcmp(key->section, section) == 0 && is_wildcard(key, base))
            text_buffer_format(&names, "%s%s", names.size > 0 ? "," : "", key->name);
    }
    if (names.size > 0 && !names.failed)
        log_warning("bound on every interface: whoever reaches these is believed, so let only the cluster's "
                    "machines reach them sockets=%.*s",
                    (int)names.size, names.data);
    text_buffer_free(&names);
}
