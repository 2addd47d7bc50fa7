/* Line integrals through a volume and their transpose, with Joseph's weights (geometry/ray3.h).
 *
 * Forward: an item is a detector row of a view; each of its rays is followed through the volume. Transpose: a
 * ray touches one cell in each slice of its dominant axis. A thread owns some slices of that axis, follows the
 * rays through them and is the only one that adds to them. This needs no atomics and no search, and costs as
 * much as the forward direction. The dominant axes are processed one after another. The terms of a voxel are
 * added in the order (axis, view, row, column), so the bits are the same for any number of threads and any
 * slab. */
#include <string.h>

#include "base/checked.h"
#include "cpu/core/cpu.h"
#include "op/scan3.h"

typedef struct rays_job {
    tess_scan3 scan;
    const double *table;
    float *volume; /* address that slice 0 of the whole volume would have; only the slab exists */
    float *views;
    int64_t step[3];                /* of the volume: x, y, z, in elements */
    int64_t view_d, view_h, view_w; /* strides of the views */
    int axis;                       /* the dominant axis in progress */
    int64_t block;                  /* slices per item */
    bool accumulate;
} rays_job;

/* Ranges of slices of a ray: where it is inside the volume or next to it, and where all four voxels exist. */
typedef struct span {
    int from, inner, outer, to;
} span;

/* The volume in the order of one ray's axes. */
typedef struct frame {
    int low[3], high[3]; /* slices, b, c: [low, high) */
    int64_t slice, b, c; /* strides */
    float *volume;       /* address that voxel (0,0,0) of the whole volume would have */
} frame;

static frame frame_of(const rays_job *job, int axis)
{
    const int b = axis == 0 ? 1 : 0, c = axis == 2 ? 1 : 2, order[3] = {axis, b, c};
    frame f = {.slice = job->step[axis], .b = job->step[b], .c = job->step[c], .volume = job->volume};
    for (int i = 0; i < 3; i++) {
        f.low[i] = order[i] == 2 ? (int)job->scan.first : 0;
        f.high[i] = (int)(order[i] == 2 ? job->scan.end : job->scan.size[order[i]]);
    }
    return f;
}

/* Narrows [*from, *to) to the slices where low <= position < high, in voxels. A division finds the ends up to
 * rounding; then the exact position decides. */
static void clip(const tess_ray3 *ray, int which, int low, int high, int *from, int *to)
{
    const int64_t slope = ray->slope[which], at = ray->at[which];
    const int64_t voxel = (int64_t)1 << 32, least = low * voxel, most = high * voxel;
    if (slope != 0) {
        const double inverse = 1 / (double)slope;
        const double first = (double)((slope > 0 ? least : most) - at) * inverse,
                     last = (double)((slope > 0 ? most : least) - at) * inverse;
        *from = first <= *from ? *from : first >= *to ? *to : (int)first;
        *to = last >= *to - 2 ? *to : last <= *from ? *from : (int)last + 2;
    }
    while (*from < *to && (at + *from * slope < least || at + *from * slope >= most))
        ++*from;
    while (*from < *to && (at + (*to - 1) * slope < least || at + (*to - 1) * slope >= most))
        --*to;
}

static span span_of(const tess_ray3 *ray, const frame *f, int from, int to)
{
    for (int i = 0; i < 2; i++)
        clip(ray, i, f->low[i + 1] - 1, f->high[i + 1], &from, &to);
    int inner = from, outer = to;
    for (int i = 0; i < 2; i++)
        clip(ray, i, f->low[i + 1], f->high[i + 1] - 1, &inner, &outer);
    return inner < outer ? (span){from, inner, outer, to} : (span){from, to, to, to};
}

/* Offset of one of a cell's four voxels in slice k; -1 if it is outside. */
static int64_t corner_at(const frame *f, const tess_cell3 *cell, int k, int corner)
{
    const int b = cell->b + (corner & 1), c = cell->c + (corner >> 1);
    if (b < f->low[1] || b >= f->high[1] || c < f->low[2] || c >= f->high[2])
        return -1;
    return k * f->slice + b * f->b + c * f->c;
}

static float sum_edge(const tess_ray3 *ray, const frame *f, int from, int to)
{
    float sum = 0;
    for (int k = from; k < to; k++) {
        const tess_cell3 cell = tess_ray3_cell(ray, k);
        for (int corner = 0; corner < 4; corner++) {
            const int64_t at = corner_at(f, &cell, k, corner);
            if (at >= 0)
                sum += cell.weight[corner] * f->volume[at];
        }
    }
    return sum;
}

