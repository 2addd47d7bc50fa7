/* limit.h: memory limits as text. A size that a message suggests can be passed to --memory and is enough. */
#ifndef TESS_PLAN_LIMIT_H
#define TESS_PLAN_LIMIT_H

#include "base/mem.h"
#include "base/status.h"

typedef struct tess_size_text {
    char text[32];
} tess_size_text;

/* 9M, 1.5G, 640K, or the bytes when they are not a whole number of KiB. */
tess_size_text tess_size_words(uint64_t bytes);
/* The same for a needed size, rounded up to whole MiB. */
tess_size_text tess_size_enough(uint64_t bytes);

/* Why a job does not fit, and what would help. */
typedef struct tess_shortage {
    uint64_t asked; /* the limit that the user set; 0: none, and the limit is the free memory */
    uint64_t limit;
    tess_mem_bytes bytes; /* of the plan that needs the least */
    uint64_t others, reserve;
    const char *others_name;
    uint64_t needed;    /* the least limit that the planner accepts; 0: the sum of the above */
    const char *advice; /* what else would help */
} tess_shortage;

/* Writes the message and returns TESS_OVER_LIMIT. */
tess_status tess_over_limit(const tess_shortage *shortage, tess_error *error);

#endif
