/* The configuration: a file that is taken must print as one that means the same, and one that is refused must
 * be so in words for the user. What libconfig makes of a hostile text is not the point, for the file is the
 * user's own; but it goes through here whole, as it does in the programs. */
#include "common/config.h"
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

/* libconfig 1.5 loses the string that it has in hand when it meets a syntax error. The programs end then. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig.so\n";
}

typedef struct {
    int fd;
    char path[32];
} file_t;

static file_t file_new(const char *name)
{
    file_t file = {.fd = memfd_create(name, MFD_CLOEXEC)};
    FUZZ_CHECK(file.fd != -1);
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
    return file;
}

static void file_write(const file_t *file, const void *data, size_t size)
{
    FUZZ_CHECK(ftruncate(file->fd, 0) == 0);
    FUZZ_CHECK(pwrite(file->fd, data, size, 0) == (ssize_t)size);
}

/* Both caller's: *text to be freed. */
static void print(const wg_config_t *config, char **text, size_t *size)
{
    FILE *stream = open_memstream(text, size);
    FUZZ_CHECK(stream);
    wg_config_print(config, stream);
    FUZZ_CHECK(fclose(stream) == 0);
}

static void check_endpoint(const config_endpoint_t *endpoint)
{
    FUZZ_CHECK(memchr(endpoint->address, '\0', sizeof endpoint->address));
    FUZZ_CHECK(memchr(endpoint->bind, '\0', sizeof endpoint->bind));
    FUZZ_CHECK((endpoint->address[0] == '\0') == (endpoint->bind[0] == '\0'));
}

static void check_frontend(const wg_config_t *config, const config_frontend_t *frontend)
{
    FUZZ_CHECK(wg_config_frontend(config, frontend->name) == frontend); /* no other has its name */
    FUZZ_CHECK(frontend->rank_count > 0);
    for (uint32_t i = 0; i < frontend->rank_count; i++) {
        FUZZ_CHECK(frontend->ranks[i] < config->ranks.count);
        FUZZ_CHECK(i == 0 || frontend->ranks[i - 1] < frontend->ranks[i]);
    }
    check_endpoint(&frontend->input);
    check_endpoint(&frontend->output);
}

static void check_config(const wg_config_t *config)
{
    FUZZ_CHECK(config->ranks.count >= 1 && config->ranks.count <= WG_RANK_MAX + 1u);
    FUZZ_CHECK(config->frontend_count > 0);
    for (uint32_t i = 0; i < config->frontend_count; i++)
        check_frontend(config, &config->frontends[i]);
    check_endpoint(&config->coordinator.handshake);
    check_endpoint(&config->coordinator.engine_publish);
    FUZZ_CHECK(config->timeouts.heartbeat_timeout_ms > config->timeouts.heartbeat_interval_ms);
    FUZZ_CHECK(config->limits.max_in_flight >= 1);
}

/* What was printed is taken, gives every process the same picture of the cluster, and prints the same. */
static void check_round_trip(const wg_config_t *config, const file_t *file)
{
    char *first;
    char *second;
    size_t first_size;
    size_t second_size;
    wg_config_t *again;
    wg_error_t error = {0};
    print(config, &first, &first_size);
    file_write(file, first, first_size);
    wg_status_t status = wg_config_load(&again, file->path, &error);
    if (status != WG_OK)
        fprintf(stderr, "%s\n%s", error.message, first);
    FUZZ_CHECK(status == WG_OK);
    FUZZ_CHECK(wg_config_fingerprint(config) == wg_config_fingerprint(again));
    print(again, &second, &second_size);
    FUZZ_CHECK(first_size == second_size && memcmp(first, second, first_size) == 0);
    wg_config_destroy(&again);
    free(first);
    free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static file_t input = {.fd = -1};
    static file_t output;
    wg_config_t *config;
    wg_error_t error = {0};
    if (input.fd == -1) {
        input = file_new("input");
        output = file_new("output");
    }
    file_write(&input, data, size);
    wg_status_t status = wg_config_load(&config, input.path, &error);
    if (status == WG_OK) {
        check_config(config);
        check_round_trip(config, &output);
    } else {
        FUZZ_CHECK(status == WG_E_CONFIG && !config);
        fuzz_refusal(status, &error);
    }
    wg_config_destroy(&config);
    return 0;
}
