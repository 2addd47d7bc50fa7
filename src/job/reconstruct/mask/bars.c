#include "job/reconstruct/mask/bars.h"

#include "base/checked.h"

enum { LEAST = 4 }; /* rows or columns */

int64_t tess_bars_keep(const tess_problem *p, int64_t *runs)
{
    int64_t rows[2] = {0, 0}, columns[2] = {p->width, p->width}, pixels = 0;
    while (rows[0] < p->height && runs[2 * rows[0]] == p->width)
        rows[0]++;
    while (rows[0] + rows[1] < p->height && runs[2 * (p->height - 1 - rows[1])] == p->width)
        rows[1]++;
    for (int64_t y = rows[0]; y < p->height - rows[1]; y++)
        for (int side = 0; side < 2; side++)
            columns[side] = tess_min_i64(columns[side], runs[2 * y + side]);
    for (int side = 0; side < 2; side++) {
        rows[side] = rows[side] < LEAST ? 0 : rows[side];
        columns[side] = columns[side] < LEAST ? 0 : columns[side];
    }
    for (int64_t y = 0; y < p->height; y++) {
        const bool bar = y < rows[0] || y >= p->height - rows[1];
        for (int side = 0; side < 2; side++) {
            runs[2 * y + side] = !bar ? columns[side] : side ? 0 : p->width;
            pixels += runs[2 * y + side];
        }
    }
    return pixels;
}
