#define _POSIX_C_SOURCE 200809L
#include "train/statistics/blocks.h"

#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/thread.h"

enum { PART = 1 << 20 }; /* bytes that are worth a thread */

static const size_t STACK = (size_t)2 << 20; /* libraries decode on this stack */
static const long POLL = 50000000;           /* nanoseconds between two looks at the stop flag */

static size_t row_bytes(const tess_pixel_walk *walk, int64_t image)
{
    return (size_t)walk->set->image[image].width * (size_t)walk->set->bands *
           tess_dtype_size(walk->set->image[image].dtype);
}

static int64_t rows_at(const tess_pixel_walk *walk, const tess_pixel_place *place)
{
    const tess_pixel_image *image = &walk->set->image[place->image];
    return tess_min_i64(walk->rows(walk->user, image, place->row), image->height - place->row);
}

static void move_on(const tess_pixel_walk *walk, tess_pixel_place *place)
{
    place->row += rows_at(walk, place);
    place->number++;
    if (place->row >= walk->set->image[place->image].height)
        place->image++, place->row = 0;
}

/* To the next block of this part. */
static void find_own(const tess_pixel_walk *walk, tess_pixel_place *place)
{
    while (walk->parts > 1 && place->image < walk->end &&
           tess_pixel_walk_part(walk, place->number, walk->parts) != walk->part)
        move_on(walk, place);
}

tess_pixel_place tess_pixel_walk_begin(const tess_pixel_walk *walk)
{
    tess_pixel_place place = {.image = walk->image};
    find_own(walk, &place);
    return place;
}

bool tess_pixel_walk_next(const tess_pixel_walk *walk, tess_pixel_place *place, tess_pixel_block *block)
{
    if (place->image >= walk->end)
        return false;
    const tess_pixel_image *image = &walk->set->image[place->image];
    const int64_t row = place->row, rows = rows_at(walk, place), first = tess_max_i64(0, row - walk->halo),
                  end = tess_min_i64(image->height, row + rows + walk->halo);
    *block = (tess_pixel_block){.image = place->image, .rows = {row, rows}, .read = {first, end - first}};
    move_on(walk, place);
    find_own(walk, place);
    return true;
}

/* Puts the next block of the walk into its slot; the mutex is held. */
static tess_pixel_slot *begin_block(tess_pixel_blocks *b)
{
    tess_pixel_slot *slot = &b->slot[b->begun % b->slots];
    if (!tess_pixel_walk_next(&b->walk, &b->place, &slot->block))
        return NULL;
    const int64_t rows = slot->block.read.rows,
                  worth = (int64_t)(row_bytes(&b->walk, slot->block.image) * (size_t)rows / PART);
    slot->parts = (int)tess_max_i64(1, tess_min_i64(tess_min_i64(worth, rows), b->most));
    slot->taken = 0;
    slot->left = slot->parts;
    slot->status = TESS_OK;
    b->begun++;
    return slot;
}

/* The slot with a part to read; NULL: there is none now. The mutex is held. */
static tess_pixel_slot *find_part(tess_pixel_blocks *b)
{
    if (b->active >= b->most)
        return NULL;
    tess_pixel_slot *slot = b->begun > 0 ? &b->slot[(b->begun - 1) % b->slots] : NULL;
    if (slot && slot->taken < slot->parts)
        return slot;
    return b->begun - b->released < b->slots ? begin_block(b) : NULL;
}

static tess_status read_part(const tess_pixel_walk *walk, tess_pixel_slot *slot, int part, tess_error *error)
{
    const tess_pixel_block *block = &slot->block;
    const tess_pixel_image *image = &walk->set->image[block->image];
    const int64_t first = block->read.rows * part / slot->parts,
                  rows = block->read.rows * (part + 1) / slot->parts - first;
    char *to = (char *)slot->samples + (size_t)first * row_bytes(walk, block->image);
    TESS_TRY(walk->set->read(walk->set->user, block->image, block->read.first + first, rows, to, error));
    if (!tess_pixel_has_gaps(image))
        return TESS_OK;
    return tess_pixel_set_keep(walk->set, block->image, block->read.first + first, rows, to,
                               slot->keep + first * image->width, error);
}

