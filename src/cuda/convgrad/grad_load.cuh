/* grad_load.cuh: the loading part of the kernels for CONV_GRAD on every card. A block computes ROWS output channels x
 * COLUMNS columns, STEP pixels at a time. The next step is fetched into registers while the current one is computed
 * from shared memory; where its pixels are is computed one step earlier still, by one warp. */
#ifndef TESS_CUDA_CONVGRAD_GRAD_LOAD_CUH
#define TESS_CUDA_CONVGRAD_GRAD_LOAD_CUH

#include "cuda/convgrad/conv_grad.h"
#include "cuda/core/values.cuh"

enum { GRAD_ROWS = 64, GRAD_COLUMNS = 128, GRAD_THREADS = 128 };

/* S: the type in shared memory. Both types fetch the same number of 16-byte pieces per step. */
template <typename S> struct grad_step {
    static constexpr int piece = 16 / (int)sizeof(S), pixels = sizeof(S) == 2 ? 32 : 16;
    static constexpr int row_pieces = GRAD_ROWS / piece, column_pieces = GRAD_COLUMNS / piece;
    static constexpr int row_loads = pixels * row_pieces / GRAD_THREADS,
                         column_loads = pixels * column_pieces / GRAD_THREADS;
    /* Rows of 16 bytes more than a multiple of 128 put eight of them into different banks. */
    static constexpr int row_pitch = GRAD_ROWS + piece, column_pitch = GRAD_COLUMNS + piece;
};

/* The pixels of two steps. */
template <int PIXELS> struct grad_pixels {
    int64_t in[2][PIXELS], dy[2][PIXELS]; /* offsets; dy < 0: beyond the part */
    int y[2][PIXELS], x[2][PIXELS];       /* of the first tap in the input */
};

template <int PIXELS>
__device__ __forceinline__ void grad_locate(const tess_grad_job &job, int64_t first, int64_t end, int side,
                                            grad_pixels<PIXELS> &at)
{
    const int i = threadIdx.x;
    if (i >= PIXELS)
        return;
    const bool real = first + i < end;
    const unsigned pixel = real ? (unsigned)(first + i) : 0, line = pixel / job.w, n = line / job.h;
    const int x = (int)(pixel - line * job.w), y = (int)(line - n * job.h);
    const int in_y = y * job.stride_y - job.top, in_x = x * job.stride_x - job.left;
    at.in[side][i] = n * job.in_n + in_y * job.in_y + in_x * job.in_x;
    at.dy[side][i] = real ? n * job.dy_n + y * job.dy_y + x * job.dy_x : -1;
    at.y[side][i] = real ? in_y : -(1 << 30);
    at.x[side][i] = in_x;
}

/* A 16-byte piece on its way to shared memory; `low` is what rounding an fp32 value to S left over. */
template <typename S> struct grad_piece {
    tess_vector<S, grad_step<S>::piece> high, low;
};

template <typename S> __device__ __forceinline__ void grad_put_value(grad_piece<S> &p, int i, float value)
{
    p.high.v[i] = tess_rounded<S>(value);
    if (sizeof(S) == 2)
        p.low.v[i] = tess_rounded<S>(value - tess_value(p.high.v[i]));
}

template <typename S> __device__ __forceinline__ void grad_clear(grad_piece<S> &p)
{
#pragma unroll
    for (int i = 0; i < grad_step<S>::piece; i++)
        p.high.v[i] = p.low.v[i] = tess_rounded<S>(0);
}

template <typename S, typename From> struct grad_split {
    static constexpr bool value = sizeof(S) < sizeof(From);
};

/* The columns of one thread: a piece of neighbours, the same for all steps. */
template <typename S, typename In, bool WIDE> struct grad_columns {
    static constexpr int piece = grad_step<S>::piece, count = WIDE ? 1 : piece;
    int64_t offset[count]; /* from a pixel's first tap; < 0 is possible only if `window` is */
    int window[count];     /* row and column of the tap; < 0: no such column */

    __device__ __forceinline__ grad_columns(const tess_grad_job &job, int first)
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            const int column = first + i, tap = column / job.cin, c = column - tap * job.cin;
            const int ky = tap / job.kw, kx = tap - ky * job.kw;
            offset[i] = ky * job.in_y + kx * job.in_x + c;
            window[i] = column < job.columns ? ky << 16 | kx : -1;
        }
    }

    __device__ __forceinline__ bool inside(const tess_grad_job &job, int i, int y, int x) const
    {
        return window[i] >= 0 && (unsigned)(y + (window[i] >> 16)) < (unsigned)job.in_h &&
               (unsigned)(x + (window[i] & 0xffff)) < (unsigned)job.in_w;
    }

    template <int PIXELS>
    __device__ __forceinline__ void fetch(const tess_grad_job &job, const grad_pixels<PIXELS> &at, int side,
                                          int pixel, grad_piece<S> &p) const
    {
        const In *from = (const In *)job.in + at.in[side][pixel];
        const int y = at.y[side][pixel], x = at.x[side][pixel];
        grad_clear(p);
        if constexpr (WIDE) {
            if (inside(job, 0, y, x))
                p.high = *reinterpret_cast<const tess_vector<S, piece> *>(from + offset[0]);
        } else {
#pragma unroll
            for (int i = 0; i < piece; i++)
                if (inside(job, i, y, x))
                    grad_put_value(p, i, tess_value(from[offset[i]]));
        }
    }
};

template <typename S, typename Dy, int PIXELS>
__device__ __forceinline__ void grad_fetch_row(const tess_grad_job &job, const grad_pixels<PIXELS> &at,
                                               int side, int pixel, int channel, grad_piece<S> &p)
{
    const int64_t offset = at.dy[side][pixel];
    grad_clear(p);
    if (offset < 0)
        return;
    const Dy *from = (const Dy *)job.dy + offset + channel;
    if (sizeof(S) == sizeof(Dy) && job.wide_dy) {
        if (channel < job.cout)
            p.high = *reinterpret_cast<const tess_vector<S, grad_step<S>::piece> *>(from);
        return;
    }
#pragma unroll
    for (int i = 0; i < grad_step<S>::piece; i++)
        if (channel + i < job.cout)
            grad_put_value(p, i, tess_value(from[i]));
}

/* Writes one partial sum. */
__device__ __forceinline__ void grad_store(const tess_grad_job &job, int row, int column, float sum)
{
    if (row < job.cout && column < job.columns)
        job.partials[((int64_t)blockIdx.z * job.cout + row) * job.columns + column] = sum;
}

#endif
