/* The steps of FDK (Feldkamp, Davis, Kress 1984) other than its filter. RAY_COSINE multiplies the value of
 * each ray by its cosine, and writes rows long enough to be filtered. RAY_SPREAD samples each filtered view,
 * bilinear, at the shadow of each voxel, and divides by the square of the voxel's depth. Terms are added view
 * by view, with any number of threads. */
#include <string.h>

#include "cpu/core/cpu.h"
#include "op/scan3.h"

typedef struct fdk_job {
    const tess_op *op;
    tess_scan3 scan;
    const double *table;
    const float *in;
    float *out;
} fdk_job;

static void cosine_row(void *arg, int64_t item, int thread)
{
    (void)thread;
    const fdk_job *job = arg;
    const tess_tensor *from = &job->op->in[0], *to = &job->op->out[0];
    const int64_t at = item / from->h, row = item % from->h;
    const tess_view3 view = tess_view3_of(&job->scan, job->table + at * TESS_VIEW3_NUMBERS);
    const float *in = job->in + at * from->stride_d + row * from->stride_h;
    float *out = job->out + at * to->stride_d + row * to->stride_h;
    for (int64_t column = 0; column < from->w; column++)
        out[column * to->stride_w] =
            in[column * from->stride_w] * (float)tess_view3_cosine(&view, row, column);
    for (int64_t column = from->w; column < to->w; column++)
        out[column * to->stride_w] = 0;
}

/* Bilinear, zero outside the detector. */
static float sample_edge(const tess_tensor *views, const float *view, int column, int row, float right,
                         float below)
{
    float sum = 0;
    for (int corner = 0; corner < 4; corner++) {
        const int c = column + (corner & 1), r = row + (corner >> 1);
        if (c >= 0 && c < views->w && r >= 0 && r < views->h)
            sum += (corner & 1 ? right : 1 - right) * (corner >> 1 ? below : 1 - below) *
                   view[r * views->stride_h + c * views->stride_w];
    }
    return sum;
}

static float sample(const tess_tensor *views, const float *view, float column, float row)
{
    if (!(column > -1 && row > -1 && column < (float)views->w && row < (float)views->h))
        return 0;
    const int c = (int)(column + 1) - 1, r = (int)(row + 1) - 1;
    const float right = column - (float)c, below = row - (float)r;
    if (c < 0 || r < 0 || c + 1 >= views->w || r + 1 >= views->h)
        return sample_edge(views, view, c, r, right, below);
    const float *at = view + r * views->stride_h + c * views->stride_w, *next = at + views->stride_h;
    return (1 - below) * ((1 - right) * at[0] + right * at[views->stride_w]) +
           below * ((1 - right) * next[0] + right * next[views->stride_w]);
}

static void spread_row(void *arg, int64_t item, int thread)
{
    (void)thread;
    const fdk_job *job = arg;
    const tess_tensor *views = &job->op->in[0], *volume = &job->op->out[0];
    const int64_t z = item / volume->h, y = item % volume->h;
    float *out = job->out + z * volume->stride_d + y * volume->stride_h;
    if (!job->op->rays.accumulate)
        memset(out, 0, (size_t)volume->w * sizeof *out);
    double centre[3];
    for (int i = 0; i < 3; i++)
        centre[i] = 0.5 * (double)(job->scan.size[i] - 1);
    for (int64_t at = 0; at < views->d; at++) {
        const tess_view3 view = tess_view3_of(&job->scan, job->table + at * TESS_VIEW3_NUMBERS);
        const tess_shadow3 shadow = tess_view3_shadow(&view);
        double origin[3];
        float base[3], step[3];
        tess_shadow3_at(&shadow, centre, origin);
        for (int k = 0; k < 3; k++) {
            base[k] = (float)(shadow.of[k][1] * (double)y + shadow.of[k][2] * (double)(z + job->scan.first) +
                              shadow.of[k][3]);
            step[k] = (float)shadow.of[k][0];
        }
        const float weight = (float)(job->op->rays.scale * origin[2] * origin[2]);
        const float *filtered = job->in + at * views->stride_d;
        for (int64_t x = 0; x < volume->w; x++) {
            const float inverse = 1 / (base[2] + (float)x * step[2]);
            const float column = (base[0] + (float)x * step[0]) * inverse;
            const float row = (base[1] + (float)x * step[1]) * inverse;
            out[x] += weight * inverse * inverse * sample(views, filtered, column, row);
        }
    }
}

static void fdk_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    *needs =
        (tess_op_needs){.weights = (size_t)op->in[0].d * TESS_VIEW3_NUMBERS * sizeof(double), .block = 1};
}

static void fdk_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                    tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    const bool cosine = op->kind == TESS_OP_RAY_COSINE;
    fdk_job job = {op, tess_scan3_of(&op->rays, &op->out[0], &op->in[0]), buffers->weights, buffers->in[0],
                   buffers->out[0]};
    tess_pool_run(cpu->pool, cosine ? op->in[0].d * op->in[0].h : op->out[0].d * op->out[0].h,
                  cosine ? cosine_row : spread_row, &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *error)
{
    (void)device;
    if (op->kind != TESS_OP_RAY_COSINE && op->kind != TESS_OP_RAY_SPREAD)
        return tess_kernel_refuse(error, NULL);
    if (op->rays.geometry == TESS_PARALLEL_2D)
        return tess_kernel_refuse(error, "the filtered backprojection of this kind takes 3-D rays");
    return tess_cpu_check_rays(op, error);
}

const tess_kernel tess_cpu_fdk = {.name = "fdk", .refuses = refuses, .needs = fdk_needs, .run = fdk_run};
