#include "common/log.h"

#include <czmq.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct {
    char name[64];
    log_level_t least;
} self = {"wavegate", WG_LOG_NOTICE};

void log_open(const char *name, log_level_t least)
{
    snprintf(self.name, sizeof self.name, "%s", name);
    self.least = least;
    zsys_handler_set(NULL);
    zsys_set_logstream(stderr);
    zsys_set_logident(self.name);
}

bool log_level_parse(const char *text, log_level_t *out)
{
    static const char *const names[] = {"error", "warning", "notice", "debug"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (log_level_t)i;
            return true;
        }
    }
    return false;
}

void log_line(log_level_t level, const char *format, ...)
{
    if (level > self.least)
        return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    switch (level) {
    case WG_LOG_ERROR:
        zsys_error("%s", line);
        break;
    case WG_LOG_WARNING:
        zsys_warning("%s", line);
        break;
    case WG_LOG_NOTICE:
        zsys_notice("%s", line);
        break;
    case WG_LOG_DEBUG:
        zsys_debug("%s", line);
        break;
    }
}

const char *log_text(char out[LOG_TEXT_SIZE], const char *text, size_t size)
{
    size_t length = size < LOG_TEXT_SIZE - 1 ? size : LOG_TEXT_SIZE - 1;
    for (size_t i = 0; i < length; i++)
        out[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    out[length] = '\0';
    return out;
}
