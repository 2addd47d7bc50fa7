/* moments_team.cuh: the warps of a team, which take a range of pixels a stage at a time, and what they agree on.
 *
 * Some fill slots of shared memory with stages of fp64 values, by rows of pixels; the others, a role each, sum the products
 * of their pieces. They wait for one another at the barriers of a slot only. */
#ifndef TESS_CUDA_MOMENTS_TEAM_CUH
#define TESS_CUDA_MOMENTS_TEAM_CUH

#include "cuda/statistics/moments_pieces.cuh"

namespace
{

enum { TEAMS = 2 };      /* of a CTA */
enum { MOST_DEEP = 13 }; /* blocks for which 168 registers hold the operands of 8 pixels */

struct range {
    int64_t first, end;
};

/* Ranges begin at multiples of TESS_STEP pixels of their image, so that dense ones begin at multiples of 16 bytes. */
__device__ __forceinline__ range range_of(const tess_moments_plan &plan, unsigned number)
{
    const unsigned image = number / plan.per, own = number - image * plan.per;
    const int64_t steps = (plan.each + TESS_STEP - 1) / TESS_STEP, start = image * plan.each,
                  end = (own + (int64_t)1) * steps / plan.per * TESS_STEP;
    return {start + own * steps / plan.per * TESS_STEP, start + (end < plan.each ? end : plan.each)};
}

/* A slot is full, or empty. `first`: the number of the team's first barrier. */
struct signals {
    int first, slots, threads;

    __device__ __forceinline__ void wait(int slot, bool full) const
    {
        asm volatile("bar.sync %0, %1;" ::"r"(first + slot + (full ? 0 : slots)), "r"(threads) : "memory");
    }

    __device__ __forceinline__ void tell(int slot, bool full) const
    {
        asm volatile("bar.arrive %0, %1;" ::"r"(first + slot + (full ? 0 : slots)), "r"(threads) : "memory");
    }

