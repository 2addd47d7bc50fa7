/* Crops a second that the queue of training data delivers, by number of workers, and the memory that it holds.
 *
 *     data_rates FOLDER [CROP [BATCH [MEMORY_MIB [CHANNELS]]]]
 *
 * The first pass decodes the images; MEMORY_MIB is the budget for decoded images, 0 decodes at every use. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/pool.h"
#include "train/data_folder.h"

static tess_memory counter;
static tess_error error;

static int fail(void)
{
    fprintf(stderr, "%s\n", error.text);
    return 1;
}

/* Seconds to take `steps` batches; negative on failure. */
static double take(tess_data_queue *queue, int steps)
{
    const double start = tess_clock();
    for (int i = 0; i < steps; i++) {
        tess_batch batch;
        if (tess_data_take(queue, &batch, &error) != TESS_OK)
            return -1;
        tess_data_release(queue, &batch);
    }
    return tess_clock() - start;
}

static int measure(tess_device *device, const tess_folder_settings *folder, int64_t batch, int workers)
{
    tess_source *source = NULL;
    tess_data_queue *queue = NULL;
    const double start = tess_clock();
    if (tess_folder_open(folder, &source, &error) != TESS_OK)
        return fail();
    const double opened = tess_clock();
    const tess_data_settings settings = {.source = source,
                                         .device = device,
                                         .seed = 1,
                                         .batch = batch,
                                         .parts = 1,
                                         .depth = 4,
                                         .workers = workers};
    int64_t kept = 0;
    (void)tess_images_kept_bytes(tess_folder_images(source), &kept);
    tess_memory_reset_peak(&counter);
    if (tess_data_open(&settings, &queue, &error) != TESS_OK)
        return fail();
    const int steps = 40;
    const double first = take(queue, steps), rest = take(queue, steps);
    if (first < 0 || rest < 0)
        return fail();
    tess_mem_usage peak;
    tess_memory_peak(&counter, TESS_MEM_OF_DEVICE, &peak);
    printf("%d workers: opened in %.2f s, first %d batches %.0f crops/s, then %.0f crops/s; %lld of %lld "
           "images kept, "
           "planned %.1f MiB, peak %.1f MiB\n",
           workers, opened - start, steps, (double)(steps * batch) / first, (double)(steps * batch) / rest,
           (long long)kept, (long long)source->items, (double)tess_data_bytes(&settings) / (1 << 20),
           (double)peak.bytes.by[TESS_MEM_HOST] / (1 << 20));
    tess_data_close(queue);
    tess_source_close(source);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: data_rates FOLDER [CROP [BATCH [MEMORY_MIB [CHANNELS]]]]\n");
        return 2;
    }
    tess_folder_settings folder;
    tess_folder_defaults(&folder);
    const char *const paths[] = {argv[1]};
    folder.images.paths = paths;
    folder.images.path_count = 1;
    folder.images.recursive = true;
    folder.images.memory = &counter;
    folder.crop = argc > 2 ? atoll(argv[2]) : folder.crop;
    const int64_t batch = argc > 3 ? atoll(argv[3]) : 64;
    if (argc > 4)
        folder.images.budget = (size_t)atoll(argv[4]) << 20;
    folder.images.channels = argc > 5 ? atoi(argv[5]) : 3;
    tess_device *device = NULL;
    if (tess_registry_open("auto", &(tess_device_options){.threads = 1, .memory = &counter}, &device,
                           &error) != TESS_OK)
        return fail();
    int status = 0;
    for (int workers = 1; workers <= tess_cpu_count() && status == 0; workers *= 2)
        status = measure(device, &folder, batch, workers);
    tess_registry_close(device);
    return status;
}
