/* hopper_grad.cuh: the gradient of a convolution's kernel by wgmma: D[64 outputs x columns] += dy[pixels x outputs]^T
 * x[pixels x inputs], where the pixels are the K of the product. Pixels lie in shared memory as bulk copies bring them,
 * one row of 64 channels each, so both operands are MN-major; a tile of pixels is 8 wide, and 16 K are two of its rows.
 *
 * 3x3: the tile of x is loaded once, with its border, and all nine taps read it at shifted addresses. One instruction
 * does the three taps of a kernel row: its 192 columns are three groups of 64 inputs, each one pixel after the other.
 * Three warpgroups (teams) do one kernel row each and share the tile of dy.
 *
 * 2x2 with stride 2, and 1x1: the 256 columns of an instruction are four boxes: the four phases of x, or four groups of
 * 64 inputs. Two teams do 64 outputs each.
 *
 * A block sums its part of the pixels in registers and writes it to the workspace, or, if all pixels are one part, to the
 * gradient. One warp of the last warpgroup starts the copies; others sum dy for the gradient of the bias.
 *
 * Whatever the layer, a launch with a block on each multiprocessor ends with writing and adding 20 MB of partial sums, and
 * starts with an empty pipeline: as long as two thirds of the products of a small layer. Two layers in one launch share
 * that: each gets half of the blocks, for twice as long. */
#ifndef TESS_CUDA_HOPPER_GRAD_CUH
#define TESS_CUDA_HOPPER_GRAD_CUH

#include "cuda/hopper/hopper_load.cuh"

enum { GRAD_BOXES = 4, GRAD_WIDTH = 8, GRAD_LAYERS = 2, GRAD_TAPS = 9 };

typedef struct grad_geometry {
    CUtensorMap x[GRAD_BOXES], dy[GRAD_LAYERS]; /* x: of each layer, or of each phase of one */
    float *partials;                            /* [layer][part][rows][taps][columns] */
    float *bias;                                /* of one layer: [part][rows]; NULL: none */
    float *out[GRAD_LAYERS];                    /* [rows][columns][taps]; NULL: there are partial sums */
    bool accumulate;                            /* adds to what is in `out` */
    int tiles_x, tiles_y, tiles;                /* of pixels; tiles: of all images */
    int parts, row_groups, column_groups;
    int rows, columns, taps; /* outputs, inputs */
    int pad_y, pad_x;
    bool phases; /* the boxes are phases of x, not groups of inputs */
} grad_geometry;

template <bool NINE> struct grad_tile {
    /* False: the three taps of a kernel row read three boxes, each loaded one pixel further. */
    static constexpr bool one_box = NINE;
    static constexpr int teams = NINE ? 3 : 2, height = NINE ? 16 : 8, stages = one_box ? 5 : NINE ? 3 : 4;
    static constexpr int dy_boxes = NINE ? 1 : 2, x_boxes = one_box ? 1 : NINE ? 3 : GRAD_BOXES;
    static constexpr int pitch = one_box ? GRAD_WIDTH + 2 : GRAD_WIDTH, x_height = NINE ? height + 2 : height;
    static constexpr int columns = NINE ? 3 * CHANNELS : GRAD_BOXES * CHANNELS;
    static constexpr int dy_bytes = GRAD_WIDTH * height * ROW_BYTES, x_load = pitch * x_height * ROW_BYTES,
                         x_bytes = (x_load + 1023) / 1024 * 1024;
    static constexpr int leading = one_box ? ROW_BYTES : x_bytes; /* from 64 columns to the next */
    static constexpr int x_at = dy_boxes * dy_bytes, stage_bytes = x_at + x_boxes * x_bytes,
                         load_bytes = x_at + x_boxes * x_load;
    static constexpr int barriers_at = stages * stage_bytes, shared_bytes = barriers_at + 256 + 1024;
    /* Together as many as the block starts with: 512 threads of 128, or 384 of 168. */
    static constexpr int registers = NINE ? 152 : 224, other_registers = 56;
};

