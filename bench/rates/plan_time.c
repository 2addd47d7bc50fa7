/* Measures how long the library's plan call takes: opening the device, the directory of the weight file and the
 * image's header, choosing tile and batch, writing the record.
 *
 *   plan_time IN MODEL [MEMORY_IN_MIB] [REPEATS]      e.g. plan_time big.png drunet.pth 300 */
#include <stdio.h>
#include <stdlib.h>

#include "rates.h"
#include "tessera.h"

int main(int argc, char **argv)
{
    enum { MOST = 1000 };
    int repeats = argc > 4 ? atoi(argv[4]) : 50;
    if (argc < 3 || repeats < 1 || repeats > MOST) {
        fprintf(stderr, "usage: %s IN MODEL [MEMORY_IN_MIB] [REPEATS up to %d]\n", argv[0], MOST);
        return 2;
    }
    tess_context *context = NULL;
    if (tess_context_create(&context) != TESS_OK)
        return 1;
    tess_denoise_settings settings;
    tess_denoise_settings_init(&settings);
    settings.input = argv[1];
    settings.output = "plan_time_output.png"; /* never written */
    settings.model = argv[2];
    settings.sigma = 0.1;
    settings.common.memory_limit = argc > 3 ? (uint64_t)atoll(argv[3]) << 20 : 0;
    static double seconds[MOST];
    for (int i = 0; i < repeats; i++) {
        char *record = NULL;
        double start = tess_clock();
        tess_status status = tess_plan_denoise(context, &settings, &record);
        seconds[i] = tess_clock() - start;
        tess_record_free(record);
        if (status != TESS_OK) {
            fprintf(stderr, "%s\n", tess_context_error(context));
            return 1;
        }
    }
    double first = seconds[0];
    qsort(seconds, (size_t)repeats, sizeof *seconds, by_value);
    printf("{\"study\":\"plan_time\",\"engine\":\"tessera\",\"repeats\":%d,\"first_ms\":%.3f,\"median_ms\":%."
           "3f,\"largest_ms\":%.3f}\n",
           repeats, 1e3 * first, 1e3 * seconds[repeats / 2], 1e3 * seconds[repeats - 1]);
    tess_context_destroy(context);
    return 0;
}
