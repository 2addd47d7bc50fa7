/* bitmap.h: one bit a pixel, for maps whose voids must be known as a whole: 20000 x 20000 pixels take 48 MiB. A row begins
 * at a new word; the bits beyond its end are 0. */
#ifndef TESS_TENSOR_TERRAIN_BITMAP_H
#define TESS_TENSOR_TERRAIN_BITMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tess_bitmap {
    int64_t h, w, words; /* words: of a row */
    uint64_t *bits;      /* the caller's */
} tess_bitmap;

/* Bytes of the bits; SIZE_MAX when they cannot be expressed. */
size_t tess_bitmap_bytes(int64_t h, int64_t w);
/* `bits` (tess_bitmap_bytes, aligned to 8) becomes the caller's bitmap with all bits clear. */
void tess_bitmap_init(tess_bitmap *bitmap, int64_t h, int64_t w, void *bits);

static inline uint64_t *tess_bitmap_row(const tess_bitmap *bitmap, int64_t y)
{
    return bitmap->bits + y * bitmap->words;
}

static inline bool tess_bitmap_get(const tess_bitmap *bitmap, int64_t y, int64_t x)
{
    return bitmap->bits[y * bitmap->words + x / 64] >> (x % 64) & 1;
}

static inline void tess_bitmap_set(tess_bitmap *bitmap, int64_t y, int64_t x)
{
    bitmap->bits[y * bitmap->words + x / 64] |= (uint64_t)1 << (x % 64);
}

/* The window of h x w pixels at (y, x), as bytes of 0 and 1: `flags` to the bits, and the bits to `flags`. */
void tess_bitmap_write(tess_bitmap *bitmap, int64_t y, int64_t x, int64_t h, int64_t w, const uint8_t *flags);
void tess_bitmap_read(const tess_bitmap *bitmap, int64_t y, int64_t x, int64_t h, int64_t w, uint8_t *flags);
/* The number of set bits: of all, and of a window. */
int64_t tess_bitmap_count(const tess_bitmap *bitmap);
int64_t tess_bitmap_count_window(const tess_bitmap *bitmap, int64_t y, int64_t x, int64_t h, int64_t w);
/* Clears the bits that are set in `other`, which has the same size. */
void tess_bitmap_subtract(tess_bitmap *bitmap, const tess_bitmap *other);
/* The first column from `x` on whose bit is `value`, or w. */
int64_t tess_bitmap_find(const tess_bitmap *bitmap, int64_t y, int64_t x, bool value);

#endif