/* The work of a block. */
struct grad_work {
    int row_group, column_group, layer, first, last; /* tiles [first, last) */
    int part;                                        /* counts those of both layers */
};

static __device__ __forceinline__ grad_work grad_work_of(const grad_geometry &g)
{
    grad_work w;
    const int groups = g.row_groups * g.column_groups, group = blockIdx.x % groups;
    w.part = blockIdx.x / groups;
    w.layer = w.part / g.parts;
    w.row_group = group % g.row_groups;
    w.column_group = group / g.row_groups;
    const int part = w.part - w.layer * g.parts;
    w.first = (int)((int64_t)g.tiles * part / g.parts);
    w.last = (int)((int64_t)g.tiles * (part + 1) / g.parts);
    return w;
}

template <bool NINE> struct grad_ring {
    typedef grad_tile<NINE> tile;
    uint32_t base; /* of the stages; the barriers follow */

    __device__ __forceinline__ uint32_t full(int i) const
    {
        return base + tile::barriers_at + 8 * i;
    }
    __device__ __forceinline__ uint32_t empty(int i) const
    {
        return full(tile::stages + i);
    }
    __device__ __forceinline__ uint32_t dy(int i, int box) const
    {
        return base + i * tile::stage_bytes + box * tile::dy_bytes;
    }
    __device__ __forceinline__ uint32_t x(int i, int box) const
    {
        return base + i * tile::stage_bytes + tile::x_at + box * tile::x_bytes;
    }
};

template <bool NINE>
static __device__ __forceinline__ void grad_load(const grad_geometry &g, const grad_work &w,
                                                 const grad_ring<NINE> &ring)
{
    typedef grad_tile<NINE> tile;
    ring_place stage;
    for (int t = w.first; t < w.last; t++) {
        const int x = t % g.tiles_x * GRAD_WIDTH, y = t / g.tiles_x % g.tiles_y * tile::height,
                  n = t / g.tiles_x / g.tiles_y;
        const uint32_t full = ring.full(stage.at);
        barrier_wait(ring.empty(stage.at), stage.round ^ 1);
        barrier_expect(full, tile::load_bytes);
        for (int b = 0; b < tile::dy_boxes; b++)
            load_4d(ring.dy(stage.at, b), &g.dy[w.layer], full, (w.row_group * tile::dy_boxes + b) * CHANNELS,
                    x, y, n);
        for (int b = 0; b < tile::x_boxes; b++) {
            const int group = NINE || g.phases ? w.column_group : w.column_group * tile::x_boxes + b;
            load_4d(ring.x(stage.at, b),
                    &g.x[NINE       ? w.layer
                         : g.phases ? b
                                    : 0],
                    full, group * CHANNELS, x - g.pad_x + (NINE ? b : 0), y - g.pad_y, n);
        }
        stage.next<tile::stages>();
    }
}

/* One warp sums the outputs of box `box`, two channels a lane, while the teams multiply. */
template <typename T, bool NINE>
static __device__ __forceinline__ void grad_sum_bias(const grad_geometry &g, const grad_work &w,
                                                     const grad_ring<NINE> &ring, int box, int lane)
{
    typedef grad_tile<NINE> tile;
    enum { CHAINS = 4 };
    ring_place stage;
    float low = 0, high = 0;
    for (int t = w.first; t < w.last; t++) {
        float2 sums[CHAINS] = {};
        barrier_wait(ring.full(stage.at), stage.round);
        const uint32_t at = ring.dy(stage.at, box) + lane % 4 * 4;
#pragma unroll 2
        for (int row = 0; row < GRAD_WIDTH * tile::height; row += CHAINS)
#pragma unroll
            for (int k = 0; k < CHAINS; k++) {
                uint32_t both;
                const int r = row + k;
                asm volatile("ld.shared.b32 %0, [%1];"
                             : "=r"(both)
                             : "r"(at + r * ROW_BYTES + ((lane / 4) ^ (r & 7)) * 16)
                             : "memory");
                const float2 two = unpair(both, T());
                sums[k].x += two.x;
                sums[k].y += two.y;
            }
        __syncwarp();
        if (lane == 0)
            barrier_arrive(ring.empty(stage.at));
        low += (sums[0].x + sums[1].x) + (sums[2].x + sums[3].x);
        high += (sums[0].y + sums[1].y) + (sums[2].y + sums[3].y);
        stage.next<tile::stages>();
    }
    const int row = (w.row_group * tile::dy_boxes + box) * CHANNELS + 2 * lane;
    if (row < g.rows)
        *(float2 *)(g.bias + (int64_t)w.part * g.rows + row) = make_float2(low, high);
}

