/* hopper_conv.cuh: convolutions by wgmma with the pixels as columns: D[64 outputs x 256 pixels],
 * 8 wide and 32 tall (16 for small images).
 *
 * A tile of pixels is loaded once for every 64 input channels, with its halo, and all nine taps read it at
 * shifted addresses: the matrix descriptor of a tap is that of the tile plus (dy * pitch + dx) rows. The weights
 * of a step (one tap, 64 inputs, 64 outputs: 8 KiB) come through a ring of nine slots; where the layer has
 * just nine of them, 64 -> 64 channels, they stay. Channels that are not multiples of 64 are filled up with
 * zeros by the copies, and cut off again; DEPTH is how many of a step's inputs there are at all.
 *
 * Two warpgroups take turns: while one multiplies, the other adds bias and residuals, rounds and stores. A
 * fourth of the block (one warp each for pixels, weights and residuals) does nothing but start copies. */
#ifndef TESS_CUDA_HOPPER_CONV_CUH
#define TESS_CUDA_HOPPER_CONV_CUH

#include "cuda/hopper.cuh"

enum {
    CHANNELS = 64, /* of a step, in and out: one swizzled row of 128 bytes */
    ROW_BYTES = 128,
    SLOT_BYTES = CHANNELS * ROW_BYTES,
    TEAMS = 2, /* warpgroups that multiply */
    PHASES = 4 /* of a 2x2 stride, in or out */
};

typedef struct conv_geometry {
    CUtensorMap in[PHASES], out[PHASES], residual[2], weights;
    const float *bias;                   /* NULL: none */
    int tiles_x, tiles_y, groups, tiles; /* groups: of 64 outputs; tiles: all there are */
    int chunks;                          /* of 64 inputs, the taps of a strided kernel counted as inputs */
    int chunks_per_phase, groups_per_phase;
    int pad_y, pad_x, outputs;
    int residuals;
    bool relu;
} conv_geometry;

template <int TAPS, int ROWS> struct conv_tile {
    static constexpr int side = TAPS == 9   ? 3
                                : TAPS == 4 ? 2
                                            : 1,
                         width = 8, height = ROWS, pixels = width * height;
    /* A single tap needs a tile for each step: there, more tiles and fewer weights are on their way. */
    static constexpr int stages = TAPS == 1 ? 4 : 2, slots = TAPS == 1 ? 4 : 9;
    static constexpr int pitch = width + side - 1, stage_rows = pitch * (height + side - 1);
    static constexpr int load_bytes = stage_rows * ROW_BYTES, stage_bytes = (load_bytes + 1023) / 1024 * 1024;
    static constexpr int staging_bytes = pixels * ROW_BYTES;
    static constexpr int slots_at = stages * stage_bytes, staging_at = slots_at + slots * SLOT_BYTES,
                         barriers_at = staging_at + TEAMS * staging_bytes;
    static constexpr int shared_bytes = barriers_at + 256 + 1024; /* 1024: to align the start */
};

/* Where the barriers are, behind each other, 8 bytes each. */
template <typename TILE> struct conv_barriers {
    static constexpr int count = 2 * (TILE::stages + TILE::slots + TEAMS);
    uint32_t at;
    __device__ uint32_t stage_full(int i) const
    {
        return at + 8 * i;
    }
    __device__ uint32_t stage_empty(int i) const
    {
        return stage_full(TILE::stages + i);
    }
    __device__ uint32_t slot_full(int i) const
    {
        return stage_full(2 * TILE::stages + i);
    }
    __device__ uint32_t slot_empty(int i) const
    {
        return slot_full(TILE::slots + i);
    }
    __device__ uint32_t residual_full(int i) const
    {
        return slot_full(2 * TILE::slots + i);
    }
    __device__ uint32_t staging_free(int i) const
    {
        return residual_full(TEAMS + i);
    }
};

