/* Any convolution as an implicit matrix product: rows are output pixels, columns are output channels, and the
 * sum runs over taps and, within a tap, over input channels, in steps of 16. Products and sums are fp32; the
 * order of each output's sum does not depend on the tile. A transposed convolution (kernel = stride) is one
 * such product for each tap, with the tap in gridDim.z. This kernel takes all types and channels; fp32 layers
 * whose channels are a multiple of the step use conv_float.cu.
 *
 * A block of 128 threads computes 128 pixels x 64 channels. Thread (tx, ty) of 8 x 16 holds 8 x 8 of them:
 * pixels 4 ty.. and 64 + 4 ty.., channels 4 tx.. and 32 + 4 tx... The next step is fetched into registers
 * while the current one is computed from shared memory. */
#include "cuda/conv/conv.cuh"

namespace
{

enum { ROWS = 128, COLUMNS = 64, DEPTH = 16, THREADS = 128, PAD = 4 };

/* Writes the values that this thread has fetched to shared memory. */
__device__ __forceinline__ void put(float (&rows)[DEPTH][ROWS + PAD], float (&columns)[DEPTH][COLUMNS + PAD],
                                    const float (&next_rows)[4][4], const float (&next_columns)[2][4])
{
    const int thread = threadIdx.x, quad = thread % 4, lane = thread / 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            rows[4 * quad + i][lane + 32 * j] = next_rows[j][i];
#pragma unroll
        for (int j = 0; j < 2; j++)
            columns[4 * quad + i][lane + 32 * j] = next_columns[j][i];
    }
}

/* Adds one step, from shared memory, to the sums of thread (tx, ty). */
__device__ __forceinline__ void multiply(const float (&rows)[DEPTH][ROWS + PAD],
                                         const float (&columns)[DEPTH][COLUMNS + PAD], int tx, int ty,
                                         float (&sums)[8][8])
{
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        float a[8], b[8];
        tess_load<4>(&rows[k][4 * ty], a);
        tess_load<4>(&rows[k][64 + 4 * ty], a + 4);
        tess_load<4>(&columns[k][4 * tx], b);
        tess_load<4>(&columns[k][32 + 4 * tx], b + 4);
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 8; j++)
                sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
    }
}

/* Finishes the sums of thread (tx, ty) and writes them to the output. */
template <typename Out>
__device__ __forceinline__ void finish(const tess_conv_job &job, int64_t first_row, int64_t first_column,
                                       int tx, int ty, float (&sums)[8][8])
{
    const int tap_z = blockIdx.z;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int64_t row = first_row + (i / 4) * 64 + 4 * ty + i % 4;
        if (row >= job.pixels)
            continue;
        const int64_t x = row % job.w * job.spread_x + tap_z % job.spread_x,
                      y = row / job.w % job.h * job.spread_y + tap_z / job.spread_x,
                      n = row / (job.w * job.h);
        tess_conv_finish<Out>(job, n, y, x, first_column + 4 * tx, sums[i]);
        tess_conv_finish<Out>(job, n, y, x, first_column + 32 + 4 * tx, sums[i] + 4);
    }
}

template <typename In, typename Weight, typename Out>
__global__ void __launch_bounds__(THREADS) conv_kernel(tess_conv_job job)
{
    __shared__ __align__(16) float rows[2][DEPTH][ROWS + PAD];
    __shared__ __align__(16) float columns[2][DEPTH][COLUMNS + PAD];
    const int thread = threadIdx.x, quad = thread % 4, lane = thread / 4;
    const int64_t first_row = (int64_t)blockIdx.x * ROWS, first_column = (int64_t)blockIdx.y * COLUMNS;
    const int tap_z = blockIdx.z;

    /* This thread fetches channels 4 quad.. of pixels lane + 32 j, and of columns lane + 32 j. */
    int64_t from[4];
    int top[4], left[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int64_t row = first_row + lane + 32 * j;
        const int64_t x = row % job.w, y = row / job.w % job.h, n = row / (job.w * job.h);
        top[j] = row < job.pixels ? (int)(y * job.stride_y) - job.top : -(1 << 30);
        left[j] = (int)(x * job.stride_x) - job.left;
        from[j] = n * job.in_n + top[j] * job.in_y + left[j] * job.in_x;
    }
    const Weight *weights = (const Weight *)job.weights + (int64_t)tap_z * job.cout * job.cin;
    const int64_t taps = (int64_t)job.kh * job.kw;

    float next_rows[4][4], next_columns[2][4], sums[8][8] = {};
    int ky = 0, kx = 0;
    int64_t channel = 0;
    const int64_t steps = taps * ((job.cin + DEPTH - 1) / DEPTH);
    auto fetch = [&]() {
        const int64_t c = channel + 4 * quad;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int y = top[j] + ky, x = left[j] + kx;
            if (y >= 0 && y < job.in_h && x >= 0 && x < job.in_w)
                tess_four((const In *)job.in + from[j] + ky * job.in_y + kx * job.in_x, c, job.cin,
                          job.wide_in, next_rows[j]);
            else
                next_rows[j][0] = next_rows[j][1] = next_rows[j][2] = next_rows[j][3] = 0;
        }
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const int64_t o = first_column + lane + 32 * j;
            if (o < job.cout)
                tess_four(weights + (o * taps + ky * job.kw + kx) * job.cin, c, job.cin, job.wide_weights,
                          next_columns[j]);
            else
                next_columns[j][0] = next_columns[j][1] = next_columns[j][2] = next_columns[j][3] = 0;
        }
        channel += DEPTH;
        if (channel >= job.cin) {
            channel = 0;
            if (++kx == job.kw) {
                kx = 0;
                ky++;
            }
        }
    };
    const int tx = thread % 8, ty = thread / 8;
    fetch();
    put(rows[0], columns[0], next_rows, next_columns);
    __syncthreads();
    for (int64_t step = 0; step < steps; step++) {
        const int side = (int)(step & 1);
        if (step + 1 < steps)
            fetch();
        multiply(rows[side], columns[side], tx, ty, sums);
        if (step + 1 < steps)
            put(rows[side ^ 1], columns[side ^ 1], next_rows, next_columns);
        __syncthreads();
    }

    finish<Out>(job, first_row, first_column, tx, ty, sums);
}

