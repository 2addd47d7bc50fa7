/* A blurred value is a sum of light over the kernel's support. Where it is almost 0, all that light is almost 0; the value beside it
 * sees nearly the same places, so it is small as well. The largest is found as the best use of a tolerance: light is put where the
 * neighbour sees most of it for what the first one sees (a fractional knapsack, which is exact). */
#include "job/reconstruct/mask/jump.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* What two values side by side see of one place. */
typedef struct place {
    double first, second;
} place;

static int by_gain(const void *a, const void *b)
{
    const place *x = a, *y = b;
    const double left = x->second * y->first, right = y->second * x->first;
    return (left < right) - (left > right);
}

static double seen(const tess_sampled_kernel *k, int64_t row, int64_t column)
{
    const bool inside = row >= -k->rows && row <= k->rows && column >= -k->columns && column <= k->columns;
    return inside ? fmax(k->values[(row + k->rows) * (2 * k->columns + 1) + column + k->columns], 0) : 0;
}

static void find(const tess_sampled_kernel *k, int down, int right, double tolerance, place *list,
                 double *from_end)
{
    int64_t count = 0;
    double left = tolerance;
    *from_end = 0;
    for (int64_t y = -k->rows - 1; y <= k->rows + 1; y++)
        for (int64_t x = -k->columns - 1; x <= k->columns + 1; x++) {
            const place p = {seen(k, y, x), seen(k, y + down, x + right)};
            if (p.second > 0)
                list[count++] = p;
        }
    qsort(list, (size_t)count, sizeof *list, by_gain);
    for (int64_t i = 0; i < count && left > 0; i++) {
        const double share = list[i].first > left ? left / list[i].first : 1;
        *from_end += share * list[i].second;
        left -= share * list[i].first;
    }
}

tess_status tess_jumps_of(const tess_sampled_kernel *k, double tolerance, tess_jumps *jumps,
                          tess_error *error)
{
    static const int down[TESS_JUMP_SIDES] = {0, 0, 1, -1}, right[TESS_JUMP_SIDES] = {1, -1, 0, 0};
    const size_t places = (size_t)((2 * k->rows + 3) * (2 * k->columns + 3));
    place *list = tess_small_alloc(places, sizeof *list);
    if (!list)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the places of a kernel");
    for (int i = 0; i < TESS_JUMP_SIDES; i++)
        find(k, down[i], right[i], tolerance, list, &jumps->from_end[i]);
    tess_small_free(list);
    return TESS_OK;
}
