/* The ops of a diffusion sampler's step: SELECT and DIFFUSE (tess_op_diffuse). Both are too small to matter beside the network.
 *
 * DIFFUSE: a thread has the four pixels of a line whose random numbers come from one block of words (elements 4 b to 4 b +
 * 3 of the map), so that each block is drawn once; the first and the last block of a line may lie outside of it in part.
 * Grid: x over all blocks of all lines. fp64, each product and sum rounded on its own, as on the CPU. The first thread counts the
 * step; no other thread reads that number. */
#include <float.h>

#include "base/philox.h"
#include "cuda/core/tensors.cuh"

namespace
{

enum { THREADS = 256 };

struct diffuse_job {
    tess_tensor e, known, y, previous;
    int64_t lines, pieces, stride_item;
    uint64_t seed;
    const float *from, *knowns;
    const double *control;
    const int64_t *items;
    float *to, *before;
    int64_t *index;
};

__device__ __forceinline__ double term(double factor, const float *value)
{
    return factor != 0 ? __dmul_rn(factor, (double)*value) : 0.0;
}

__device__ __forceinline__ int64_t line_at(const tess_tensor &t, int64_t n, int64_t row)
{
    return n * t.stride_n + row * t.stride_h;
}

__device__ __forceinline__ void diffuse_pixel(const double *k, const float *e, const float *known, float *y,
                                              float *previous, float z)
{
    const double clean = __dadd_rn(term(k[TESS_DIFFUSE_Y], y), term(k[TESS_DIFFUSE_E], e));
    double limited = clean < k[TESS_DIFFUSE_LOW] ? k[TESS_DIFFUSE_LOW] : clean;
    limited = limited > k[TESS_DIFFUSE_HIGH] ? k[TESS_DIFFUSE_HIGH] : limited;
    const float x0 = fabs(clean) <= DBL_MAX ? __double2float_rn(limited) : __int_as_float(0x7fc00000);
    const float next = __double2float_rn(
        __dadd_rn(__dadd_rn(__dadd_rn(term(k[TESS_DIFFUSE_CLEAN], &x0), term(k[TESS_DIFFUSE_KEEP], y)),
                            term(k[TESS_DIFFUSE_PREVIOUS], previous)),
                  term(k[TESS_DIFFUSE_NOISE], &z)));
    const double m = known[1];
    *previous = x0;
    if (k[TESS_DIFFUSE_OPEN] != 0 || m >= 1)
        *y = next;
    else if (m <= 0)
        *y = known[0];
    else
        *y = __double2float_rn(
            __dadd_rn(__dmul_rn((double)known[0], __dsub_rn(1.0, m)), __dmul_rn(m, (double)next)));
}

__global__ void __launch_bounds__(THREADS) diffuse_kernel(const __grid_constant__ diffuse_job job)
{
    const int64_t id = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (id == 0)
        ++*job.index;
    if (id >= job.lines * job.pieces)
        return;
    const int64_t line = id / job.pieces, n = line / job.y.h, row = line - n * job.y.h;
    const int64_t *item = job.items + n * job.stride_item;
    const int64_t first = (item[1] + row) * item[3] + item[2]; /* the element of this line's first pixel */
    const int64_t block = first / 4 + (id - line * job.pieces);
    const double *k = job.control;
    float normal[4] = {0, 0, 0, 0};
    if (k[TESS_DIFFUSE_NOISE] != 0) {
        uint32_t words[4];
        tess_philox_block(job.seed, (uint32_t)item[0], (uint32_t)(int64_t)k[TESS_DIFFUSE_STEP], block, words);
        tess_philox_normal(words, normal);
    }
    const float *e = job.from + line_at(job.e, n, row), *known = job.knowns + line_at(job.known, n, row);
    float *y = job.to + line_at(job.y, n, row), *previous = job.before + line_at(job.previous, n, row);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int64_t x = 4 * block + i - first;
        if (x >= 0 && x < job.y.w)
            diffuse_pixel(k, e + x * job.e.stride_w, known + x * job.known.stride_w, y + x * job.y.stride_w,
                          previous + x * job.previous.stride_w, item[4] ? -normal[i] : normal[i]);
    }
}