bool wide(const tess_tensor *t, const void *data)
{
    const int64_t group = 4 * (int64_t)tess_dtype_size(t->dtype);
    return t->c % 4 == 0 && t->stride_n % 4 == 0 && t->stride_h % 4 == 0 && t->stride_w % 4 == 0 &&
           (uintptr_t)data % (uintptr_t)group == 0;
}

tess_conv_job job_of(const tess_op *op, const tess_op_buffers *b)
{
    const bool transposed = op->kind == TESS_OP_CONV_TRANSPOSE;
    const tess_tensor *grid = transposed ? &op->in[0] : &op->out[0];
    tess_conv_job job = {};
    job.pixels = grid->n * grid->h * grid->w;
    job.h = grid->h;
    job.w = grid->w;
    job.in_h = op->in[0].h;
    job.in_w = op->in[0].w;
    job.cin = op->in[0].c;
    job.cout = op->out[0].c;
    job.in_n = op->in[0].stride_n;
    job.in_y = op->in[0].stride_h;
    job.in_x = op->in[0].stride_w;
    job.out_n = op->out[0].stride_n;
    job.out_y = op->out[0].stride_h;
    job.out_x = op->out[0].stride_w;
    job.kh = transposed ? 1 : op->kernel[TESS_HEIGHT];
    job.kw = transposed ? 1 : op->kernel[TESS_WIDTH];
    job.stride_y = transposed ? 1 : op->stride[TESS_HEIGHT];
    job.stride_x = transposed ? 1 : op->stride[TESS_WIDTH];
    job.top = transposed ? 0 : op->pad_before[TESS_HEIGHT];
    job.left = transposed ? 0 : op->pad_before[TESS_WIDTH];
    job.spread_y = transposed ? op->stride[TESS_HEIGHT] : 1;
    job.spread_x = transposed ? op->stride[TESS_WIDTH] : 1;
    job.relu = tess_op_relu(op);
    job.in = b->in[0];
    job.out = b->out[0];
    job.weights = b->weights;
    job.bias = tess_cuda_bias(op, b);
    job.wide_in = wide(&op->in[0], b->in[0]);
    job.wide_weights = op->in[0].c % 4 == 0;
    job.wide_out = wide(&op->out[0], b->out[0]);
    job.residuals = tess_op_residuals(op);
    for (int r = 0; r < tess_op_residuals(op); r++) {
        job.residual[r] = b->in[1 + r];
        job.res_n[r] = op->in[1 + r].stride_n;
        job.res_y[r] = op->in[1 + r].stride_h;
        job.res_x[r] = op->in[1 + r].stride_w;
        job.wide_out = job.wide_out && wide(&op->in[1 + r], b->in[1 + r]);
    }
    if (op->masked) {
        const tess_tensor *mask = tess_op_mask(op);
        job.mask = b->in[op->inputs - 1];
        job.mask_n = mask->stride_n;
        job.mask_y = mask->stride_h;
        job.mask_x = mask->stride_w;
        job.wide_out = job.wide_out && wide(mask, job.mask);
    }
    return job;
}

template <typename In, typename Weight, typename Out>
void launch(const tess_conv_job &job, cudaStream_t stream)
{
    const dim3 blocks((unsigned)((job.pixels + ROWS - 1) / ROWS),
                      (unsigned)((job.cout + COLUMNS - 1) / COLUMNS),
                      (unsigned)(job.spread_y * job.spread_x));
    conv_kernel<In, Weight, Out><<<blocks, THREADS, 0, stream>>>(job);
}

template <typename T> void launch_ends(const tess_op *op, const tess_conv_job &job, cudaStream_t stream)
{
    if (op->in[0].dtype == TESS_F32)
        launch<float, T, T>(job, stream);
    else if (op->out[0].dtype == TESS_F32)
        launch<T, T, float>(job, stream);
    else
        launch<T, T, T>(job, stream);
}

} // namespace

extern "C" cudaError_t tess_cuda_conv(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    const tess_conv_job job = job_of(op, buffers);
    switch (tess_op_precision(op)) {
    case TESS_F16:
        launch_ends<__half>(op, job, stream);
        break;
    case TESS_BF16:
        launch_ends<__nv_bfloat16>(op, job, stream);
        break;
    default:
        if (tess_cuda_conv_float_fits(&job))
            return tess_cuda_conv_float(&job, stream);
        launch<float, float, float>(job, stream);
    }
    return cudaGetLastError();
}
