/* One output row of any convolution, directly from the image: the sums of a block of pixels times a block of
 * output channels stay in registers during the loop over taps and channels. Pixels outside the image are read
 * from a row of zeros, tails included, so that every value is summed by the same instructions in the same
 * order. */
#include "cpu/conv/kernels.h"
#include "cpu/conv/simd.h"

/* Finishes one pixel: bias, residuals, activation; stores only the `count` channels that exist. */
static inline void finish(const tess_direct_row *row, int64_t x, int64_t channel, int64_t count,
                          const vec *sum, int vectors)
{
    float block[BLOCK];
    float *out = row->out + x * row->out_pixel + channel;
    for (int j = 0; j < vectors; j++) {
        vec value = sum[j];
        if (row->bias)
            value += load(row->bias + channel + j * VECTOR);
        if (row->map)
            value += row->map[x * row->map_pixel];
        store(block + j * VECTOR, value);
    }
    for (int r = 0; r < row->residuals; r++) {
        const float *residual = row->residual[r] + x * row->residual_pixel[r] + channel;
        for (int64_t c = 0; c < count; c++)
            block[c] += residual[c];
    }
    if (row->mask) {
        const float *by = row->mask + x * row->mask_pixel + channel;
        for (int64_t c = 0; c < count; c++)
            block[c] = by[c] > 0 ? block[c] : 0;
    }
    for (int64_t c = 0; c < count; c++)
        out[c] = row->relu && block[c] < 0 ? 0 : block[c];
}

static inline __attribute__((always_inline)) void
pixel_block(const tess_direct_row *row, const float *weights, int64_t channel, int64_t x0, int vectors)
{
    vec sum[ROWS][BLOCK_VECTORS] = {{{0}}};
    const int64_t width = (int64_t)vectors * VECTOR, cin = row->cin;
    for (int ky = 0; ky < row->taps_y; ky++) {
        if (!row->rows[ky])
            continue;
        for (int kx = 0; kx < row->taps_x; kx++) {
            const float *tap = weights + (ky * row->taps_x + kx) * cin * width;
            const float *pixel[ROWS];
            for (int i = 0; i < ROWS; i++) {
                int64_t x = (x0 + i) * row->stride_x + kx - row->pad_x;
                pixel[i] = x >= 0 && x < row->in_w && x0 + i < row->out_w ? row->rows[ky] + x * row->in_pixel
                                                                          : row->zeros;
            }
            for (int64_t c = 0; c < cin; c++) {
                vec w[BLOCK_VECTORS];
                for (int j = 0; j < vectors; j++)
                    w[j] = load(tap + c * width + j * VECTOR);
                for (int i = 0; i < ROWS; i++)
                    for (int j = 0; j < vectors; j++)
                        sum[i][j] += pixel[i][c] * w[j];
            }
        }
    }
    int64_t count = row->cout - channel < width ? row->cout - channel : width;
    for (int i = 0; i < ROWS && x0 + i < row->out_w; i++)
        finish(row, x0 + i, channel, count, sum[i], vectors);
}

void TESS_ISA_NAME(tess_direct_row)(const tess_direct_row *row);

void TESS_ISA_NAME(tess_direct_row)(const tess_direct_row *row)
{
    const int64_t taps = (int64_t)row->taps_y * row->taps_x;
    if (row->cout <= VECTOR) {
        for (int64_t x = 0; x < row->out_w; x += ROWS)
            pixel_block(row, row->weights, 0, x, 1);
        return;
    }
    for (int64_t channel = 0; channel < row->cout; channel += BLOCK) {
        const float *weights = row->weights + channel * taps * row->cin;
        for (int64_t x = 0; x < row->out_w; x += ROWS)
            pixel_block(row, weights, channel, x, BLOCK_VECTORS);
    }
}