static float sum_inside(const tess_ray3 *ray, const frame *f, int from, int to)
{
    float sum = 0;
    for (int k = from; k < to; k++) {
        const tess_cell3 cell = tess_ray3_cell(ray, k);
        const float *at = f->volume + k * f->slice + cell.b * f->b + cell.c * f->c;
        sum += (cell.weight[0] * at[0] + cell.weight[1] * at[f->b]) +
               (cell.weight[2] * at[f->c] + cell.weight[3] * at[f->b + f->c]);
    }
    return sum;
}

static void add_edge(const tess_ray3 *ray, const frame *f, int from, int to, float value)
{
    for (int k = from; k < to; k++) {
        const tess_cell3 cell = tess_ray3_cell(ray, k);
        for (int corner = 0; corner < 4; corner++) {
            const int64_t at = corner_at(f, &cell, k, corner);
            if (at >= 0)
                f->volume[at] += cell.weight[corner] * value;
        }
    }
}

static void add_inside(const tess_ray3 *ray, const frame *f, int from, int to, float value)
{
    for (int k = from; k < to; k++) {
        const tess_cell3 cell = tess_ray3_cell(ray, k);
        float *at = f->volume + k * f->slice + cell.b * f->b + cell.c * f->c;
        at[0] += cell.weight[0] * value;
        at[f->b] += cell.weight[1] * value;
        at[f->c] += cell.weight[2] * value;
        at[f->b + f->c] += cell.weight[3] * value;
    }
}

static void project_row(void *arg, int64_t item, int thread)
{
    (void)thread;
    const rays_job *job = arg;
    const int64_t at = item / job->scan.rows, row = item % job->scan.rows;
    const tess_view3 view = tess_view3_of(&job->scan, job->table + at * TESS_VIEW3_NUMBERS);
    const frame frames[3] = {frame_of(job, 0), frame_of(job, 1), frame_of(job, 2)};
    float *out = job->views + at * job->view_d + row * job->view_h;
    for (int64_t column = 0; column < job->scan.columns; column++, out += job->view_w) {
        const tess_ray3 ray = tess_view3_ray(&view, row, column);
        const frame *f = &frames[ray.axis];
        const span s = span_of(&ray, f, f->low[0], f->high[0]);
        const float sum = sum_edge(&ray, f, s.from, s.inner) + sum_inside(&ray, f, s.inner, s.outer) +
                          sum_edge(&ray, f, s.outer, s.to);
        *out = (job->accumulate ? *out : 0) + sum * ray.length;
    }
}

static void backproject_block(void *arg, int64_t item, int thread)
{
    (void)thread;
    const rays_job *job = arg;
    const frame f = frame_of(job, job->axis);
    const int from = f.low[0] + (int)(item * job->block);
    const int to = (int)tess_min_i64(from + job->block, f.high[0]);
    for (int64_t at = 0; at < job->scan.views; at++) {
        const tess_view3 view = tess_view3_of(&job->scan, job->table + at * TESS_VIEW3_NUMBERS);
        if (!(tess_view3_axes(&view, job->scan.rows, job->scan.columns) >> job->axis & 1))
            continue;
        for (int64_t row = 0; row < job->scan.rows; row++) {
            const float *in = job->views + at * job->view_d + row * job->view_h;
            for (int64_t column = 0; column < job->scan.columns; column++, in += job->view_w) {
                const tess_ray3 ray = tess_view3_ray(&view, row, column);
                if (ray.axis != job->axis)
                    continue;
                const span s = span_of(&ray, &f, from, to);
                const float value = *in * ray.length;
                add_edge(&ray, &f, s.from, s.inner, value);
                add_inside(&ray, &f, s.inner, s.outer, value);
                add_edge(&ray, &f, s.outer, s.to, value);
            }
        }
    }
}

static void clear_slice(void *arg, int64_t item, int thread)
{
    (void)thread;
    const rays_job *job = arg;
    for (int64_t y = 0; y < job->scan.size[1]; y++)
        memset(job->volume + (item + job->scan.first) * job->step[2] + y * job->step[1], 0,
               (size_t)job->scan.size[0] * sizeof *job->volume);
}

