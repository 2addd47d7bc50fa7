/* Measures how fast the parts of a deblurring step are: one JSON line each.
 *
 *   blur_rates DEVICE HEIGHT WIDTH CHANNELS [REPEATS]     e.g. blur_rates cuda 2048 1366 3
 *
 * Times are medians of single runs by the device's clock; `bytes` is the least that an op must read and write. On a
 * card, TESSERA_CUDA_ENGINE=cufft uses cuFFT's transforms in place of Tessera's own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "physics/blur.h"
#include "rates.h"

static tess_memory counter;

enum { MOST = 1000, BLURS = 8 };

static tess_device *device;
static int64_t h, w, c;
static int repeats;
static char name[96];

static tess_block block_of(size_t bytes, bool filled)
{
    tess_block block = {0};
    tess_error error;
    need(device->memory->alloc(device, &block, TESS_MEM_WORKSPACE, bytes + 256, &error), &error);
    float *host = filled ? malloc(bytes) : NULL;
    if (!host)
        return block;
    tess_rng_uniform((tess_rng_key){.seed = 1}, 0, (int64_t)(bytes / sizeof *host), host);
    device->memory->copy(device, block.data, host, bytes, NULL);
    need(device->streams->sync(device, NULL, &error), &error);
    free(host);
    return block;
}

static size_t bytes_of(tess_tensor t)
{
    size_t bytes = 0;
    return tess_tensor_bytes(&t, &bytes) ? bytes : 0;
}

/* Either an op with its buffers, or a step of the operator. */
typedef struct work {
    const char *what;
    const tess_prepared *prepared;
    tess_op_buffers buffers;
    tess_operator *op;
    tess_normal_step step;
    double bytes;
    size_t workspace;
} work;

static void measure(const work *k)
{
    tess_event *from = NULL, *to = NULL;
    tess_error error;
    double seconds[MOST];
    need(device->streams->event_create(device, &from, &error), &error);
    need(device->streams->event_create(device, &to, &error), &error);
    for (int i = -3; i < repeats; i++) { /* the first warm up */
        device->streams->record(device, from, NULL);
        if (k->op)
            k->op->table->step(k->op, &k->step, k->buffers.in[0], k->buffers.out[0], k->buffers.workspace,
                               NULL);
        else
            device->ops->run(device, k->prepared, &k->buffers, NULL);
        device->streams->record(device, to, NULL);
        need(device->streams->event_sync(device, to, &error), &error);
        if (i >= 0)
            seconds[i] = device->streams->elapsed(device, from, to);
    }
    qsort(seconds, (size_t)repeats, sizeof *seconds, by_value);
    const double median = seconds[repeats / 2];
    printf("{\"study\":\"blur\",\"engine\":\"tessera\",\"device\":\"%s\",\"height\":%lld,\"width\":%lld,"
           "\"channels\":"
           "%lld,\"what\":\"%s\",\"median_ms\":%.4f,\"least_ms\":%.4f,\"most_ms\":%.4f,\"bytes\":%.0f,"
           "\"gigabytes_"
           "per_second\":%.1f,\"workspace\":%zu}\n",
           name, (long long)h, (long long)w, (long long)c, k->what, 1e3 * median, 1e3 * seconds[0],
           1e3 * seconds[repeats - 1], k->bytes, 1e-9 * k->bytes / median, k->workspace);
    device->streams->event_destroy(device, from);
    device->streams->event_destroy(device, to);
}

static void measure_op(const char *what, tess_op op, tess_op_buffers buffers)
{
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    tess_error error;
    for (int k = 0; k < TESS_SPATIAL; k++)
        op.kernel[k] = op.stride[k] = 1;
    need(device->ops->query(device, &op, &needs, &error), &error);
    need(device->ops->prepare(device, &op, &prepared, &error), &error);
    tess_block workspace = block_of(needs.workspace, false);
    buffers.workspace = workspace.data;
    double bytes = (double)bytes_of(op.in[0]) + (double)bytes_of(op.out[0]);
    for (int r = 0; r < tess_op_residuals(&op); r++)
        bytes += (double)bytes_of(op.in[1 + r]);
    measure(&(work){.what = what,
                    .prepared = prepared,
                    .buffers = buffers,
                    .bytes = bytes,
                    .workspace = needs.workspace});
    device->ops->release(device, prepared);
    device->memory->free(device, &workspace);
}

