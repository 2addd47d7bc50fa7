#include "tensor/arena.h"

#include <stdbool.h>

#include "base/checked.h"

static size_t padded(const tess_lifetime *buffer)
{
    return tess_align_size(buffer->bytes, TESS_ARENA_ALIGN);
}

static bool meet(const tess_lifetime *a, const tess_lifetime *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Insertion sort, largest first, ties by index, so that the result never depends on the C library. */
static void sort_by_size(const tess_lifetime *buffers, int count, int *order)
{
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0 && buffers[order[at - 1]].bytes < buffers[i].bytes; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* Returns the lowest offset at which buffer `order[at]` overlaps none of the buffers placed before it. */
static size_t lowest_free(const tess_lifetime *buffers, const int *order, int at)
{
    const tess_lifetime *self = &buffers[order[at]];
    size_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < at; i++) {
            const tess_lifetime *other = &buffers[order[i]];
            bool clear = offset + padded(self) <= other->offset || other->offset + padded(other) <= offset;
            if (meet(self, other) && !clear) {
                offset = other->offset + padded(other);
                moved = true;
            }
        }
    }
    return offset;
}

void tess_arena_place(tess_lifetime *buffers, int count, int *order, size_t *total)
{
    *total = 0;
    sort_by_size(buffers, count, order);
    for (int i = 0; i < count; i++) {
        tess_lifetime *self = &buffers[order[i]];
        self->offset = lowest_free(buffers, order, i);
        size_t end = self->offset + padded(self);
        if (end > *total)
            *total = end;
    }
}

size_t tess_arena_lower_bound(const tess_lifetime *buffers, int count)
{
    size_t most = 0;
    for (int i = 0; i < count; i++) {
        size_t alive = 0;
        for (int j = 0; j < count; j++)
            if (buffers[j].first <= buffers[i].first && buffers[i].first <= buffers[j].last)
                alive += padded(&buffers[j]);
        if (alive > most)
            most = alive;
    }
    return most;
}
