/* voids.c: which voids touch the raster's edge. The pixels found so far grow along the runs of each row and to the rows
 * beside it, down and up in turn, over the rows that may still change. A row costs a few operations a word, so that even a
 * spiral with hundreds of turns takes seconds. */
#include "tensor/terrain/voids.h"

#include <string.h>

tess_void_class tess_void_class_of(double width)
{
    return width < 16 ? TESS_VOID_NARROW : width <= 64 ? TESS_VOID_MIDDLE : TESS_VOID_WIDE;
}

const char *tess_void_class_name(tess_void_class kind)
{
    switch (kind) {
    case TESS_VOID_NARROW:
        return "under 16 px";
    case TESS_VOID_MIDDLE:
        return "16 to 64 px";
    case TESS_VOID_WIDE:
        return "above 64 px";
    case TESS_VOID_CLASSES:
        break;
    }
    return "unknown";
}

size_t tess_voids_outer_bytes(int64_t h, int64_t w)
{
    (void)w;
    return (size_t)h;
}

/* The seeds within a word grown through `mask` towards higher bits (left) or lower ones. */
static uint64_t grow_up(uint64_t seeds, uint64_t mask)
{
    for (int shift = 1; shift < 64; shift *= 2) {
        seeds |= mask & seeds << shift;
        mask &= mask << shift;
    }
    return seeds;
}

static uint64_t grow_down(uint64_t seeds, uint64_t mask)
{
    for (int shift = 1; shift < 64; shift *= 2) {
        seeds |= mask & seeds >> shift;
        mask &= mask >> shift;
    }
    return seeds;
}

/* Row y of `outer` grows from row `from` and along its own runs; returns whether it changed. */
static bool grow_row(const tess_bitmap *voids, tess_bitmap *outer, int64_t y, int64_t from)
{
    const int64_t words = voids->words;
    const uint64_t *mask = tess_bitmap_row(voids, y), *beside = tess_bitmap_row(outer, from);
    uint64_t *row = tess_bitmap_row(outer, y), carry = 0, changed = 0;
    for (int64_t k = 0; k < words; k++) {
        uint64_t near = beside[k] | beside[k] << 1 | beside[k] >> 1;
        near |= k > 0 ? beside[k - 1] >> 63 : 0;
        near |= k + 1 < words ? beside[k + 1] << 63 : 0;
        const uint64_t grown = grow_up((row[k] | near | carry) & mask[k], mask[k]);
        changed |= grown & ~row[k];
        row[k] = grown;
        carry = grown >> 63;
    }
    carry = 0;
    for (int64_t k = words; k-- > 0;) {
        const uint64_t grown = grow_down((row[k] | carry) & mask[k], mask[k]);
        changed |= grown & ~row[k];
        row[k] = grown;
        carry = grown << 63;
    }
    return changed != 0;
}

/* The seeds: void pixels on the raster's edge. */
static void seed(const tess_bitmap *voids, tess_bitmap *outer)
{
    const int64_t h = voids->h, w = voids->w;
    for (int64_t y = 0; y < h; y++) {
        if (y == 0 || y == h - 1) {
            memcpy(tess_bitmap_row(outer, y), tess_bitmap_row(voids, y),
                   (size_t)voids->words * sizeof(uint64_t));
            continue;
        }
        if (tess_bitmap_get(voids, y, 0))
            tess_bitmap_set(outer, y, 0);
        if (tess_bitmap_get(voids, y, w - 1))
            tess_bitmap_set(outer, y, w - 1);
        grow_row(voids, outer, y, y);
    }
}

/* `due` of a row: 1 to be grown from the row above, 2 from the row below. */
void tess_voids_outer(const tess_bitmap *voids, tess_bitmap *outer, void *scratch)
{
    enum { FROM_ABOVE = 1, FROM_BELOW = 2 };
    uint8_t *due = scratch;
    const int64_t h = voids->h;
    if (h == 0 || voids->w == 0)
        return;
    seed(voids, outer);
    memset(due, FROM_ABOVE | FROM_BELOW, (size_t)h);
    due[0] &= (uint8_t)~FROM_ABOVE, due[h - 1] &= (uint8_t)~FROM_BELOW;
    for (bool any = true; any;) {
        any = false;
        for (int64_t y = 1; y < h; y++)
            if (due[y] & FROM_ABOVE) {
                due[y] &= (uint8_t)~FROM_ABOVE;
                if (grow_row(voids, outer, y, y - 1)) {
                    due[y - 1] |= FROM_BELOW;
                    due[y + 1 < h ? y + 1 : y] |= y + 1 < h ? FROM_ABOVE : 0;
                    any = true;
                }
            }
        for (int64_t y = h - 1; y-- > 0;)
            if (due[y] & FROM_BELOW) {
                due[y] &= (uint8_t)~FROM_BELOW;
                if (grow_row(voids, outer, y, y + 1)) {
                    due[y + 1] |= FROM_ABOVE;
                    due[y > 0 ? y - 1 : y] |= y > 0 ? FROM_BELOW : 0;
                    any = true;
                }
            }
    }
}