/* A place in a ring, and the parity of its round. */
struct ring_place {
    int at = 0;
    uint32_t round = 0;
    template <int SIZE> __device__ __forceinline__ void next()
    {
        if (++at == SIZE) {
            at = 0;
            round ^= 1;
        }
    }
};

struct tile_place {
    int group, x, y, n;
};

template <typename TILE>
static __device__ __forceinline__ tile_place place_of(const conv_geometry &g, int tile)
{
    tile_place p;
    p.group = tile % g.groups;
    tile /= g.groups;
    p.x = tile % g.tiles_x * TILE::width;
    tile /= g.tiles_x;
    p.y = tile % g.tiles_y * TILE::height;
    p.n = tile / g.tiles_y;
    return p;
}

template <int TAPS, typename TILE>
static __device__ __forceinline__ void load_pixels(const conv_geometry &g, uint32_t stages,
                                                   const conv_barriers<TILE> &b)
{
    ring_place stage;
    for (int tile = blockIdx.x; tile < g.tiles; tile += gridDim.x) {
        tile_place p = place_of<TILE>(g, tile);
        if (TAPS == 4) { /* the 2x2 neighbourhood of a phase begins one pixel further on */
            const int phase = p.group / g.groups_per_phase;
            p.x += phase % 2;
            p.y += phase / 2;
        }
        for (int chunk = 0; chunk < g.chunks; chunk++) {
            int phase = chunk / g.chunks_per_phase;
            barrier_wait(b.stage_empty(stage.at), stage.round ^ 1);
            barrier_expect(b.stage_full(stage.at), TILE::load_bytes);
            load_4d(stages + stage.at * TILE::stage_bytes, &g.in[phase], b.stage_full(stage.at),
                    chunk % g.chunks_per_phase * CHANNELS, p.x - g.pad_x, p.y - g.pad_y, p.n);
            stage.next<TILE::stages>();
        }
    }
}

template <int TAPS, bool RESIDENT, typename TILE>
static __device__ __forceinline__ void load_weights(const conv_geometry &g, uint32_t slots,
                                                    const conv_barriers<TILE> &b)
{
    ring_place slot;
    for (int tile = blockIdx.x; tile < g.tiles; tile += gridDim.x) {
        tile_place p = place_of<TILE>(g, tile);
        for (int chunk = 0; chunk < g.chunks; chunk++)
            for (int tap = 0; tap < TAPS; tap++) {
                int phase = chunk / g.chunks_per_phase;
                barrier_wait(b.slot_empty(slot.at), slot.round ^ 1);
                barrier_expect(b.slot_full(slot.at), SLOT_BYTES);
                load_4d(slots + slot.at * SLOT_BYTES, &g.weights, b.slot_full(slot.at),
                        chunk % g.chunks_per_phase * CHANNELS, TAPS == 1 ? phase : tap,
                        p.group % g.groups_per_phase * CHANNELS, p.group / g.groups_per_phase);
                slot.next<TILE::slots>();
            }
        if (RESIDENT)
            return;
    }
}

template <typename TILE>
static __device__ __forceinline__ void load_residuals(const conv_geometry &g, uint32_t staging,
                                                      const conv_barriers<TILE> &b)
{
    ring_place team;
    uint32_t round[TEAMS] = {1, 1};
    for (int tile = blockIdx.x; tile < g.tiles; tile += gridDim.x) {
        tile_place p = place_of<TILE>(g, tile);
        for (int r = 0; r < g.residuals; r++) {
            barrier_wait(b.staging_free(team.at), team.at ? round[1] : round[0]);
            (team.at ? round[1] : round[0]) ^= 1;
            barrier_expect(b.residual_full(team.at), TILE::staging_bytes);
            load_4d(staging + team.at * TILE::staging_bytes, &g.residual[r], b.residual_full(team.at),
                    p.group * CHANNELS, p.x, p.y, p.n);
        }
        team.next<TEAMS>();
    }
}