static void measure_steps(tess_block *image, tess_block *other)
{
    double angles[BLURS];
    const double size = (double)(h > w ? h : w);
    for (int i = 0; i < BLURS; i++)
        angles[i] = 180.0 * i / (BLURS - 1);
    const tess_blur_settings settings = {h, w, c, BLURS, angles, 0.01 * size, 0.005 * size};
    tess_operator *op = NULL;
    tess_error error;
    need(tess_blur_create(device, &settings, &op, &error), &error);
    tess_block seen = block_of(bytes_of(op->measurement), true), scratch = block_of(op->scratch_bytes, false);
    op->table->absorb(op, seen.data, scratch.data, NULL);
    need(device->streams->sync(device, NULL, &error), &error);
    device->memory->free(device, &seen);
    /* An image in and out, the half spectrum written, read and written, S, B, and the spectrum read again. */
    const double bins = (double)h * (double)(w / 2 + 1), pixels = (double)h * (double)w * (double)c;
    work k = {.op = op,
              .buffers = {.in = {image->data}, .out = {other->data}, .workspace = scratch.data},
              .bytes = 8 * pixels + 4 * bins + 8 * 5 * bins * (double)c,
              .workspace = op->step_scratch_bytes};
    k.what = "gradient step";
    k.step = (tess_normal_step){1, -0.1, 0.1, 1, 0};
    measure(&k);
    k.what = "minimum near x";
    k.step = (tess_normal_step){0.2, 0, 1, 0.2, 1};
    measure(&k);
    device->memory->free(device, &scratch);
    tess_operator_destroy(op);
}

int main(int argc, char **argv)
{
    h = argc > 2 ? atoll(argv[2]) : 0;
    w = argc > 3 ? atoll(argv[3]) : 0;
    c = argc > 4 ? atoll(argv[4]) : 0;
    repeats = argc > 5 ? atoi(argv[5]) : 50;
    if (h < 16 || w < 16 || c < 1 || repeats < 1 || repeats > MOST) {
        fprintf(stderr, "usage: %s DEVICE HEIGHT WIDTH CHANNELS [REPEATS up to %d]\n", argv[0], MOST);
        return 2;
    }
    tess_error error;
    tess_device_facts facts;
    need(tess_registry_open(argv[1], &(tess_device_options){.memory = &counter}, &device, &error), &error);
    device->facts(device, &facts);
    snprintf(name, sizeof name, "%s", facts.name);
    const tess_tensor image = tess_tensor_2d(TESS_F32, 1, h, w, c),
                      half = tess_tensor_2d(TESS_F32, 1, h, w / 2 + 1, 2 * c),
                      one = tess_tensor_2d(TESS_F64, 1, 1, 1, 1);
    tess_block x = block_of(bytes_of(image), true), y = block_of(bytes_of(image), true),
               spectrum = block_of(bytes_of(half), true);
    measure_steps(&x, &y);
    measure_op("fft", (tess_op){.kind = TESS_OP_FFT, .inputs = 1, .outputs = 1, .in = {image}, .out = {half}},
               (tess_op_buffers){.in = {x.data}, .out = {spectrum.data}});
    measure_op("inverse fft",
               (tess_op){.kind = TESS_OP_FFT,
                         .inputs = 1,
                         .outputs = 1,
                         .in = {half},
                         .out = {image},
                         .fft = {.inverse = true}},
               (tess_op_buffers){.in = {spectrum.data}, .out = {y.data}});
    tess_op combine = {
        .kind = TESS_OP_COMBINE, .outputs = 1, .in = {image, image}, .out = {image}, .inputs = 2};
    combine.combine = (tess_op_combine){1, 2, 0, -INFINITY, INFINITY};
    measure_op("combine", combine, (tess_op_buffers){.in = {x.data, y.data}, .out = {y.data}});
    measure_op("dot",
               (tess_op){.kind = TESS_OP_DOT, .outputs = 1, .in = {image, image}, .out = {one}, .inputs = 2},
               (tess_op_buffers){.in = {x.data, y.data}, .out = {spectrum.data}});
    device->memory->free(device, &x);
    device->memory->free(device, &y);
    device->memory->free(device, &spectrum);
    tess_registry_close(device);
    return 0;
}
