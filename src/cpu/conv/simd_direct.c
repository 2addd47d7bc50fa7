/* One output row of any convolution, directly from the image: the sums of a block of pixels times a block of
 * output channels stay in registers during the loop over taps and channels. Pixels outside the image are read
 * from a row of zeros, tails included, so that every value is summed by the same instructions in the same
 * order. */
#include "cpu/conv/kernels.h"
#include "cpu/conv/simd.h"

/* Pixels of a block if one vector holds all output channels: there are registers for more sums, and fewer would wait
 * for each other. */
#if defined(__aarch64__)
enum { NARROW_ROWS = 8 };
#else
enum { NARROW_ROWS = 2 * ROWS };
#endif

/* Finishes one pixel: bias, residuals, mask, activation; stores only the `count` channels that exist. */
static inline void finish_some(const tess_direct_row *row, int64_t x, int64_t channel, int64_t count,
                               const float *block)
{
    float *out = row->out + x * row->out_pixel + channel;
    for (int64_t c = 0; c < count; c++) {
        float value = block[c];
        for (int r = 0; r < row->residuals; r++)
            value += row->residual[r][x * row->residual_pixel[r] + channel + c];
        if (row->mask && !(row->mask[x * row->mask_pixel + channel + c] > 0))
            value = 0;
        out[c] = row->relu && value < 0 ? 0 : value;
    }
}

static inline __attribute__((always_inline)) void
finish(const tess_direct_row *row, int64_t x, int64_t channel, int64_t count, const vec *sum, int vectors)
{
    vec value[BLOCK_VECTORS];
    float block[BLOCK];
    for (int j = 0; j < vectors; j++)
        value[j] = sum[j];
    if (row->bias)
        for (int j = 0; j < vectors; j++)
            value[j] += load(row->bias + channel + j * VECTOR);
    if (row->map)
        for (int j = 0; j < vectors; j++)
            value[j] += row->map[x * row->map_pixel];
    if (count < (int64_t)vectors * VECTOR) {
        for (int j = 0; j < vectors; j++)
            store(block + j * VECTOR, value[j]);
        finish_some(row, x, channel, count, block);
        return;
    }
    for (int r = 0; r < row->residuals; r++)
        for (int j = 0; j < vectors; j++)
            value[j] += load(row->residual[r] + x * row->residual_pixel[r] + channel + j * VECTOR);
    if (row->mask)
        for (int j = 0; j < vectors; j++)
            value[j] = masked(value[j], load(row->mask + x * row->mask_pixel + channel + j * VECTOR));
    if (row->relu)
        for (int j = 0; j < vectors; j++)
            value[j] = relu(value[j]);
    for (int j = 0; j < vectors; j++)
        store(row->out + x * row->out_pixel + channel + j * VECTOR, value[j]);
}

/* A run of `count` values of each pixel, times their weights. */
static inline __attribute__((always_inline)) void add_run(const float *const *pixel, const float *weights,
                                                          int64_t count, vec (*sum)[BLOCK_VECTORS],
                                                          int vectors, int pixels)
{
    int64_t c = 0;
#if defined(__aarch64__)
    if (vectors == 1) /* multiplies by a lane need a quarter of the loads */
        for (; c + VECTOR <= count; c += VECTOR) {
            vec w[VECTOR];
            for (int lane = 0; lane < VECTOR; lane++)
                w[lane] = load(weights + (c + lane) * VECTOR);
            for (int i = 0; i < pixels; i++) {
                vec values = load(pixel[i] + c);
                __asm__("" : "+w"(values)); /* else GCC loads each lane by itself */
                for (int lane = 0; lane < VECTOR; lane++)
                    sum[i][0] += w[lane] * values[lane];
            }
        }
#endif
    for (; c < count; c++) {
        vec w[BLOCK_VECTORS];
        for (int j = 0; j < vectors; j++)
            w[j] = load(weights + (c * vectors + j) * VECTOR);
        for (int i = 0; i < pixels; i++)
            for (int j = 0; j < vectors; j++)
                sum[i][j] += pixel[i][c] * w[j];
    }
}

/* If the pixels of a row are dense and all taps of the block are inside the image, the taps of a row of the kernel are
 * one run of values: with few channels, the loop over them would otherwise be too short. */
static inline __attribute__((always_inline)) void pixel_block(const tess_direct_row *row,
                                                              const float *weights, int64_t channel,
                                                              int64_t x0, int vectors, int pixels)
{
    vec sum[NARROW_ROWS][BLOCK_VECTORS] = {{{0}}};
    const int64_t width = (int64_t)vectors * VECTOR, first = x0 * row->stride_x - row->pad_x,
                  last = (x0 + pixels - 1) * row->stride_x - row->pad_x + row->taps_x;
    const bool dense =
        row->in_pixel == row->cin && first >= 0 && last <= row->in_w && x0 + pixels <= row->out_w;
    const int64_t run = dense ? row->cin * row->taps_x : row->cin;
    const int runs = dense ? 1 : row->taps_x;
    for (int ky = 0; ky < row->taps_y; ky++) {
        if (!row->rows[ky])
            continue;
        for (int kx = 0; kx < runs; kx++) {
            const float *pixel[NARROW_ROWS];
            for (int i = 0; i < pixels; i++) {
                int64_t x = (x0 + i) * row->stride_x + kx - row->pad_x;
                pixel[i] = dense || (x >= 0 && x < row->in_w && x0 + i < row->out_w)
                               ? row->rows[ky] + x * row->in_pixel
                               : row->zeros;
            }
            add_run(pixel, weights + (ky * row->taps_x + kx) * row->cin * width, run, sum, vectors, pixels);
        }
    }
    int64_t count = row->cout - channel < width ? row->cout - channel : width;
    for (int i = 0; i < pixels && x0 + i < row->out_w; i++)
        finish(row, x0 + i, channel, count, sum[i], vectors);
}

void TESS_ISA_NAME(tess_direct_row)(const tess_direct_row *row);

void TESS_ISA_NAME(tess_direct_row)(const tess_direct_row *job)
{
    const tess_direct_row copy = *job,
                          *row = &copy; /* stores cannot change a copy, so its members stay in registers */
    const int64_t taps = (int64_t)row->taps_y * row->taps_x;
    if (row->cout <= VECTOR) {
        for (int64_t x = 0; x < row->out_w; x += NARROW_ROWS)
            pixel_block(row, row->weights, 0, x, 1, NARROW_ROWS);
        return;
    }
    for (int64_t channel = 0; channel < row->cout; channel += BLOCK) {
        const float *weights = row->weights + channel * taps * row->cin;
        for (int64_t x = 0; x < row->out_w; x += ROWS)
            pixel_block(row, weights, channel, x, BLOCK_VECTORS, ROWS);
    }
}
