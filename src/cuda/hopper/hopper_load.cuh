/* hopper_load.cuh: the copying part of the Hopper convolutions: the geometry of a layer, the tile and its
 * position in shared memory, and the three threads that only start copies. */
#ifndef TESS_CUDA_HOPPER_LOAD_CUH
#define TESS_CUDA_HOPPER_LOAD_CUH

#include "cuda/hopper/hopper.cuh"

enum {
    CHANNELS = 64, /* channels per step, in and out: one swizzled row of 128 bytes */
    ROW_BYTES = 128,
    SLOT_BYTES = CHANNELS * ROW_BYTES,
    TEAMS = 2, /* warpgroups that multiply */
    PHASES = 4 /* phases of a 2x2 stride, in or out */
};

/* What a kernel does at the end of a tile beyond bias, residuals and ReLU. */
enum conv_end { PLAIN_END, ADDS_MAP, TAKES_MASK };

typedef struct conv_geometry {
    CUtensorMap in[PHASES], out[PHASES], residual[2][PHASES], weights;
    CUtensorMap mask[PHASES]; /* ignored by a kernel that takes no mask */
    const float *bias;        /* NULL: none */
    /* One value per pixel, for all channels; ignored by a kernel without maps. */
    const float *map;
    int64_t map_image, map_row;          /* elements from one image, and one row, to the next */
    int height, width;                   /* of the map */
    int tiles_x, tiles_y, groups, tiles; /* groups of 64 outputs; tiles: total, for all groups */
    /* Groups of 64 inputs; the taps of a strided kernel count as inputs. */
    int chunks;
    int chunks_per_phase, groups_per_phase;
    int pad_y, pad_x, outputs;
    int residuals;
    bool relu;
    bool beside; /* the input was there before the previous grid let this one start */
} conv_geometry;

template <int TAPS, int ROWS> struct conv_tile {
    static constexpr int side = TAPS == 9   ? 3
                                : TAPS == 4 ? 2
                                            : 1,
                         width = 8, height = ROWS, pixels = width * height;
    static constexpr bool paired = TAPS == 1; /* both warpgroups work on one tile */
    /* Small tiles are multiplied fast, and leave room for more weights that are under way. */
    static constexpr int stages = paired ? 3 : 2, slots = paired ? 8 : ROWS == 8 ? 18 : 9;
    static constexpr int pitch = width + side - 1, stage_rows = pitch * (height + side - 1);
    static constexpr int load_bytes = stage_rows * ROW_BYTES, stage_bytes = (load_bytes + 1023) / 1024 * 1024;
    static constexpr int staging_bytes = pixels * ROW_BYTES;
    static constexpr int slots_at = stages * stage_bytes, staging_at = slots_at + slots * SLOT_BYTES,
                         barriers_at = staging_at + TEAMS * staging_bytes;
    static constexpr int shared_bytes = barriers_at + 512 + 1024; /* 1024: to align the start */
};

/* Addresses of the barriers, consecutive, 8 bytes each. */
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

/* A position in a ring, and the parity of its round. */
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
    int group, x, y, n; /* group: that of the first warpgroup if both share the tile */
};

template <typename TILE>
static __device__ __forceinline__ tile_place place_of(const conv_geometry &g, int tile)
{
    tile_place p;
    const int shares = TILE::paired ? (g.groups + 1) / 2 : g.groups;
    p.group = tile % shares * (TILE::paired ? TEAMS : 1);
    tile /= shares;
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
        if (TAPS == 4) { /* the 2x2 neighbourhood of a later phase starts one pixel later */
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
            for (int step = 0; step < (TILE::paired ? TEAMS : TAPS);
                 step++) { /* paired: one tap, two groups */
                const int group = p.group + (TILE::paired ? step : 0);
                const int tap = TILE::paired ? chunk / g.chunks_per_phase : step;
                barrier_wait(b.slot_empty(slot.at), slot.round ^ 1);
                barrier_expect(b.slot_full(slot.at), SLOT_BYTES);
                load_4d(slots + slot.at * SLOT_BYTES, &g.weights, b.slot_full(slot.at),
                        chunk % g.chunks_per_phase * CHANNELS, tap, group % g.groups_per_phase * CHANNELS,
                        group / g.groups_per_phase);
                slot.next<TILE::slots>();
            }
        if (RESIDENT)
            return;
    }
}

template <conv_end END, typename TILE>
static __device__ __forceinline__ void load_residuals(const conv_geometry &g, uint32_t staging,
                                                      const conv_barriers<TILE> &b)
{
    ring_place team;
    uint32_t round[TEAMS] = {1, 1};
    for (int tile = blockIdx.x; tile < g.tiles; tile += gridDim.x) {
        const tile_place p = place_of<TILE>(g, tile);
        for (int share = 0; share < (TILE::paired ? TEAMS : 1);
             share++) { /* paired: the outputs of one warpgroup each */
            const int group = p.group + share, phase = group < g.groups ? group / g.groups_per_phase : 0,
                      channel = group % g.groups_per_phase * CHANNELS;
            for (int r = 0; r < g.residuals; r++) {
                barrier_wait(b.staging_free(team.at), team.at ? round[1] : round[0]);
                (team.at ? round[1] : round[0]) ^= 1;
                barrier_expect(b.residual_full(team.at), TILE::staging_bytes);
                load_4d(staging + team.at * TILE::staging_bytes, &g.residual[r][phase],
                        b.residual_full(team.at), channel, p.x, p.y, p.n);
            }
            if (END == TAKES_MASK) {
                barrier_wait(b.staging_free(team.at), team.at ? round[1] : round[0]);
                (team.at ? round[1] : round[0]) ^= 1;
                barrier_expect(b.residual_full(team.at), TILE::staging_bytes);
                load_4d(staging + team.at * TILE::staging_bytes, &g.mask[phase], b.residual_full(team.at),
                        channel, p.x, p.y, p.n);
            }
            team.next<TEAMS>();
        }
    }
}

#endif