/* One team's side of the kernel. */
template <typename T, int TAPS, bool RESIDENT, int DEPTH, int ROWS> struct conv_team {
    typedef conv_tile<TAPS, ROWS> tile_type;
    const conv_geometry &g;
    conv_barriers<tile_type> b;
    uint32_t stages, slots, staging; /* staging: its own */
    int team, warp, lane;
    float d[ROWS * 4]; /* of row y: 4 y + 0, 1 of one channel and two pixels, 2, 3 of the channel 8 on */
    ring_place stage, slot;
    uint32_t residual_round = 0;

    __device__ __forceinline__ conv_team(const conv_geometry &geometry) : g(geometry)
    {
    }

    __device__ __forceinline__ void step(uint64_t weights, uint64_t pixels, int add)
    {
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < DEPTH / 16; k++)
            wgmma<T, 8 * ROWS>::run(d, weights + (32 * k >> 4), pixels + (32 * k >> 4), add | k);
    }

    /* All inputs of one tile. Slots and stages are given back one step late, when their products are done. */
    __device__ __forceinline__ void multiply(bool first, bool last)
    {
        int free_slot = -1, free_stage = -1;
        for (int chunk = 0; chunk < g.chunks; chunk++) {
            barrier_wait(b.stage_full(stage.at), stage.round);
            const uint64_t pixels =
                matrix(stages + stage.at * tile_type::stage_bytes, tile_type::pitch * ROW_BYTES);
#pragma unroll
            for (int tap = 0; tap < TAPS; tap++) {
                const int shift = tap / tile_type::side * tile_type::pitch + tap % tile_type::side;
                if (!RESIDENT || first)
                    barrier_wait(b.slot_full(slot.at), slot.round);
                step(matrix(slots + slot.at * SLOT_BYTES, 8 * ROW_BYTES), pixels + (shift * ROW_BYTES >> 4),
                     chunk | tap);
                wgmma_commit();
                if (!RESIDENT) {
                    wgmma_wait<1>();
                    give_back(free_slot, free_stage);
                    free_slot = slot.at;
                }
                slot.template next<tile_type::slots>();
            }
            free_stage = stage.at;
            stage.template next<tile_type::stages>();
        }
        if (!last)
            named_arrive(1 + (team ^ 1), TEAMS * WARPGROUP);
        wgmma_wait<0>();
        give_back(free_slot, free_stage);
    }

    __device__ __forceinline__ void give_back(int &free_slot, int &free_stage)
    {
        if (warp == 0 && lane == 0) {
            if (free_slot >= 0)
                barrier_arrive(b.slot_empty(free_slot));
            if (free_stage >= 0)
                barrier_arrive(b.stage_empty(free_stage));
        }
        free_slot = free_stage = -1;
    }

    /* Where this lane's part of rows y and y + 1 lies in the staging tile. */
    __device__ __forceinline__ uint32_t staged(int y) const
    {
        return staging + (8 * (y + lane / 16) + lane % 8) * ROW_BYTES +
               ((2 * warp + lane / 8 % 2) ^ (lane % 8)) * 16;
    }

    __device__ __forceinline__ void add_residual(void)
    {
        barrier_wait(b.residual_full(team), residual_round);
        residual_round ^= 1;
#pragma unroll
        for (int y = 0; y < ROWS; y += 2) {
            uint32_t m[4];
            load_transposed(staged(y), m);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                float2 two = unpair(m[k], T());
                d[4 * y + 2 * k] += two.x;
                d[4 * y + 2 * k + 1] += two.y;
            }
        }
    }

    __device__ __forceinline__ void finish(const tile_place &p)
    {
        const bool leader = warp == 0 && lane == 0;
        float bias[2] = {0, 0};
        const int channel = p.group % g.groups_per_phase * CHANNELS;
        if (g.bias) {
            const int first = channel + 16 * warp + lane / 4;
            bias[0] = first < g.outputs ? __ldg(g.bias + first) : 0;
            bias[1] = first + 8 < g.outputs ? __ldg(g.bias + first + 8) : 0;
        }
        for (int r = 0; r < g.residuals; r++) {
            add_residual();
            if (r + 1 < g.residuals) {
                named_sync(3 + team, WARPGROUP);
                if (leader)
                    barrier_arrive(b.staging_free(team));
            }
        }
        if (g.residuals == 0) {
            if (leader)
                stores_read(); /* of the tile before */
            named_sync(3 + team, WARPGROUP);
        }
#pragma unroll
        for (int y = 0; y < ROWS; y += 2) {
            uint32_t m[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                float low = d[4 * y + 2 * k] + bias[k % 2], high = d[4 * y + 2 * k + 1] + bias[k % 2];
                if (g.relu) {
                    low = fmaxf(low, 0);
                    high = fmaxf(high, 0);
                }
                m[k] = pair(low, high, T());
            }
            store_transposed(staged(y), m);
        }
        fence_async();
        named_sync(3 + team, WARPGROUP);
        if (leader) {
            store_4d(&g.out[p.group / g.groups_per_phase], staging, channel, p.x, p.y, p.n);
            if (g.residuals) {
                stores_read();
                barrier_arrive(b.staging_free(team));
            }
        }
    }

    __device__ __forceinline__ void run(void)
    {
        if (team == 1)
            named_arrive(1, TEAMS * WARPGROUP); /* the first turn is team 0's */
        bool first = true;
        if (team == 1)
            skip();
        for (int tile = blockIdx.x + team * gridDim.x; tile < g.tiles; tile += TEAMS * gridDim.x) {
            named_sync(1 + team, TEAMS * WARPGROUP);
            multiply(first, tile + gridDim.x >= g.tiles);
            first = false;
            finish(place_of<tile_type>(g, tile));
            skip();
        }
        if (warp == 0 && lane == 0)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }

    /* Teams share the rings, so each steps over what the other uses. */
    __device__ __forceinline__ void skip(void)
    {
        for (int i = 0; i < g.chunks; i++)
            stage.template next<tile_type::stages>();
        if (RESIDENT)
            return;
        int steps = slot.at + g.chunks * TAPS;
        slot.round ^= steps / tile_type::slots & 1;
        slot.at = steps % tile_type::slots;
    }
};

