/* blocks.h: the blocks of rows of a walk over images, read ahead by several threads.
 *
 * Blocks are in a fixed order, each in the next slot of a ring. Threads take parts of a block, the first part that nobody has
 * taken, and go on to the next block while a slot is free; so a slow file or a slow part delays nobody but its block,
 * and the one who takes blocks always gets them in order. What is in them does not depend on slots or threads.
 *
 * Reading begins with a walk and ends with its last block; another walk may begin at any time. */
#ifndef TESS_TRAIN_STATISTICS_BLOCKS_H
#define TESS_TRAIN_STATISTICS_BLOCKS_H

#include <pthread.h>

#include "base/mem.h"
#include "base/stop.h"
#include "train/statistics/pixels.h"

enum { TESS_PIXEL_SLOTS = 8, TESS_PIXEL_READERS = 12, TESS_PIXEL_ALIKE = 1024 };

/* Rows of an image. */
typedef struct tess_pixel_rows {
    int64_t first, rows;
} tess_pixel_rows;

typedef struct tess_pixel_walk {
    const tess_pixel_set *set; /* outlives the walk */
    int64_t image, end;        /* images [image, end) */
    /* Rows of a block of this image from `row` on, as many as there are or fewer. */
    int64_t (*rows)(const void *user, const tess_pixel_image *image, int64_t row);
    const void *user;
    int64_t halo; /* rows that are read above and below a block, inside of the image */
    /* Ranks take the blocks in turn: the walk of rank `part` of `parts` has every parts-th block. Which rank has the first
     * one depends on the first image, so that small images are not all of the same rank. 0 parts: all blocks. */
    int part, parts;
    /* Only sums over pixels are wanted: whole images of a set in place that follow one another in memory, of one width, come
     * as one block, which has the number of the first. alike: only those of its height, and at most TESS_PIXEL_ALIKE. */
    bool joins, alike;
} tess_pixel_walk;

typedef struct tess_pixel_block {
    int64_t image, joined;      /* joined: images behind it that belong to the block */
    tess_pixel_rows rows, read; /* of the block's first image; with the halo */
} tess_pixel_block;

/* Where a walk is. */
typedef struct tess_pixel_place {
    int64_t image, row;
    int64_t number; /* blocks before, also those of other parts */
} tess_pixel_place;

/* Its first block. */
tess_pixel_place tess_pixel_walk_begin(const tess_pixel_walk *walk);
/* The part that has a block of this number, if there are so many parts. */
static inline int tess_pixel_walk_part(const tess_pixel_walk *walk, int64_t number, int parts)
{
    return (int)((walk->image + number) % parts);
}
/* The block there, and moves on; false behind the last one. */
bool tess_pixel_walk_next(const tess_pixel_walk *walk, tess_pixel_place *place, tess_pixel_block *block);

typedef struct tess_pixel_slot {
    void *samples; /* of the caller, large enough for every block */
    uint8_t *
        keep; /* for each pixel: 0 if any band has the sample that means no value; set if the image has one */
    tess_pixel_block block;
    int parts, taken, left; /* left: parts that are not read yet */
    tess_status status;
    tess_error error;
} tess_pixel_slot;

typedef struct tess_pixel_blocks {
    tess_pixel_slot slot[TESS_PIXEL_SLOTS];
    int slots;
    tess_stop *stop; /* of the one who takes blocks; NULL: none */
    pthread_t thread[TESS_PIXEL_READERS];
    int threads;
    bool ready;            /* the mutex exists */
    pthread_mutex_t mutex; /* protects the following, and the slots */
    pthread_cond_t work, done;
    bool quit;
    tess_pixel_walk walk;
    tess_pixel_place place;            /* where the next block begins */
    int64_t begun, returned, released; /* blocks of this walk */
    int active, most;                  /* threads that read; most: that may */
    double since, seconds; /* when the first of them began; in which any of them read, of all walks */
} tess_pixel_blocks;

/* Starts the threads. The slots' memory is the caller's. */
tess_status tess_pixel_blocks_open(tess_pixel_blocks *blocks, int slots, int threads, tess_stop *stop,
                                   tess_error *error) TESS_MUST_CHECK;
/* Waits for what is being read; zeros are allowed. */
void tess_pixel_blocks_close(tess_pixel_blocks *blocks);
/* Begins to read. What is left of the walk before is given up. */
void tess_pixel_blocks_begin(tess_pixel_blocks *blocks, const tess_pixel_walk *walk);
/* Waits for the next block; *slot is NULL behind the last one. It stays as it is until it is released. */
tess_status tess_pixel_blocks_next(tess_pixel_blocks *blocks, tess_pixel_slot **slot,
                                   tess_error *error) TESS_MUST_CHECK;
/* Seconds in which any thread read, so far. */
double tess_pixel_blocks_seconds(tess_pixel_blocks *blocks);
/* The oldest block that was returned and not released may be overwritten. */
void tess_pixel_blocks_release(tess_pixel_blocks *blocks);

#endif
