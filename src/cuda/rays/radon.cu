/* The 2-D Radon transform of geometry/ray2.h. A warp follows RAYS neighbouring detectors, ALONG samples of
 * each at a time. At any angle it reads a rotated patch of about 8 x 4 pixels, so 4 to 9 rows of the image,
 * most of which the next step finds in L1. If all samples of the warp have all their pixels inside the image,
 * no pixel is tested. A thread sums in runs; runs are added in fp64; the order is fixed.
 *
 * Cost: views size^2 samples (0.79 of them in a circle) of about 22 instructions and 4 loads. For 2048^2 and
 * 100 views: 4.2e8 samples, 2.9e8 warp instructions: 0.31 ms at the H200's 528 per clock and 1.75 GHz. The
 * loads take 0.23 ms at one cycle each, 1 to 2 ms for the 4 to 9 rows that a patch touches. Image and
 * sinogram, 17.6 MB, stay in L2. */
#include "cuda/rays/rays_job.h"
#include "geometry/ray2.h"

namespace
{

enum { RAYS = 8, ALONG = 32 / RAYS, WARPS = 8, RUN = 128 };

/* Samples [from, to). */
struct range {
    int from, to;
};

/* Narrows [*from, *to] to where low <= start + slope h <= high. */
__device__ void narrow(double start, double slope, double low, double high, double *from, double *to)
{
    if (fabs(slope) < 1e-9) {
        if (start < low || start > high)
            *to = *from - 2;
        return;
    }
    const double a = (low - start) / slope, b = (high - start) / slope;
    *from = fmax(*from, fmin(a, b));
    *to = fmin(*to, fmax(a, b));
}

/* The samples of detectors `first` and `last`, and so of all between them, that lie at least `margin` inside
 * the image; a negative margin includes samples outside. `a` is the detector position of the image centre. The
 * pixels of a sample are less than 1 away in x and y, and less than 1.415 in the plane. */
__device__ range clip(const tess_radon_job &job, const tess_ray2 &view, double a, int first, int last,
                      double margin)
{
    const double centre = 0.5 * (job.size - 1), middle = 0.5 * (job.along - 1), one = TESS_RAY2_ONE;
    double from = 0, to = job.along - 1;
    for (int i = 0; i < 2; i++) {
        const int s = i ? last : first;
        if (job.circle) {
            const double radius = centre - 1.415 * margin, away = s - a;
            const double half = radius > fabs(away) ? sqrt(radius * radius - away * away) : -1;
            from = fmax(from, middle - half);
            to = fmin(to, middle + half);
        } else {
            const double x = (double)tess_ray2_x(&view, s, 0) / one,
                         y = (double)tess_ray2_y(&view, s, 0) / one;
            narrow(x, view.sine / one, margin, 2 * centre - margin, &from, &to);
            narrow(y, view.cosine / one, margin, 2 * centre - margin, &from, &to);
        }
    }
    /* The ends may lie far outside: clamp them to int before rounding. */
    from = fmin(fmax(ceil(from), 0.0), (double)job.along);
    to = fmax(fmin(floor(to) + 1, (double)job.along), 0.0);
    return {(int)from, (int)to};
}

/* One sample, with a test of each pixel. */
__device__ float sample(const tess_radon_job &job, const tess_ray2 &view, int s, int h)
{
    const int64_t at_x = tess_ray2_x(&view, s, h), at_y = tess_ray2_y(&view, s, h);
    const int64_t x = at_x >> TESS_RAY2_BITS, y = at_y >> TESS_RAY2_BITS;
    float sum = 0;
    for (int64_t j = y; j <= y + 1; j++)
        for (int64_t i = x; i <= x + 1; i++)
            if (tess_ray2_inside(i, j, job.size, job.circle))
                sum += __ldg(job.from + j * job.image_row + i) *
                       (tess_ray2_weight((float)(at_x - i * TESS_RAY2_ONE) * TESS_RAY2_UNIT) *
                        tess_ray2_weight((float)(at_y - j * TESS_RAY2_ONE) * TESS_RAY2_UNIT));
    return sum;
}

/* Sums samples from, from + ALONG, ... below `to` of one detector, with a test of each pixel. */
__device__ float edge(const tess_radon_job &job, const tess_ray2 &view, int s, int from, int to)
{
    float sum = 0;
    for (int h = from; h < to; h += ALONG)
        sum += sample(job, view, s, h);
    return sum;
}

/* Returns 1 + fraction: the 23 fractional bits are its mantissa, so no conversion is needed. */
__device__ __forceinline__ float one_and(int fixed)
{
    return __int_as_float(0x3f800000 | (fixed & TESS_RAY2_MASK));
}

/* The same for samples with all pixels inside the image. Within a run, positions relative to its first pixel
 * fit 32 bits. */
__device__ double inside(const tess_radon_job &job, const tess_ray2 &view, int s, int from, int to)
{
    const int step_x = ALONG * view.sine, step_y = ALONG * view.cosine, row = (int)job.image_row;
    double total = 0;
    for (int start = from; start < to; start += RUN) {
        const int64_t at_x = tess_ray2_x(&view, s, start), at_y = tess_ray2_y(&view, s, start);
        const float *first = job.from + (at_y >> TESS_RAY2_BITS) * job.image_row + (at_x >> TESS_RAY2_BITS);
        int x = (int)(at_x & TESS_RAY2_MASK), y = (int)(at_y & TESS_RAY2_MASK);
        const int count = (min((int)RUN, to - start) + ALONG - 1) / ALONG;
        float sum = 0;
#pragma unroll 4
        for (int i = 0; i < count; i++, x += step_x, y += step_y) {
            const float *at = first + ((y >> TESS_RAY2_BITS) * row + (x >> TESS_RAY2_BITS));
            const float one_x = one_and(x), one_y = one_and(y);
            const float far_x = one_x - 1, near_x = 2 - one_x, far_y = one_y - 1, near_y = 2 - one_y;
            const float above = near_x * __ldg(at) + far_x * __ldg(at + 1);
            const float below = near_x * __ldg(at + row) + far_x * __ldg(at + row + 1);
            sum += near_y * above + far_y * below;
        }
        total += sum;
    }
    return total;
}

/* A block is WARPS neighbouring groups of RAYS detectors of a view; a thread is (detector, h mod ALONG). */
__global__ void __launch_bounds__(32 * WARPS) project_kernel(tess_radon_job job)
{
    const int lane = threadIdx.x % 32, phase = lane / RAYS;
    const int group = (int)(blockIdx.x * WARPS + threadIdx.x / 32) * RAYS;
    if (group >= job.columns)
        return;
    const int last = min(group + (int)RAYS, job.columns) - 1, s = min(group + lane % RAYS, last);
    for (int k = (int)blockIdx.y; k < job.views; k += (int)gridDim.y) {
        const double *numbers = job.table + TESS_RAY2_NUMBERS * k, a = numbers[2];
        const tess_ray2 view = tess_ray2_of(numbers, job.size, job.along);
        const int middle = min(max((int)floor(a), group), last);
        /* In a circle, the detector nearest to the image centre has the longest ray; in a square, the ranges
         * of two detectors of the group differ by less than RAYS. */
        const range most = clip(job, view, a, middle, middle, job.circle ? -1.01 : -1.01 - RAYS);
        range inner = clip(job, view, a, group, last, 1.01);
        if (inner.to <= inner.from || job.size < RAYS) /* too small for an inner range */
            inner = {most.to, most.to};
        double total = edge(job, view, s, most.from + phase, inner.from);
        total += inside(job, view, s, inner.from + phase, inner.to);
        total += edge(job, view, s, inner.to + phase, most.to);
        for (int away = RAYS; away < 32; away *= 2)
            total += __shfl_xor_sync(~0u, total, away);
        if (phase == 0 && group + lane <= last)
            job.to[k * job.view_row + s] = (float)total;
    }
}

} // namespace

extern "C" cudaError_t tess_cuda_radon_project(const tess_op *op, const tess_op_buffers *buffers,
                                               cudaStream_t stream)
{
    const tess_radon_job job = tess_radon_job_of(op, buffers);
    const unsigned detectors = RAYS * WARPS, columns = ((unsigned)job.columns + detectors - 1) / detectors;
    const dim3 blocks(columns, (unsigned)(job.views < 65535 ? job.views : 65535));
    project_kernel<<<blocks, 32 * WARPS, 0, stream>>>(job);
    return cudaGetLastError();
}
