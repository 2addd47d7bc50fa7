/* NOISE: out = scale * in + deviation * normal, with the numbers of base/philox.h. A thread has the four values of one
 * block of random words, so that each block is drawn once. Grid: x over blocks of an image, y over images. */
#include "base/philox.h"
#include "cuda/core/tensors.cuh"

namespace
{

enum { THREADS = 256, SETTINGS = 4 };
const int64_t MOST_IMAGES = 65535;

struct noise_job {
    tess_tensor in, keys, out;
    bool flat_in, flat_out;
    bool level; /* the last channel of `out` is the deviation */
    int64_t values;
    uint64_t seed;
    const float *from;
    const double *settings;
    void *to;
};

__global__ void __launch_bounds__(THREADS) noise_kernel(const __grid_constant__ noise_job job)
{
    const int64_t block = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (4 * block >= job.values)
        return;
    for (int64_t n = blockIdx.y; n < job.in.n; n += gridDim.y) {
        const double *s = job.settings + n * job.keys.stride_n;
        const float scale = (float)s[0], deviation = (float)s[1];
        uint32_t words[4];
        float normal[4];
        tess_philox_block(job.seed, (uint32_t)(int64_t)s[2], (uint32_t)(int64_t)s[3], block, words);
        tess_philox_normal(words, normal);
        int64_t pixel = 4 * block / job.in.c;
        int c = (int)(4 * block - pixel * job.in.c);
        for (int i = 0; i < 4 && 4 * block + i < job.values; i++) {
            const int64_t to = tess_place(job.out, job.flat_out, n, pixel) + c;
            const float value = job.from[tess_place(job.in, job.flat_in, n, pixel) + c];
            tess_put_at(job.out.dtype, job.to, to,
                        __fadd_rn(__fmul_rn(scale, value), __fmul_rn(deviation, normal[i])));
            if (++c == job.in.c) {
                if (job.level)
                    tess_put_at(job.out.dtype, job.to, to + 1, deviation);
                c = 0;
                pixel++;
            }
        }
    }
}

const char *refuses(const tess_op *op, int)
{
    const tess_tensor *in = &op->in[0], *keys = &op->in[1], *out = &op->out[0];
    if (in->dtype != TESS_F32 || !tess_is_value(out->dtype))
        return "the image is fp32, the result fp32, fp16 or bf16";
    if (in->n != out->n || in->d != out->d || in->h != out->h || in->w != out->w ||
        (out->c != in->c && out->c != in->c + 1))
        return "the tensors differ in shape";
    if (keys->dtype != TESS_F64 || keys->n != in->n || keys->c != SETTINGS)
        return "it takes four F64 for each image";
    if (tess_values(in) < 1 || tess_pixels(in) * in->c > INT32_MAX)
        return "takes up to 2147483647 values an image";
    return NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    noise_job job = {};
    job.in = op->in[0];
    job.keys = op->in[1];
    job.out = op->out[0];
    job.flat_in = tess_flat(&op->in[0]);
    job.flat_out = tess_flat(&op->out[0]);
    job.level = op->out[0].c > op->in[0].c;
    job.values = tess_pixels(&op->in[0]) * op->in[0].c;
    job.seed = op->random.seed;
    job.from = (const float *)b->in[0];
    job.settings = (const double *)b->in[1];
    job.to = b->out[0];
    const int64_t blocks = (job.values + 4 * THREADS - 1) / (4 * THREADS);
    noise_kernel<<<dim3((unsigned)blocks, (unsigned)(job.in.n < MOST_IMAGES ? job.in.n : MOST_IMAGES)),
                   THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_noise = {refuses, run, NULL, NULL};
