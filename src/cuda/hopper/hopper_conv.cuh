/* hopper_conv.cuh: convolutions by wgmma with the pixels as columns: D[64 outputs x 256 pixels], a tile 8 wide
 * and 32 tall (16 or 8 for small images).
 *
 * A tile of pixels is loaded once for every 64 input channels, with its halo, and all nine taps read it at
 * shifted addresses: the matrix descriptor of a tap is that of the tile plus (dy * pitch + dx) rows. The
 * weights of a step (one tap, 64 inputs, 64 outputs: 8 KiB) pass through a ring of nine slots; a layer with
 * exactly nine of them (64 -> 64 channels) keeps them in shared memory. If the channels are not a multiple of
 * 64, the copies fill up with zeros and do not store the excess; DEPTH is the number of inputs that a step
 * really has.
 *
 * Two warpgroups alternate: while one multiplies, the other adds bias and residuals, rounds and stores. If a
 * tile is used by a single tap, loading it is the bottleneck: then both work on it at once, for 64 outputs
 * each. The third warpgroup (one warp each for pixels, weights and residuals) only starts copies. */
#ifndef TESS_CUDA_HOPPER_CONV_CUH
#define TESS_CUDA_HOPPER_CONV_CUH

#include "cuda/hopper/hopper_team.cuh"

template <typename T, int TAPS, bool RESIDENT, conv_end END, int DEPTH, int ROWS>
__global__ void __launch_bounds__((TEAMS + 1) * WARPGROUP, 1)
    conv_kernel(const __grid_constant__ conv_geometry g)
{
    typedef conv_tile<TAPS, ROWS> tile_type;
    extern __shared__ char raw[];
    const uint32_t base = (shared_address(raw) + 1023) & ~1023u;
    const conv_barriers<tile_type> b = {base + tile_type::barriers_at};
    /* The value is the same in a warp; the shuffle tells the compiler so. */
    const int group = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);
    const int warp = __shfl_sync(~0u, threadIdx.x % WARPGROUP / 32, 0), lane = threadIdx.x % 32;
    if (threadIdx.x < conv_barriers<tile_type>::count) {
        const bool shared = tile_type::paired && threadIdx.x / tile_type::stages == 1; /* stage_empty */
        barrier_init(b.at + 8 * threadIdx.x, shared ? TEAMS : 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    let_next_grid_start();
    if (group == TEAMS) {
        fewer_registers<40>();
        if (lane == 0 && warp == 0) {
            fetch_map(&g.in[0]);
            if (!g.beside)
                wait_for_grid_before();
            load_pixels<TAPS, tile_type>(g, base, b);
            if (g.beside)
                wait_for_grid_before(); /* the next grid waits for this one alone, but may read what both wrote */
        } else if (lane == 0 && warp == 1) {
            /* Loaded once and kept. */
            load_weights<TAPS, RESIDENT, tile_type>(g, base + tile_type::slots_at, b);
        } else if (lane == 0 && warp == 2) {
            if (g.residuals)
                fetch_map(&g.residual[0][0]);
            wait_for_grid_before();
            load_residuals<END, tile_type>(g, base + tile_type::staging_at, b);
        } else if (lane == 0) {
            fetch_map(&g.out[0]);
        }
    } else {
        more_registers<232>();
        if (END == ADDS_MAP)
            wait_for_grid_before(); /* which computed the map */
        conv_team<T, TAPS, RESIDENT, END, DEPTH, ROWS> team(g);
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
