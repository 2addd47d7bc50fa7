/* Measures how fast rays are computed: forward and transpose of the Radon transform or of a cone beam, one JSON line
 * each. An update is a sample of a ray (views size^2, or views rows columns depth) or, for a transpose, a view of a
 * pixel or voxel; both numbers are equal.
 *
 *   rays_rates DEVICE radon SIZE VIEWS [REPEATS]     e.g. rays_rates cuda radon 2048 100
 *   rays_rates DEVICE cone SIZE VIEWS [REPEATS]      e.g. rays_rates cuda cone 512 50
 *   rays_rates DEVICE rolled SIZE VIEWS [REPEATS]    the same, all detectors rolled by a degree */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "physics/radon.h"
#include "physics/rays.h"
#include "rates.h"

static tess_memory counter;

enum { MOST = 1000 };

/* Turns a view's detector in its plane. */
static void roll(double view[12], double degrees)
{
    const double turn = degrees * 3.14159265358979323846 / 180, c = cos(turn), n = sin(turn);
    for (int i = 6; i < 9; i++) {
        const double u = view[i], v = view[i + 3];
        view[i] = c * u + n * v;
        view[i + 3] = c * v - n * u;
    }
}

static tess_operator *make(tess_device *device, bool cone, double degrees, int64_t size, int64_t views)
{
    tess_operator *op = NULL;
    tess_error error;
    double *numbers = malloc((size_t)views * 12 * sizeof *numbers);
    if (!numbers)
        exit(1);
    if (cone) { /* the detector sees the volume twice as large; its pixels are two voxels wide */
        const tess_rays_settings s = {TESS_CONE_3D, size, size, size, 1, views, size, size, numbers};
        tess_rays_circle(views, 2.0 * (double)size, 2.0 * (double)size, 2, numbers);
        for (int64_t k = 0; k < views && degrees != 0; k++)
            roll(numbers + 12 * k, degrees);
        need(tess_rays_create(device, &s, &op, &error), &error);
    } else {
        for (int64_t k = 0; k < views; k++)
            numbers[k] = 180.0 * (double)k / (double)views;
        need(tess_radon_create(device, size, views, numbers, true, &op, &error), &error);
    }
    free(numbers);
    return op;
}

/* Random values: a card does not draw the same power on zeros. */
static tess_block values(tess_device *device, const tess_tensor *like)
{
    tess_block block = {0};
    tess_error error;
    size_t bytes = 0;
    float *host = NULL;
    if (tess_tensor_bytes(like, &bytes))
        host = malloc(bytes);
    if (!host)
        exit(1);
    tess_rng_uniform((tess_rng_key){.seed = 1}, 0, (int64_t)(bytes / sizeof *host), host);
    need(device->memory->alloc(device, &block, TESS_MEM_WORKSPACE, bytes, &error), &error);
    device->memory->copy(device, block.data, host, bytes, NULL);
    need(device->streams->sync(device, NULL, &error), &error);
    free(host);
    return block;
}

int main(int argc, char **argv)
{
    const int64_t size = argc > 3 ? atoll(argv[3]) : 0, views = argc > 4 ? atoll(argv[4]) : 0;
    const int repeats = argc > 5 ? atoi(argv[5]) : 20;
    const bool rolled = argc > 2 && strcmp(argv[2], "rolled") == 0,
               cone = rolled || (argc > 2 && strcmp(argv[2], "cone") == 0);
    if (argc < 5 || (!cone && strcmp(argv[2], "radon") != 0) || size < 2 || views < 1 || repeats < 1 ||
        repeats > MOST) {
        fprintf(stderr, "usage: %s DEVICE radon|cone|rolled SIZE VIEWS [REPEATS up to %d]\n", argv[0], MOST);
        return 2;
    }
    tess_device *device = NULL;
    tess_error error;
    tess_device_facts facts;
    need(tess_registry_open(argv[1], &(tess_device_options){.memory = &counter}, &device, &error), &error);
    device->facts(device, &facts);
    tess_operator *op = make(device, cone, rolled ? 1 : 0, size, views);
    tess_block image = values(device, &op->image), seen = values(device, &op->measurement), scratch = {0};
    need(device->memory->alloc(device, &scratch, TESS_MEM_WORKSPACE, op->scratch_bytes + 1, &error), &error);
    const double updates = (double)views * (double)size * (double)size * (cone ? (double)size : 1);
    for (int back = 0; back < 2; back++) {
        double seconds[MOST];
        for (int i = -1; i < repeats; i++) { /* the first warms up */
            const double start = tess_clock();
            if (back)
                op->table->adjoint(op, seen.data, image.data, scratch.data, NULL);
            else
                op->table->forward(op, image.data, seen.data, scratch.data, NULL);
            need(device->streams->sync(device, NULL, &error), &error);
            if (i >= 0)
                seconds[i] = tess_clock() - start;
        }
        qsort(seconds, (size_t)repeats, sizeof *seconds, by_value);
        const double median = seconds[repeats / 2];
        printf(
            "{\"study\":\"rays\",\"engine\":\"tessera\",\"device\":\"%s\",\"operator\":\"%s\",\"size\":%lld,"
            "\"views\":%lld,\"direction\":\"%s\",\"median_ms\":%.4f,\"least_ms\":%.4f,\"most_ms\":%.4f,"
            "\"gups\":%.3f,\"bytes_beyond\":%zu}\n",
            facts.name, argv[2], (long long)size, (long long)views, back ? "adjoint" : "forward",
            1e3 * median, 1e3 * seconds[0], 1e3 * seconds[repeats - 1], 1e-9 * updates / median,
            op->held_bytes + op->scratch_bytes);
    }
    device->memory->free(device, &scratch);
    device->memory->free(device, &seen);
    device->memory->free(device, &image);
    tess_operator_destroy(op);
    tess_registry_close(device);
    return 0;
}
