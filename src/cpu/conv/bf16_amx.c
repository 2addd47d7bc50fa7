/* AMX: a tile register holds 16 rows of 64 bytes; TDPBF16PS multiplies 16 pixels x 32 channels by 32 channels
 * x 16 output channels into fp32. Channels-last pixels already are such rows: a stage is a plain copy with
 * zeros outside the image and channels padded to 32. Two by two tiles of sums stay in registers. */
#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "cpu/conv/bf16_finish.h"
#include "cpu/conv/kernels.h"

enum { SIDE = 16, PIXELS = 2 * SIDE, BLOCK = 2 * SIDE, DEPTH = 32 };

extern const tess_bf16_kernels tess_bf16_kernels_amx;

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

/* The tile shapes are state of the thread, so each thread sets them once. */
static void configure_thread(void)
{
    static _Thread_local bool done;
    if (done)
        return;
    tile_config config;
    memset(&config, 0, sizeof config);
    config.palette = 1;
    for (int t = 0; t < 8; t++) {
        config.row_bytes[t] = 64;
        config.rows[t] = SIDE;
    }
    _tile_loadconfig(&config);
    done = true;
}

static int64_t padded(int64_t cin)
{
    return (cin + DEPTH - 1) / DEPTH * DEPTH;
}

static int64_t amx_stage_elements(int64_t cin, int64_t count, int extra)
{
    return (count + extra) * padded(cin);
}

static void amx_stage(const uint16_t *row, int64_t row_w, int64_t pixel, int64_t cin, int64_t start,
                      int stride, int64_t count, int extra, uint16_t *staged)
{
    const int64_t depth = padded(cin);
    for (int64_t e = 0; e < count + extra; e++, staged += depth) {
        int64_t x = start + e * stride;
        bool inside = row && x >= 0 && x < row_w;
        if (inside)
            memcpy(staged, row + x * pixel, (size_t)cin * 2);
        memset(staged + (inside ? cin : 0), 0, (size_t)(depth - (inside ? cin : 0)) * 2);
    }
}

static void amx_multiply(const uint16_t *const *tap, const int *shift, int taps, int64_t cin, int64_t at,
                         const uint16_t *panel, float *sums)
{
    const int64_t depth = padded(cin);
    const size_t stride = (size_t)depth * 2;
    configure_thread();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int t = 0; t < taps; t++) {
        const uint16_t *a = tap[t] + (at * PIXELS + shift[t]) * depth;
        for (int64_t k = 0; k < depth; k += DEPTH, panel += DEPTH * BLOCK) {
            _tile_loadd(4, a + k, stride);
            _tile_loadd(5, a + SIDE * depth + k, stride);
            _tile_loadd(6, panel, 64);
            _tile_loadd(7, panel + DEPTH * SIDE, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, sums, BLOCK * 4);
    _tile_stored(1, sums + SIDE, BLOCK * 4);
    _tile_stored(2, sums + SIDE * BLOCK, BLOCK * 4);
    _tile_stored(3, sums + SIDE * BLOCK + SIDE, BLOCK * 4);
}

static void amx_finish(const tess_bf16_pixel *pixel, const float *sums)
{
    finish_pixel(pixel, sums, BLOCK);
}

static int64_t amx_pixel_of(int64_t count, int64_t at, int i)
{
    (void)count;
    return at * PIXELS + i;
}

/* [tap][32 channels][two tiles of 16 outputs][16 pairs of channels][16 outputs][2] */
static int64_t amx_panel_place(int64_t cin, int64_t tap, int64_t i, int lane)
{
    int64_t group = (tap * padded(cin) + i) / DEPTH, k = i % DEPTH;
    return ((group * 2 + lane / SIDE) * (DEPTH / 2) + k / 2) * DEPTH + lane % SIDE * 2 + k % 2;
}

const tess_bf16_kernels tess_bf16_kernels_amx = {.name = "amx",
                                                 .depth = DEPTH,
                                                 .block = BLOCK,
                                                 .pixels = PIXELS,
                                                 .stage = amx_stage,
                                                 .stage_elements = amx_stage_elements,
                                                 .multiply = amx_multiply,
                                                 .finish = amx_finish,
                                                 .pixel_of = amx_pixel_of,
                                                 .panel_place = amx_panel_place};