template <typename T, int TAPS, bool RESIDENT, int DEPTH, int ROWS>
__global__ void __launch_bounds__((TEAMS + 1) * WARPGROUP, 1)
    conv_kernel(const __grid_constant__ conv_geometry g)
{
    typedef conv_tile<TAPS, ROWS> tile_type;
    extern __shared__ char raw[];
    const uint32_t base = (shared_address(raw) + 1023) & ~1023u;
    const conv_barriers<tile_type> b = {base + tile_type::barriers_at};
    /* The same in a warp, and the compiler must know it. */
    const int group = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);
    const int warp = __shfl_sync(~0u, threadIdx.x % WARPGROUP / 32, 0), lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < conv_barriers<tile_type>::count; i++)
            barrier_init(b.at + 8 * i, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    let_next_grid_start();
    if (group == TEAMS) {
        fewer_registers<24>();
        if (lane == 0 && warp == 0) {
            wait_for_grid_before();
            load_pixels<TAPS, tile_type>(g, base, b);
        } else if (lane == 0 && warp == 1) {
            load_weights<TAPS, RESIDENT, tile_type>(g, base + tile_type::slots_at, b); /* always there */
        } else if (lane == 0 && warp == 2) {
            wait_for_grid_before();
            load_residuals<tile_type>(g, base + tile_type::staging_at, b);
        }
    } else {
        more_registers<240>();
        conv_team<T, TAPS, RESIDENT, DEPTH, ROWS> team(g);
        team.b = b;
        team.stages = base;
        team.slots = base + tile_type::slots_at;
        team.staging = base + tile_type::staging_at + group * tile_type::staging_bytes;
        team.team = group;
        team.warp = warp;
        team.lane = lane;
        team.run();
    }
}

#endif
