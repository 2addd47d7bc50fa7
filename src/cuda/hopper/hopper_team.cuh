/* hopper_team.cuh: the multiplying part of the Hopper convolutions: one warpgroup (team), its accumulators,
 * and the end of a tile. */
#ifndef TESS_CUDA_HOPPER_TEAM_CUH
#define TESS_CUDA_HOPPER_TEAM_CUH

#include "cuda/hopper/hopper_load.cuh"

template <typename T, int TAPS, bool RESIDENT, conv_end END, int DEPTH, int ROWS> struct conv_team {
    typedef conv_tile<TAPS, ROWS> tile_type;
    const conv_geometry &g;
    conv_barriers<tile_type> b;
    uint32_t stages, slots, staging; /* staging: one per team */
    int team, warp, lane;
    /* Row y: 4 y + 0, 1 are two pixels of one channel; 4 y + 2, 3 those of the channel 8 later. */
    float d[ROWS * 4];
    float bias[2]; /* of this thread's two channels of the tile */
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

    /* Sums all inputs of one tile. Slots and stages are freed one step late, when their products are complete. */
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
                if (tile_type::paired)
                    slot.template next<tile_type::slots>(); /* skips the other team's */
            }
            free_stage = stage.at;
            stage.template next<tile_type::stages>();
        }
        if (!tile_type::paired && !last)
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

    /* Address of this lane's part of rows y and y + 1 in the staging tile. */
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

    /* Reads global memory directly: the bytes are few, and the other team multiplies meanwhile. */
    __device__ __forceinline__ void add_map(const tile_place &p)
    {
        const int x = p.x + lane % 4 * 2;
        const float *at = g.map + p.n * g.map_image + p.y * g.map_row + x;
#pragma unroll
        for (int y = 0; y < ROWS; y++) {
            const bool inside = p.y + y < g.height;
            const float low = inside && x < g.width ? at[y * g.map_row] : 0,
                        high = inside && x + 1 < g.width ? at[y * g.map_row + 1] : 0;
            d[4 * y] += low;
            d[4 * y + 1] += high;
            d[4 * y + 2] += low;
            d[4 * y + 3] += high;
        }
    }

    /* Before the products, so that it is there after them. */
    __device__ __forceinline__ void load_bias(const tile_place &p)
    {
        const int first = p.group % g.groups_per_phase * CHANNELS + 16 * warp + lane / 4;
#pragma unroll
        for (int k = 0; k < 2; k++) {
            bias[k] = 0;
            if (g.bias && first + 8 * k < g.outputs)
                asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(bias[k]) : "l"(g.bias + first + 8 * k));
        }
    }

    __device__ __forceinline__ void finish(const tile_place &p)
    {
        const bool leader = warp == 0 && lane == 0;
        const int channel = p.group % g.groups_per_phase * CHANNELS;
        if (END == ADDS_MAP)
            add_map(p);
        const int staged_tiles = g.residuals + (END == TAKES_MASK ? 1 : 0);
        for (int r = 0; r < g.residuals; r++) {
            add_residual();
            if (r + 1 < staged_tiles) {
                named_sync(3 + team, WARPGROUP);
                if (leader)
                    barrier_arrive(b.staging_free(team));
            }
        }
        if (END == TAKES_MASK) {
            barrier_wait(b.residual_full(team), residual_round);
            residual_round ^= 1;
        }
        if (staged_tiles == 0) {
            if (leader)
                stores_read(); /* of the previous tile */
            named_sync(3 + team, WARPGROUP);
        }
#pragma unroll
        for (int y = 0; y < ROWS; y += 2) {
            uint32_t m[4], mask[4];
            if (END == TAKES_MASK)
                load_transposed(staged(y), mask);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                float low = d[4 * y + 2 * k] + bias[k % 2], high = d[4 * y + 2 * k + 1] + bias[k % 2];
                if (g.relu) {
                    low = fmaxf(low, 0);
                    high = fmaxf(high, 0);
                }
                if (END == TAKES_MASK) {
                    const float2 keep = unpair(mask[k], T());
                    low = keep.x > 0 ? low : 0;
                    high = keep.y > 0 ? high : 0;
                }
                m[k] = pair(low, high, T());
            }
            store_transposed(staged(y), m);
        }
        fence_async();
        named_sync(3 + team, WARPGROUP);
        if (leader && p.group < g.groups) /* the last pair may have no second half */
            store_4d(&g.out[p.group / g.groups_per_phase], staging, channel, p.x, p.y, p.n);
        if (leader && staged_tiles) {
            stores_read();
            barrier_arrive(b.staging_free(team));
        }
    }

    __device__ __forceinline__ void run_turns(void)
    {
        if (team == 1) {
            named_arrive(1, TEAMS * WARPGROUP); /* team 0 goes first */
            skip();
        }
        bool first = true;
        for (int tile = blockIdx.x + team * gridDim.x; tile < g.tiles; tile += TEAMS * gridDim.x) {
            const tile_place p = place_of<tile_type>(g, tile);
            load_bias(p);
            named_sync(1 + team, TEAMS * WARPGROUP);
            multiply(first, tile + gridDim.x >= g.tiles);
            first = false;
            finish(p);
            skip();
        }
    }

    __device__ __forceinline__ void run_paired(void)
    {
        slot.at = team;
        for (int tile = blockIdx.x; tile < g.tiles; tile += gridDim.x) {
            tile_place p = place_of<tile_type>(g, tile);
            p.group += team;
            load_bias(p);
            multiply(true, true);
            finish(p);
        }
    }

    __device__ __forceinline__ void run(void)
    {
        if (tile_type::paired)
            run_paired();
        else
            run_turns();
        if (warp == 0 && lane == 0)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }

    /* The teams share the rings, so each skips the entries of the other. */
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

#endif
