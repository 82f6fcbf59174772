#include "common/faults.h"

#include "common/log.h"

#include <czmq.h>
#include <stdlib.h>
#include <string.h>

#define REMEMBERED_MAX 1024u
#define FULL_MS (INT64_C(60) * 60 * 1000) /* so long nothing new is said */

struct faults {
    uint64_t counts[FAULTS_SOCKET_COUNT][WG_STATUS_COUNT];
    zhashx_t *said;        /* "socket status peer" of each line that was logged */
    int64_t full_since_ms; /* monotonic; 0: there is room */
};

static const char *const socket_names[FAULTS_SOCKET_COUNT] = {
    [FAULTS_HANDSHAKE] = "handshake",
    [FAULTS_INPUT] = "input",
    [FAULTS_OUTPUT] = "output",
    [FAULTS_ENGINE_PUBLISH] = "engine_publish",
    [FAULTS_ENGINE_OUTPUT] = "engine_output",
    [FAULTS_FRONTEND_PUBLISH] = "frontend_publish",
    [FAULTS_CONTROL] = "control",
};

faults_t *faults_new(void)
{
    faults_t *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->said = zhashx_new();
    if (!self->said)
        faults_destroy(&self);
    return self;
}

void faults_destroy(faults_t **faults)
{
    if (!*faults)
        return;
    zhashx_destroy(&(*faults)->said);
    free(*faults);
    *faults = NULL;
}

/* Else the faults of a process's first day could keep those of its later life out of the log. */
static void forget_after_a_while(faults_t *self)
{
    if (self->full_since_ms == 0 || zclock_mono() - self->full_since_ms < FULL_MS)
        return;
    self->full_since_ms = 0;
    zhashx_purge(self->said);
}

/* True where this has not been said yet; then it is remembered as said. */
static bool is_new(faults_t *self, const char *key)
{
    forget_after_a_while(self);
    if (zhashx_lookup(self->said, key))
        return false;
    if (zhashx_size(self->said) < REMEMBERED_MAX)
        return zhashx_insert(self->said, key, self) == 0;
    if (self->full_since_ms == 0) {
        self->full_since_ms = zclock_mono();
        log_warning("%u kinds of fault were reported; for an hour, further ones are only counted",
                    REMEMBERED_MAX);
    }
    return false;
}

/* A message may quote what the peer sent: a newline in it would forge a line of the log. */
static void make_printable(char *text)
{
    for (; *text; text++) {
        if (*text < 0x20 || *text >= 0x7f)
            *text = '?';
    }
}

void faults_report(faults_t *faults, faults_socket_t socket, const char *peer, const wg_error_t *error)
{
    if ((unsigned)socket >= FAULTS_SOCKET_COUNT || (unsigned)error->status >= WG_STATUS_COUNT)
        return;
    faults->counts[socket][error->status]++;
    char name[LOG_TEXT_SIZE];
    log_text(name, peer, strlen(peer));
    char key[LOG_TEXT_SIZE + 32];
    snprintf(key, sizeof key, "%u %u %s", (unsigned)socket, (unsigned)error->status, name);
    if (!is_new(faults, key))
        return;
    wg_error_t shown = *error;
    make_printable(shown.message);
    log_warning("%s socket=%s cause=%s peer=%s", shown.message, socket_names[socket],
                wg_status_name(error->status), name);
}

void faults_report_rank(faults_t *faults, faults_socket_t socket, uint32_t rank, const wg_error_t *error)
{
    char peer[sizeof "rank 4294967295"];
    snprintf(peer, sizeof peer, "rank %u", (unsigned)rank);
    faults_report(faults, socket, peer, error);
}

uint64_t faults_count(const faults_t *faults, faults_socket_t socket, wg_status_t status)
{
    if ((unsigned)socket >= FAULTS_SOCKET_COUNT || (unsigned)status >= WG_STATUS_COUNT)
        return 0;
    return faults->counts[socket][status];
}

static bool socket_json(const uint64_t counts[WG_STATUS_COUNT], const char *name, bool first,
                        text_buffer_t *out)
{
    const char *before = "";
    for (unsigned i = 0; i < WG_STATUS_COUNT; i++) {
        if (counts[i] == 0)
            continue;
        if (*before == '\0')
            text_buffer_format(out, "%s\"%s\":{", first ? "" : ",", name);
        text_buffer_format(out, "%s\"%s\":%llu", before, wg_status_name((wg_status_t)i),
                           (unsigned long long)counts[i]);
        before = ",";
    }
    if (*before != '\0')
        text_buffer_text(out, "}");
    return *before != '\0';
}

void faults_json(const faults_t *faults, text_buffer_t *out)
{
    bool first = true;
    text_buffer_text(out, "{");
    for (unsigned i = 0; i < FAULTS_SOCKET_COUNT; i++) {
        if (socket_json(faults->counts[i], socket_names[i], first, out))
            first = false;
    }
    text_buffer_text(out, "}");
}