static void *reader_main(void *arg)
{
    tess_pixel_blocks *b = arg;
    pthread_mutex_lock(&b->mutex);
    while (!b->quit) {
        tess_pixel_slot *slot = find_part(b);
        if (!slot) {
            pthread_cond_wait(&b->work, &b->mutex);
            continue;
        }
        const int part = slot->taken++;
        tess_error error = {{0}};
        if (b->active++ == 0)
            b->since = tess_clock();
        if (b->active < b->most)
            pthread_cond_signal(&b->work); /* another one may take the next part */
        pthread_mutex_unlock(&b->mutex);
        const tess_status status = read_part(&b->walk, slot, part, &error);
        pthread_mutex_lock(&b->mutex);
        if (--b->active == 0)
            b->seconds += tess_clock() - b->since;
        if (status != TESS_OK && slot->status == TESS_OK) {
            slot->status = status;
            slot->error = error;
        }
        if (--slot->left == 0 || b->active == 0)
            pthread_cond_broadcast(&b->done);
    }
    pthread_mutex_unlock(&b->mutex);
    return NULL;
}

tess_status tess_pixel_blocks_open(tess_pixel_blocks *b, int slots, int threads, tess_stop *stop,
                                   tess_error *error)
{
    pthread_condattr_t monotonic;
    b->slots = slots;
    b->stop = stop;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&b->mutex, NULL);
    pthread_cond_init(&b->work, NULL);
    pthread_cond_init(&b->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    b->ready = true;
    for (; b->threads < threads; b->threads++)
        if (!tess_thread_start(&b->thread[b->threads], STACK, reader_main, b)) {
            if (b->threads > 0)
                break; /* fewer will do */
            tess_pixel_blocks_close(b);
            return tess_fail(error, TESS_NO_MEMORY, "cannot start a thread that reads");
        }
    return TESS_OK;
}

void tess_pixel_blocks_close(tess_pixel_blocks *b)
{
    if (!b->ready)
        return;
    pthread_mutex_lock(&b->mutex);
    b->quit = true;
    pthread_cond_broadcast(&b->work);
    pthread_mutex_unlock(&b->mutex);
    for (int i = 0; i < b->threads; i++)
        pthread_join(b->thread[i], NULL);
    pthread_cond_destroy(&b->work);
    pthread_cond_destroy(&b->done);
    pthread_mutex_destroy(&b->mutex);
    b->ready = false;
    b->threads = 0;
}

/* Waits a moment for a change, and looks at the stop flag; the mutex is held. */
static void wait_a_moment(tess_pixel_blocks *b)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += POLL;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&b->done, &b->mutex, &until) == 0 || !b->stop)
        return;
    pthread_mutex_unlock(&b->mutex);
    tess_stop_poll(b->stop);
    pthread_mutex_lock(&b->mutex);
}

void tess_pixel_blocks_begin(tess_pixel_blocks *b, const tess_pixel_walk *walk)
{
    pthread_mutex_lock(&b->mutex);
    b->place.image = b->walk.end; /* nothing more is begun */
    if (b->begun > 0)
        b->slot[(b->begun - 1) % b->slots].taken = b->slot[(b->begun - 1) % b->slots].parts;
    while (b->active > 0)
        wait_a_moment(b);
    b->walk = *walk;
    b->place = tess_pixel_walk_begin(walk);
    b->begun = b->returned = b->released = 0;
    b->most = walk->set->readers < 1 ? 1 : walk->set->readers < b->threads ? walk->set->readers : b->threads;
    pthread_cond_broadcast(&b->work);
    pthread_mutex_unlock(&b->mutex);
}

tess_status tess_pixel_blocks_next(tess_pixel_blocks *b, tess_pixel_slot **out, tess_error *error)
{
    tess_status status = TESS_OK;
    *out = NULL;
    pthread_mutex_lock(&b->mutex);
    tess_pixel_slot *slot = &b->slot[b->returned % b->slots];
    for (;;) {
        if (b->begun > b->returned ? slot->left == 0 : b->place.image >= b->walk.end)
            break;
        wait_a_moment(b);
    }
    if (b->begun > b->returned) {
        b->returned++;
        *out = slot;
        status = slot->status;
        if (status != TESS_OK)
            tess_fail(error, status, "%s", slot->error.text);
    }
    pthread_mutex_unlock(&b->mutex);
    return status;
}

void tess_pixel_blocks_release(tess_pixel_blocks *b)
{
    pthread_mutex_lock(&b->mutex);
    b->released++;
    pthread_cond_signal(&b->work);
    pthread_mutex_unlock(&b->mutex);
}

double tess_pixel_blocks_seconds(tess_pixel_blocks *b)
{
    if (!b->ready)
        return 0;
    pthread_mutex_lock(&b->mutex);
    const double seconds = b->seconds;
    pthread_mutex_unlock(&b->mutex);
    return seconds;
}