    __device__ __forceinline__ int next(int slot) const
    {
        return slot + 1 < slots ? slot + 1 : 0;
    }
};

/* The pieces of one warp of a tile's triangle; their numbers are constants: the sums stay in registers. A step takes 4 DEPTH
 * pixels. */
template <int BLOCKS, int ROLE, int DEPTH> struct role {
    static constexpr shares ALL = shares_of(BLOCKS);
    static constexpr int FIRST = ALL.first[ROLE], COUNT = ALL.first[ROLE + 1] - FIRST;
    static_assert(complete(BLOCKS), "a product is missing, or summed twice");
    using numbers = cuda::std::make_integer_sequence<int, COUNT>;
    using blocks = cuda::std::make_integer_sequence<int, BLOCKS>;
    typedef double operands[BLOCKS][DEPTH];

    double sums[COUNT ? COUNT : 1][4] = {};

    static constexpr bool uses(int block)
    {
        bool used = false;
        for (int n = FIRST; n < FIRST + COUNT; n++)
            used = used || ALL.list[n].top == block || ALL.list[n].bottom == block ||
                   ALL.list[n].column == block;
        return used;
    }

    template <int STRIDE, int... BLOCK>
    __device__ __forceinline__ void load(operands &to, const double *stage,
                                         cuda::std::integer_sequence<int, BLOCK...>)
    {
        (
            [&] {
                if constexpr (uses(BLOCK))
                    load_block<DEPTH, STRIDE>(to[BLOCK], stage, BLOCK);
            }(),
            ...);
    }

    /* Pieces FROM <= n < TO. */
    template <int FROM, int TO, int... N>
    __device__ __forceinline__ void multiply_some(const operands &x, cuda::std::integer_sequence<int, N...>)
    {
        (
            [&] {
                constexpr piece p = ALL.list[FIRST + N];
                if constexpr (N >= FROM && N < TO)
                    multiply<DEPTH>(sums[N], x[p.top], x[p.bottom], x[p.column]);
            }(),
            ...);
    }

    /* All stages of a range. Operands are loaded a step ahead, while the instructions before them work; so a slot is empty
     * before its last pixels are multiplied, and the wait for the next one is in the middle of these. */
    template <int STRIDE, int PIXELS>
    __device__ __forceinline__ void run_ahead(const double *stages, const signals &s, const range &r)
    {
        constexpr int STEPS = PIXELS / (4 * DEPTH);
        static_assert(STEPS % 2 == 0, "the operands of a stage's first step are x[0]");
        operands x[2];
        int slot = 0;
        s.wait(slot, true);
        load<STRIDE>(x[0], stages, blocks());
#pragma unroll 1
        for (int64_t p = r.first; p < r.end; p += PIXELS) {
            const double *at = stages + slot * PIXELS * STRIDE;
#pragma unroll
            for (int k = 1; k < STEPS; k++) {
                load<STRIDE>(x[k % 2], at + 4 * DEPTH * k * STRIDE, blocks());
                multiply_some<0, COUNT>(x[1 - k % 2], numbers());
            }
            if (p + s.slots * PIXELS < r.end) /* a warp waits for it */
                s.tell(slot, false);
            slot = s.next(slot);
            multiply_some<0, COUNT / 2>(x[1], numbers());
            if (p + PIXELS < r.end) {
                s.wait(slot, true);
                load<STRIDE>(x[0], stages + slot * PIXELS * STRIDE, blocks());
            }
            multiply_some<COUNT / 2, COUNT>(x[1], numbers());
        }
    }

    /* The same with fewer registers. */
    template <int STRIDE, int PIXELS>
    __device__ __forceinline__ void run(const double *stages, const signals &s, const range &r)
    {
        int slot = 0;
        for (int64_t p = r.first; p < r.end; p += PIXELS) {
            s.wait(slot, true);
            const double *at = stages + slot * PIXELS * STRIDE;
#pragma unroll 1
            for (int k = 0; k < PIXELS; k += 4 * DEPTH) {
                operands x;
                load<STRIDE>(x, at + k * STRIDE, blocks());
                multiply_some<0, COUNT>(x, numbers());
            }
            if (p + s.slots * PIXELS < r.end)
                s.tell(slot, false);
            slot = s.next(slot);
        }
    }

    /* `first` of `all` blocks: where the tile begins. */
    template <int... N>
    __device__ __forceinline__ void store(double *to, int all, int first,
                                          cuda::std::integer_sequence<int, N...>)
    {
        (
            [&] {
                constexpr piece p = ALL.list[FIRST + N];
                store_block(to, all, first + p.top, first + p.column, sums[N][0], sums[N][1]);
                if constexpr (p.bottom != p.top)
                    store_block(to, all, first + p.bottom, first + p.column, sums[N][2], sums[N][3]);
            }(),
            ...);
    }
};

/* What a role's warp does. Without operands that are loaded ahead, a longer step hides how long loads take, as far as
 * registers allow. */
template <int BLOCKS, int STRIDE, int PIXELS, bool AHEAD, int ROLE>
__device__ __forceinline__ void sum_role(const tess_moments_job &job, const double *stages, const signals &s,
                                         unsigned number)
{
    constexpr int DEPTH = AHEAD || BLOCKS > MOST_DEEP ? 1 : 2;
    using pieces = role<BLOCKS, ROLE, DEPTH>;
    pieces mine;
    if constexpr (AHEAD)
        mine.template run_ahead<STRIDE, PIXELS>(stages, s, range_of(job.plan, number));
    else
        mine.template run<STRIDE, PIXELS>(stages, s, range_of(job.plan, number));
    mine.store(job.partial + number * job.plan.values, job.plan.tiles * BLOCKS, (int)blockIdx.y * BLOCKS,
               typename pieces::numbers());
}

/* The second team's roles are exchanged in pairs, so that each quarter of a multiprocessor (warps w mod 4) has as many
 * pieces. */
template <int BLOCKS, int STRIDE, int PIXELS, bool AHEAD>
__device__ __forceinline__ void sum_products(const tess_moments_job &job, const double *stages,
                                             const signals &s, unsigned number, int warp, int team)
{
    switch (warp % ROLES ^ team) {
    case 0:
        sum_role<BLOCKS, STRIDE, PIXELS, AHEAD, 0>(job, stages, s, number);
        break;
    case 1:
        sum_role<BLOCKS, STRIDE, PIXELS, AHEAD, 1>(job, stages, s, number);
        break;
    case 2:
        sum_role<BLOCKS, STRIDE, PIXELS, AHEAD, 2>(job, stages, s, number);
        break;
    default:
        sum_role<BLOCKS, STRIDE, PIXELS, AHEAD, 3>(job, stages, s, number);
    }
}

} // namespace

#endif
