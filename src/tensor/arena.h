/* arena.h: lifetimes to offsets, pure arithmetic. Each buffer is needed from one step to another; buffers
 * whose lifetimes overlap must not overlap in memory. Largest first, lowest free offset: on the networks here
 * that reaches the lower bound (the largest sum of what is alive at one step) or comes close. */
#ifndef TESS_TENSOR_ARENA_H
#define TESS_TENSOR_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { TESS_ARENA_ALIGN = 256 };

typedef struct tess_lifetime {
    size_t bytes;
    int first, last; /* steps, both included */
    size_t offset;   /* the answer */
} tess_lifetime;

/* Sets every offset; *total is the arena's size. `order` is scratch for `count` indices. */
void tess_arena_place(tess_lifetime *buffers, int count, int *order, size_t *total);
/* The largest sum of bytes alive at one step: no placement needs less. */
size_t tess_arena_lower_bound(const tess_lifetime *buffers, int count);

#endif