/* Grid: x over the row's values, y over images. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    select_kernel(const T *table, int64_t rows, int64_t c, const int64_t *index, T *out, int64_t stride_n)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= c)
        return;
    const int64_t number = *index, row = number < 0 ? 0 : number < rows ? number : rows - 1;
    out[blockIdx.y * stride_n + i] = table[row * c + i];
}

cudaError_t run_select(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    const tess_tensor *table = &op->in[0], *out = &op->out[0];
    const dim3 grid((unsigned)((table->c + THREADS - 1) / THREADS), (unsigned)out->n);
    const int64_t *index = (const int64_t *)b->in[1];
    if (table->dtype == TESS_F64)
        select_kernel<<<grid, THREADS, 0, stream>>>((const double *)b->in[0], table->n, table->c, index,
                                                    (double *)b->out[0], out->stride_n);
    else
        select_kernel<<<grid, THREADS, 0, stream>>>((const float *)b->in[0], table->n, table->c, index,
                                                    (float *)b->out[0], out->stride_n);
    return cudaGetLastError();
}

/* Blocks of four elements that a line of w pixels can touch, wherever it begins. */
int64_t pieces_of(int64_t w)
{
    return (w + 2) / 4 + 1;
}

int64_t grid_of(const tess_tensor *y)
{
    return (y->n * y->h * pieces_of(y->w) + THREADS - 1) / THREADS;
}

cudaError_t run_diffuse(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    diffuse_job job = {};
    job.e = op->in[0];
    job.known = op->in[1];
    job.y = op->out[0];
    job.previous = op->out[1];
    job.lines = op->out[0].n * op->out[0].h;
    job.pieces = pieces_of(op->out[0].w);
    job.stride_item = op->in[3].stride_n;
    job.seed = op->diffuse.seed;
    job.from = (const float *)b->in[0];
    job.knowns = (const float *)b->in[1];
    job.control = (const double *)b->in[2];
    job.items = (const int64_t *)b->in[3];
    job.to = (float *)b->out[0];
    job.before = (float *)b->out[1];
    job.index = (int64_t *)b->out[2];
    diffuse_kernel<<<(unsigned)grid_of(&op->out[0]), THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

bool is_table(const tess_tensor *t, tess_dtype dtype, int64_t n, int64_t c)
{
    return t->dtype == dtype && t->n == n && t->d == 1 && t->h == 1 && t->w == 1 && t->c == c;
}

const char *refuses(const tess_op *op, int)
{
    const tess_tensor *in = &op->in[0], *y = &op->out[0];
    if (op->kind == TESS_OP_SELECT) {
        if ((in->dtype != TESS_F32 && in->dtype != TESS_F64) || y->dtype != in->dtype || !tess_dense(in) ||
            !is_table(in, in->dtype, in->n, in->c) || !is_table(&op->in[1], TESS_I64, 1, 1) || y->n > 65535)
            return "it takes a dense table of fp32 or fp64 rows, one I64, and at most 65535 images";
        return NULL;
    }
    if (op->outputs != 3 || in->dtype != TESS_F32 || op->in[1].dtype != TESS_F32 || y->dtype != TESS_F32 ||
        op->out[1].dtype != TESS_F32 || !tess_same_sizes(in, y) || !tess_same_sizes(in, &op->out[1]))
        return "it takes fp32 images of one channel and one size";
    if (!is_table(&op->in[2], TESS_F64, 1, TESS_DIFFUSE_CONTROLS) ||
        !is_table(&op->in[3], TESS_I64, y->n, TESS_DIFFUSE_ITEMS) || !is_table(&op->out[2], TESS_I64, 1, 1))
        return "it takes a row of fp64 factors and five I64 an image";
    return tess_values(y) < 1 || grid_of(y) > INT32_MAX ? "it has no pixels, or too many" : NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    return op->kind == TESS_OP_SELECT ? run_select(op, b, stream) : run_diffuse(op, b, stream);
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_diffuse = {refuses, run, NULL, NULL};
