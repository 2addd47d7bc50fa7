/* A small program that uses tessera.h: plans a job, prints the record, runs it.
 *
 *   denoise IN OUT SIGMA [MEMORY_IN_MIB] */
#include <stdio.h>
#include <stdlib.h>

#include "tessera.h"

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s IN OUT SIGMA [MEMORY_IN_MIB]\n", argv[0]);
        return 2;
    }
    tess_context *context = NULL;
    if (tess_context_create(&context) != TESS_OK)
        return 1;
    tess_denoise_settings settings;
    tess_denoise_settings_init(&settings);
    settings.input = argv[1];
    settings.output = argv[2];
    settings.sigma = atof(argv[3]);
    if (argc > 4)
        settings.common.memory_limit = (uint64_t)atoll(argv[4]) << 20;

    char *record = NULL;
    tess_status status = tess_plan_denoise(context, &settings, &record);
    if (status == TESS_OK) {
        printf("plan: %s\n", record);
        tess_record_free(record);
        status = tess_denoise(context, &settings, &record);
    }
    if (status == TESS_OK)
        printf("done: %s\n", record);
    else
        fprintf(stderr, "failed: %s\n", tess_context_error(context));
    tess_record_free(record);
    tess_context_destroy(context);
    return status == TESS_OK ? 0 : 1;
}
