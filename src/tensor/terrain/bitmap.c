#include "tensor/terrain/bitmap.h"

#include <string.h>

#include "base/checked.h"

size_t tess_bitmap_bytes(int64_t h, int64_t w)
{
    size_t bytes;
    return tess_mul_size((size_t)tess_ceil_div(w, 64) * sizeof(uint64_t), (size_t)h, &bytes) ? bytes
                                                                                             : SIZE_MAX;
}

void tess_bitmap_init(tess_bitmap *bitmap, int64_t h, int64_t w, void *bits)
{
    *bitmap = (tess_bitmap){h, w, tess_ceil_div(w, 64), bits};
    memset(bits, 0, tess_bitmap_bytes(h, w));
}

void tess_bitmap_write(tess_bitmap *bitmap, int64_t y, int64_t x, int64_t h, int64_t w, const uint8_t *flags)
{
    for (int64_t j = 0; j < h; j++) {
        uint64_t *row = tess_bitmap_row(bitmap, y + j);
        for (int64_t i = 0; i < w; i++) {
            const int64_t at = x + i;
            const uint64_t bit = (uint64_t)1 << (at % 64);
            row[at / 64] = flags[j * w + i] ? row[at / 64] | bit : row[at / 64] & ~bit;
        }
    }
}

void tess_bitmap_read(const tess_bitmap *bitmap, int64_t y, int64_t x, int64_t h, int64_t w, uint8_t *flags)
{
    for (int64_t j = 0; j < h; j++) {
        const uint64_t *row = tess_bitmap_row(bitmap, y + j);
        for (int64_t i = 0; i < w; i++)
            flags[j * w + i] = row[(x + i) / 64] >> ((x + i) % 64) & 1;
    }
}

int64_t tess_bitmap_count(const tess_bitmap *bitmap)
{
    int64_t count = 0;
    for (int64_t i = 0; i < bitmap->h * bitmap->words; i++)
        count += __builtin_popcountll(bitmap->bits[i]);
    return count;
}

int64_t tess_bitmap_count_window(const tess_bitmap *bitmap, int64_t y, int64_t x, int64_t h, int64_t w)
{
    int64_t count = 0;
    if (w <= 0)
        return 0;
    const int64_t first = x / 64, last = (x + w - 1) / 64;
    const uint64_t from = ~(uint64_t)0 << (x % 64), to = ~(uint64_t)0 >> (63 - (x + w - 1) % 64);
    for (int64_t j = y; j < y + h; j++) {
        const uint64_t *row = tess_bitmap_row(bitmap, j);
        for (int64_t k = first; k <= last; k++)
            count += __builtin_popcountll(row[k] & (k == first ? from : ~(uint64_t)0) &
                                          (k == last ? to : ~(uint64_t)0));
    }
    return count;
}

void tess_bitmap_subtract(tess_bitmap *bitmap, const tess_bitmap *other)
{
    for (int64_t i = 0; i < bitmap->h * bitmap->words; i++)
        bitmap->bits[i] &= ~other->bits[i];
}

int64_t tess_bitmap_find(const tess_bitmap *bitmap, int64_t y, int64_t x, bool value)
{
    if (x >= bitmap->w)
        return bitmap->w;
    const uint64_t *row = tess_bitmap_row(bitmap, y), flip = value ? 0 : ~(uint64_t)0;
    uint64_t word = (row[x / 64] ^ flip) & ~(uint64_t)0 << (x % 64);
    for (int64_t k = x / 64;; word = row[k] ^ flip) {
        if (word)
            return tess_min_i64(k * 64 + __builtin_ctzll(word), bitmap->w);
        if (++k == bitmap->words)
            return bitmap->w;
    }
}