template <typename T, bool NINE>
static __device__ __forceinline__ void grad_multiply(const grad_work &w, const grad_ring<NINE> &ring,
                                                     int team, bool leader,
                                                     float (&d)[grad_tile<NINE>::columns / 2])
{
    typedef grad_tile<NINE> tile;
    ring_place stage;
    int before = -1; /* the stage whose products are perhaps not complete */
    for (int t = w.first; t < w.last; t++) {
        barrier_wait(ring.full(stage.at), stage.round);
        const uint64_t dy = matrix_mn(ring.dy(stage.at, NINE ? 0 : team), 0, GRAD_WIDTH * ROW_BYTES),
                       x = matrix_mn(ring.x(stage.at, 0) + (NINE ? team * tile::pitch * ROW_BYTES : 0),
                                     tile::leading, tile::pitch * ROW_BYTES);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < tile::height / 2; k++)
            wgmma<T, tile::columns, 1>::run(d, dy + (2 * k * GRAD_WIDTH * ROW_BYTES >> 4),
                                            x + (2 * k * tile::pitch * ROW_BYTES >> 4), (t - w.first) | k);
        wgmma_commit();
        wgmma_wait<1>();
        if (leader && before >= 0)
            barrier_arrive(ring.empty(before));
        before = stage.at;
        stage.next<tile::stages>();
    }
    wgmma_wait<0>();
}

template <bool NINE>
static __device__ __forceinline__ void grad_store(const grad_geometry &g, const grad_work &w, int team,
                                                  int warp, int lane,
                                                  const float (&d)[grad_tile<NINE>::columns / 2])
{
    typedef grad_tile<NINE> tile;
    const int row = (w.row_group * tile::dy_boxes + (NINE ? 0 : team)) * CHANNELS + 16 * warp + lane / 4;
    const int64_t next = (int64_t)8 * g.taps * g.columns; /* eight rows further */
#pragma unroll
    for (int box = 0; box < tile::columns / CHANNELS; box++) {
        const int tap = NINE ? 3 * team + box : g.phases ? box : 0;
        const int group = NINE || g.phases ? w.column_group : w.column_group * tile::x_boxes + box;
        const int first = group * CHANNELS + lane % 4 * 2;
        float *to = g.partials + (((int64_t)w.part * g.rows + row) * g.taps + tap) * g.columns + first;
#pragma unroll
        for (int j = 0; j < CHANNELS / 8; j++) {
            const int at = 4 * (box * (CHANNELS / 8) + j);
            if (first + 8 * j >= g.columns)
                continue;
            if (row < g.rows)
                *(float2 *)(to + 8 * j) = make_float2(d[at], d[at + 1]);
            if (row + 8 < g.rows)
                *(float2 *)(to + next + 8 * j) = make_float2(d[at + 2], d[at + 3]);
        }
    }
}

/* Where the teams of a 3x3 kernel bring their sums into the order of a weight file: in the memory of the stages, [row][tap]
 * [column]. Rows are 8 banks from each other for the accumulators of a half-warp, taps 4 for reading. */
struct grad_sums {
    static constexpr int tap = CHANNELS + 4, row = GRAD_TAPS * tap + 4, bytes = CHANNELS * row * 4;
};
static_assert(grad_sums::bytes <= grad_tile<true>::barriers_at, "the sums do not fit");
static_assert(grad_sums::row % 32 == 8 && grad_sums::tap % 32 == 4, "banks");

/* Writes the gradient of a layer whose pixels are one part. All products of the three teams must be complete: their
 * operands are overwritten. */
