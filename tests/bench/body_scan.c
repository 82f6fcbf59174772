/* How long a body of 100,000 token ids takes, against jansson alone: medians of one run.
 *
 *   build/demo/tests/wavegate-body-scan
 */
#include "common/model_files.h"
#include "common/text_buffer.h"
#include "frontend/request_body.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { IDS = 100000, RUNS = 101 };

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int by_value(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static double median(double *times)
{
    qsort(times, RUNS, sizeof *times, by_value);
    return times[RUNS / 2];
}

int main(void)
{
    wg_config_t config = {.defaults = {NAN, NAN, NAN, NAN, WG_CONFIG_UNSET, WG_CONFIG_UNSET}};
    config.limits.max_json_depth = 32;
    wg_error_t error = {0};
    text_buffer_t text = {0};
    double ours[RUNS];
    double plain[RUNS];
    text_buffer_text(&text, "{\"sampling_params\":{\"max_tokens\":16},\"token_ids\":[7");
    for (int i = 1; i < IDS; i++)
        text_buffer_format(&text, ", %d", i * 7919 % 150000);
    text_buffer_text(&text, "]}");
    if (text.failed || model_files_apply(&config, &error) != WG_OK)
        return EXIT_FAILURE;
    for (int i = 0; i < RUNS; i++) {
        request_body_t body;
        double begun = now_ms();
        wg_status_t status = generate_body_parse(&body, &config, text.data, text.size, &error);
        double scanned = now_ms();
        json_t *root = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
        plain[i] = now_ms() - scanned;
        ours[i] = scanned - begun;
        bool good = status == WG_OK && body.prompts[0].count == IDS && root;
        json_decref(root);
        request_body_free(&body);
        if (!good) {
            fprintf(stderr, "%s\n", error.message);
            return EXIT_FAILURE;
        }
    }
    double fast = median(ours);
    double slow = median(plain);
    printf("a body of %d ids, %zu bytes, checked and packed: %.2f ms; jansson alone: %.2f ms; ratio %.1f\n",
           IDS, text.size, fast, slow, slow / fast);
    text_buffer_free(&text);
    return EXIT_SUCCESS;
}
