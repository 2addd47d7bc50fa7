/* arena.h: computes memory offsets from lifetimes, by arithmetic alone. Each buffer is needed from one step to
 * another; buffers whose lifetimes overlap must not overlap in memory. Buffers are placed largest first, each
 * at the lowest free offset. On the networks here this reaches the lower bound (the largest sum of buffers
 * alive at one step) or comes close. */
#ifndef TESS_TENSOR_ARENA_H
#define TESS_TENSOR_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { TESS_ARENA_ALIGN = 256 };

typedef struct tess_lifetime {
    size_t bytes;
    int first, last; /* the steps between which it is needed, both included */
    size_t offset;   /* output: set by tess_arena_place */
} tess_lifetime;

/* Sets every offset; *total is the arena's size. `order` is scratch for `count` indices. */
void tess_arena_place(tess_lifetime *buffers, int count, int *order, size_t *total);
/* The largest sum of bytes alive at one step: no placement needs less. */
size_t tess_arena_lower_bound(const tess_lifetime *buffers, int count);

#endif