static __device__ __forceinline__ void grad_store_whole(const grad_geometry &g, const grad_work &w,
                                                        float *sums, int team, int warp, int lane,
                                                        const float (&d)[grad_tile<true>::columns / 2])
{
    enum { TEAM_SYNC = 1, TEAM_THREADS = grad_tile<true>::teams * WARPGROUP };
    float *mine = sums + (16 * warp + lane / 4) * grad_sums::row + 3 * team * grad_sums::tap + lane % 4 * 2;
    named_sync(TEAM_SYNC, TEAM_THREADS);
#pragma unroll
    for (int box = 0; box < 3; box++)
#pragma unroll
        for (int j = 0; j < CHANNELS / 8; j++) {
            const int at = 4 * (box * (CHANNELS / 8) + j);
            float *to = mine + box * grad_sums::tap + 8 * j;
            *(float2 *)to = make_float2(d[at], d[at + 1]);
            *(float2 *)(to + 8 * grad_sums::row) = make_float2(d[at + 2], d[at + 3]);
        }
    named_sync(TEAM_SYNC, TEAM_THREADS);
    const int first_row = w.row_group * CHANNELS, first_column = w.column_group * CHANNELS;
    const int rows = min(CHANNELS, g.rows - first_row),
              values = GRAD_TAPS * min(CHANNELS, g.columns - first_column);
    for (int row = 4 * team + warp; row < rows; row += 4 * grad_tile<true>::teams) {
        float *to = g.out[w.layer] + ((int64_t)(first_row + row) * g.columns + first_column) * GRAD_TAPS;
        const float *from = sums + row * grad_sums::row;
#pragma unroll 6
        for (int i = lane; i < values; i += 32) {
            const int column = i / GRAD_TAPS, tap = i - GRAD_TAPS * column;
            const float sum = from[tap * grad_sums::tap + column];
            to[i] = g.accumulate ? __ldcg(to + i) + sum : sum;
        }
    }
}

template <bool NINE>
static __device__ __forceinline__ void grad_fetch_maps(const grad_geometry &g, const grad_work &w)
{
    fetch_map(&g.dy[w.layer]);
    for (int b = 0; b < (NINE || !g.phases ? 1 : GRAD_BOXES); b++)
        fetch_map(&g.x[NINE ? w.layer : b]);
}

template <typename T, bool NINE>
__global__ void __launch_bounds__((grad_tile<NINE>::teams + 1) * WARPGROUP, 1)
    grad_kernel(const __grid_constant__ grad_geometry g)
{
    typedef grad_tile<NINE> tile;
    extern __shared__ char raw[];
    const grad_ring<NINE> ring = {(shared_address(raw) + 1023) & ~1023u};
    const grad_work w = grad_work_of(g);
    const bool sums_bias = g.bias && w.column_group == 0;
    const int group = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);
    const int warp = __shfl_sync(~0u, threadIdx.x % WARPGROUP / 32, 0), lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < tile::stages; i++) {
            barrier_init(ring.full(i), 1);
            barrier_init(ring.empty(i), tile::teams + (sums_bias ? tile::dy_boxes : 0));
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    let_next_grid_start();
    if (group == tile::teams) {
        fewer_registers<tile::other_registers>();
        if (warp == 0 && lane == 0) {
            grad_fetch_maps<NINE>(g, w);
            wait_for_grid_before();
            grad_load<NINE>(g, w, ring);
        } else if (sums_bias && warp > 0 && warp <= tile::dy_boxes) {
            grad_sum_bias<T, NINE>(g, w, ring, warp - 1, lane);
        }
    } else {
        more_registers<tile::registers>();
        float d[tile::columns / 2];
        grad_multiply<T, NINE>(w, ring, group, warp == 0 && lane == 0, d);
        if constexpr (NINE) {
            if (g.out[0]) {
                float *sums = (float *)(raw + (ring.base - shared_address(raw)));
                grad_store_whole(g, w, sums, group, warp, lane, d);
                return;
            }
        }
        grad_store<NINE>(g, w, group, warp, lane, d);
    }
}

#endif
