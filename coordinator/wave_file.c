#include "coordinator/wave_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One line of fixed length, readable with cat:
 * "wavegate-wave 1 <fingerprint> <wave> <running> <check>\n" */
enum { RECORD_SIZE = 80, FINGERPRINT_AT = 16, WAVE_AT = 33, RUNNING_AT = 54 };

struct wave_file {
    char path[PATH_MAX];
    int fd;
    uint64_t fingerprint;
};

/* FNV-1a, a word at a time. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    for (unsigned shift = 0; shift < 64; shift += 8)
        hash = (hash ^ (word >> shift & 0xff)) * 1099511628211u;
    return hash;
}

static uint64_t check_of(uint64_t fingerprint, wave_file_state_t state)
{
    uint64_t hash = mix(14695981039346656037u, fingerprint);
    return mix(mix(hash, (uint64_t)state.current_wave), state.running);
}

static void write_record(char record[RECORD_SIZE + 1], uint64_t fingerprint, wave_file_state_t state)
{
    snprintf(record, RECORD_SIZE + 1, "wavegate-wave 1 %016" PRIx64 " %020" PRId64 " %d %016" PRIx64,
             fingerprint, state.current_wave, state.running, check_of(fingerprint, state));
    size_t length = strlen(record);
    memset(record + length, ' ', RECORD_SIZE - 1 - length);
    record[RECORD_SIZE - 1] = '\n';
    record[RECORD_SIZE] = '\0';
}

/* Reads the numbers where they would stand. Whether the record is ours, a comparison with what we would have written tells, byte
 * by byte, its check included. */
static wave_file_finding_t read_record(const wave_file_t *self, wave_file_state_t *state)
{
    char record[RECORD_SIZE + 1] = "";
    char same[RECORD_SIZE + 1];
    ssize_t size = pread(self->fd, record, RECORD_SIZE, 0);
    if (size == 0)
        return WAVE_FILE_MISSING;
    if (size != RECORD_SIZE)
        return WAVE_FILE_DAMAGED;
    uint64_t fingerprint = strtoull(record + FINGERPRINT_AT, NULL, 16);
    state->current_wave = strtoll(record + WAVE_AT, NULL, 10);
    state->running = record[RUNNING_AT] == '1';
    write_record(same, fingerprint, *state);
    if (memcmp(record, same, RECORD_SIZE) != 0 || state->current_wave < 0)
        return WAVE_FILE_DAMAGED;
    return fingerprint == self->fingerprint ? WAVE_FILE_READ : WAVE_FILE_FOREIGN;
}

static bool open_in(wave_file_t *self, const char *folder)
{
    if (!folder || !folder[0])
        return false;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return false;
    int length =
        snprintf(self->path, sizeof self->path, "%s/wavegate-%016" PRIx64 ".wave", folder, self->fingerprint);
    if (length < 0 || (size_t)length >= sizeof self->path)
        return false;
    self->fd = open(self->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return self->fd != -1;
}

static bool open_file(wave_file_t *self, const wg_config_t *config)
{
    const char *path = config->coordinator.state_file;
    if (!path || !path[0])
        return open_in(self, "/run/wavegate") || open_in(self, getenv("XDG_RUNTIME_DIR")) ||
               open_in(self, "/tmp");
    snprintf(self->path, sizeof self->path, "%s", path);
    self->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return self->fd != -1;
}

wg_status_t wave_file_open(wave_file_t **out, const wg_config_t *config, wave_file_finding_t *finding,
                           wave_file_state_t *state, wg_error_t *error)
{
    wave_file_t *self = calloc(1, sizeof *self);
    *out = NULL;
    if (!self)
        return WG_FAIL(error, SYSTEM, "state file", "out of memory");
    self->fd = -1;
    self->fingerprint = wg_config_fingerprint(config);
    if (!open_file(self, config)) {
        wg_status_t status = WG_FAIL(error, SYSTEM, self->path, strerror(errno));
        wave_file_close(&self);
        return status;
    }
    *finding = read_record(self, state);
    *out = self;
    return WG_OK;
}

void wave_file_close(wave_file_t **file)
{
    wave_file_t *self = *file;
    if (!self)
        return;
    if (self->fd != -1)
        close(self->fd);
    free(self);
    *file = NULL;
}

wg_status_t wave_file_save(wave_file_t *file, wave_file_state_t state, wg_error_t *error)
{
    char record[RECORD_SIZE + 1];
    write_record(record, file->fingerprint, state);
    if (pwrite(file->fd, record, RECORD_SIZE, 0) != RECORD_SIZE)
        return WG_FAIL(error, SYSTEM, file->path, strerror(errno));
    return WG_OK;
}

const char *wave_file_path(const wave_file_t *file)
{
    return file->path;
}
