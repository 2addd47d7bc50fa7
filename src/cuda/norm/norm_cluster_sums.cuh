/* norm_cluster_sums.cuh: the sums of the group norm in clusters: of a thread's pieces in shared memory, and of parts. */
#ifndef TESS_CUDA_NORM_CLUSTER_SUMS_CUH
#define TESS_CUDA_NORM_CLUSTER_SUMS_CUH

#include "cuda/norm/norm_cluster.cuh"

namespace
{

enum { THREADS = TESS_NORM_THREADS, QUARTERS = 4 };

/* Mean and sum of squared differences of `n` values, for each segment of a thread's piece. */
template <int K> struct moments {
    int n;
    float mean[K], square[K];

    /* get(k): the other's mean and squares of segment k. */
    template <class GET> __device__ __forceinline__ void merge(int other, GET get)
    {
        const int all = n + other;
        const float part = all ? __fdividef((float)other, (float)all) : 0, cross = (float)n * part;
#pragma unroll
        for (int k = 0; k < K; k++) {
            const float2 their = get(k);
            const float d = their.x - mean[k];
            square[k] += their.y + d * d * cross;
            mean[k] += d * part;
        }
        n = all;
    }
};

template <typename T, int SEGMENT> struct adder {
    static constexpr int N = 16 / (int)sizeof(T), K = N / SEGMENT;
    float first[K], sum[K], square[K];

    __device__ __forceinline__ void add(const uint4 *pieces, int from, int end)
    {
#pragma unroll 2
        for (int i = from; i < end; i++) {
            float values[N];
            unpack(pieces[i * THREADS], values, T());
#pragma unroll
            for (int c = 0; c < N; c++) {
                const float d = values[c] - first[c / SEGMENT];
                sum[c / SEGMENT] += d;
                square[c / SEGMENT] += d * d;
            }
        }
    }

    /* The first quarter has the first piece. */
    __device__ __forceinline__ void begin(const uint4 *pieces, int count)
    {
        float values[N] = {};
        if (count > 0)
            unpack(pieces[0], values, T());
#pragma unroll
        for (int k = 0; k < K; k++) {
            first[k] = values[k * SEGMENT];
            sum[k] = square[k] = 0;
        }
    }

    template <int QUARTER> __device__ __forceinline__ void add_quarter(const uint4 *pieces, int count)
    {
        wait_copies<QUARTERS - 1 - QUARTER>();
        if (QUARTER == 0)
            begin(pieces, count);
        add(pieces, (count * QUARTER + QUARTERS - 1) / QUARTERS,
            (count * (QUARTER + 1) + QUARTERS - 1) / QUARTERS);
    }

    __device__ __forceinline__ moments<K> add_all(const uint4 *pieces, int count)
    {
        add_quarter<0>(pieces, count);
        add_quarter<1>(pieces, count);
        add_quarter<2>(pieces, count);
        add_quarter<3>(pieces, count);
        moments<K> m;
        m.n = count * SEGMENT;
        const float one = count ? __fdividef(1.0f, (float)m.n) : 0;
#pragma unroll
        for (int k = 0; k < K; k++) {
            m.mean[k] = first[k] + sum[k] * one;
            m.square[k] = fmaxf(square[k] - sum[k] * sum[k] * one, 0);
        }
        return m;
    }
};

/* Sum and sum of squares of parts, from their means and squared differences. */
struct sums {
    double value, square;
    __device__ __forceinline__ void add(double n, float2 part)
    {
        const double mean = part.x, all = n * mean;
        value += all;
        square += (double)part.y + all * mean;
    }
};

} // namespace

#endif