tess_status tess_cpu_check_rays(const tess_op *op, tess_error *error)
{
    const bool forward = op->kind == TESS_OP_PROJECT, cosine = op->kind == TESS_OP_RAY_COSINE;
    const tess_tensor *volume = forward ? &op->in[0] : &op->out[0];
    if (op->in[0].dtype != TESS_F32 || op->out[0].dtype != TESS_F32)
        return tess_fail(error, TESS_UNSUPPORTED, "rays are computed in fp32");
    if (op->in[0].n != 1 || op->out[0].n != 1 || op->in[0].c != 1 || op->out[0].c != 1)
        return tess_fail(error, TESS_UNSUPPORTED, "rays go through one volume of one channel");
    if (!(op->rays.spacing > 0))
        return tess_fail(error, TESS_UNSUPPORTED, "voxels must have a size above 0");
    if (cosine && (op->out[0].d != op->in[0].d || op->out[0].h != op->in[0].h || op->out[0].w < op->in[0].w))
        return tess_fail(error, TESS_UNSUPPORTED, "weighted views must have room for all that is weighted");
    const int64_t depth = op->rays.depth ? op->rays.depth : volume->d;
    if (!cosine && (op->rays.first < 0 || op->rays.first + volume->d > depth))
        return tess_fail(error, TESS_UNSUPPORTED, "slices %lld to %lld are not in a volume of %lld",
                         (long long)op->rays.first, (long long)(op->rays.first + volume->d),
                         (long long)depth);
    const int64_t most = 1 << 23; /* positions are fp32 */
    if (!cosine && (depth > most || volume->h > most || volume->w > most))
        return tess_fail(error, TESS_UNSUPPORTED, "a side of more than %lld voxels", (long long)most);
    return TESS_OK;
}

static void rays_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    const tess_tensor *views = op->kind == TESS_OP_PROJECT ? &op->out[0] : &op->in[0];
    *needs = (tess_op_needs){.weights = (size_t)views->d * TESS_VIEW3_NUMBERS * sizeof(double), .block = 1};
}

static void rays_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                     tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    const bool project = op->kind == TESS_OP_PROJECT;
    const tess_tensor *volume = project ? &op->in[0] : &op->out[0],
                      *views = project ? &op->out[0] : &op->in[0];
    rays_job job = {.scan = tess_scan3_of(&op->rays, volume, views),
                    .table = buffers->weights,
                    .step = {volume->stride_w, volume->stride_h, volume->stride_d},
                    .view_d = views->stride_d,
                    .view_h = views->stride_h,
                    .view_w = views->stride_w,
                    .accumulate = op->rays.accumulate};
    /* The casts drop a const that the direction justifies: only `out` is written. */
    float *from_whole = project ? (float *)(uintptr_t)buffers->in[0] : buffers->out[0];
    job.volume = from_whole - job.scan.first * volume->stride_d;
    job.views = project ? buffers->out[0] : (float *)(uintptr_t)buffers->in[0];
    if (project) {
        tess_pool_run(cpu->pool, job.scan.views * job.scan.rows, project_row, &job);
        return;
    }
    if (!job.accumulate)
        tess_pool_run(cpu->pool, volume->d, clear_slice, &job);
    int axes = 0;
    for (int64_t at = 0; at < job.scan.views; at++) {
        const tess_view3 view = tess_view3_of(&job.scan, job.table + at * TESS_VIEW3_NUMBERS);
        axes |= tess_view3_axes(&view, job.scan.rows, job.scan.columns);
    }
    for (job.axis = 0; job.axis < 3; job.axis++) {
        const int64_t slices = job.axis == 2 ? volume->d : job.scan.size[job.axis];
        /* Long enough to amortise setting up rays, short enough to balance the threads. */
        job.block = tess_max_i64(8, tess_min_i64(32, slices / (2 * tess_pool_threads(cpu->pool))));
        if (axes >> job.axis & 1)
            tess_pool_run(cpu->pool, tess_ceil_div(slices, job.block), backproject_block, &job);
    }
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *error)
{
    (void)device;
    if ((op->kind != TESS_OP_PROJECT && op->kind != TESS_OP_BACKPROJECT) ||
        op->rays.geometry == TESS_PARALLEL_2D)
        return tess_kernel_refuse(error, NULL);
    return tess_cpu_check_rays(op, error);
}

const tess_kernel tess_cpu_rays = {.name = "rays", .refuses = refuses, .needs = rays_needs, .run = rays_run};
