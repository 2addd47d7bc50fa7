/* Blocks read ahead by several threads: in order, whole, and the same whatever the slots and threads; errors in their place. */
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <time.h>

#include "pixel_arrays.h"
#include "train/statistics/blocks.h"

enum { BANDS = 40, WIDTH = 700 };

typedef struct slow_set {
    pixel_arrays *arrays;
    int64_t bad_image, bad_row; /* reading this row fails; -1: none does */
    atomic_int calls, now, most;
} slow_set;

/* Parts end in another order than they began. */
static tess_status slow_read(void *user, int64_t image, int64_t first, int64_t rows, void *samples,
                             tess_error *error)
{
    slow_set *s = user;
    const int call = atomic_fetch_add(&s->calls, 1), now = atomic_fetch_add(&s->now, 1) + 1;
    int most = atomic_load(&s->most);
    while (now > most && !atomic_compare_exchange_weak(&s->most, &most, now))
        ;
    const struct timespec pause = {0, call % 3 == 0 ? 2000000 : 10000};
    nanosleep(&pause, NULL);
    tess_status status = pixel_arrays_read(s->arrays, image, first, rows, samples, error);
    if (image == s->bad_image && first <= s->bad_row && s->bad_row < first + rows)
        status = tess_fail(error, TESS_IO_FAILED, "row %d is bad", (int)s->bad_row);
    atomic_fetch_sub(&s->now, 1);
    return status;
}

static int64_t rows_of(const void *user, const tess_pixel_image *image, int64_t row)
{
    (void)image;
    return row ? *(const int64_t *)user : 5;
}

typedef struct ring {
    tess_pixel_blocks blocks;
    void *memory[TESS_PIXEL_SLOTS];
} ring;

static void ring_open(ring *r, int slots, int threads)
{
    tess_error error;
    *r = (ring){0};
    for (int i = 0; i < slots; i++) {
        const size_t bytes = (size_t)64 * WIDTH * BANDS * sizeof(float), pixels = (size_t)64 * WIDTH;
        r->memory[i] = malloc(bytes + pixels);
        r->blocks.slot[i].samples = r->memory[i];
        r->blocks.slot[i].keep = (uint8_t *)r->memory[i] + bytes;
    }
    CHECK(tess_pixel_blocks_open(&r->blocks, slots, threads, NULL, &error) == TESS_OK);
}

static void ring_close(ring *r)
{
    tess_pixel_blocks_close(&r->blocks);
    for (int i = 0; i < TESS_PIXEL_SLOTS; i++)
        free(r->memory[i]);
}

/* Rows follow each other through all images, with the halo around them, and have the samples of the images. */
static bool block_is_right(const pixel_arrays *a, const tess_pixel_slot *slot, int64_t halo, int64_t *image,
                           int64_t *row)
{
    const tess_pixel_block *b = &slot->block;
    const int64_t height = a->image[*image].height, first = *row - halo > 0 ? *row - halo : 0,
                  end = *row + b->rows.rows + halo;
    bool right = b->image == *image && b->rows.first == *row && b->read.first == first &&
                 b->read.rows == (end < height ? end : height) - first;
    const size_t bytes = (size_t)(WIDTH * BANDS) * sizeof(float);
    right = right && memcmp(slot->samples, (const char *)a->samples[*image] + (size_t)first * bytes,
                            (size_t)b->read.rows * bytes) == 0;
    for (int64_t p = 0; right && a->image[*image].has_nodata && p < b->read.rows * WIDTH; p++) {
        bool has = true;
        for (int c = 0; c < BANDS; c++)
            has = has && pixel_value(a, *image, first * WIDTH + p, c) != a->image[*image].nodata;
        right = slot->keep[p] == has;
    }
    *row += b->rows.rows;
    if (*row == height) {
        (*image)++;
        *row = 0;
    }
    return right;
}

static void check_walk(ring *r, slow_set *s, const tess_pixel_set *set, int64_t rows, int64_t halo,
                       int64_t give_up)
{
    const tess_pixel_walk walk = {
        .set = set, .end = set->images, .rows = rows_of, .user = &rows, .halo = halo};
    tess_error error;
    int64_t image = 0, row = 0, count = 0;
    tess_pixel_blocks_begin(&r->blocks, &walk);
    for (tess_pixel_slot *slot; count != give_up; count++) {
        if (count > 0)
            tess_pixel_blocks_release(&r->blocks);
        CHECK_MSG(tess_pixel_blocks_next(&r->blocks, &slot, &error) == TESS_OK, "%s", error.text);
        if (!slot)
            break;
        CHECK_MSG(image < set->images && block_is_right(s->arrays, slot, halo, &image, &row),
                  "block %d (%d slots, %d readers) is wrong", (int)count, r->blocks.slots, set->readers);
    }
    CHECK(give_up >= 0 || (image == set->images && row == 0));
    CHECK_MSG(atomic_load(&s->most) <= (set->readers > 1 ? set->readers : 1), "%d threads read at once",
              atomic_load(&s->most));
}

static void check_order(pixel_arrays *a)
{
    for (int slots = 1; slots <= TESS_PIXEL_SLOTS; slots++)
        for (int threads = 1; threads <= TESS_PIXEL_READERS; threads += 3) {
            ring r;
            ring_open(&r, slots, threads);
            for (int readers = 0; readers <= 4; readers += 2) {
                slow_set s = {.arrays = a, .bad_image = -1};
                const tess_pixel_set set = {a->images, a->bands, a->image, &s, slow_read, readers};
                check_walk(&r, &s, &set, 13, 0, -1);
                check_walk(&r, &s, &set, 13, 0, 2); /* the rest is not wanted */
                check_walk(&r, &s, &set, 21, 3, -1);
            }
            ring_close(&r);
        }
}

/* The blocks before a bad one are good, and its message arrives. */
static void check_error(pixel_arrays *a)
{
    ring r;
    tess_error error = {{0}};
    slow_set s = {.arrays = a, .bad_image = 1, .bad_row = 30};
    const tess_pixel_set set = {a->images, a->bands, a->image, &s, slow_read, 4};
    const int64_t rows = 20;
    const tess_pixel_walk walk = {.set = &set, .end = a->images, .rows = rows_of, .user = &rows};
    ring_open(&r, 2, 4);
    tess_pixel_blocks_begin(&r.blocks, &walk);
    tess_status status = TESS_OK;
    int count = 0;
    for (tess_pixel_slot *slot = NULL; status == TESS_OK; count++) {
        if (slot)
            tess_pixel_blocks_release(&r.blocks);
        status = tess_pixel_blocks_next(&r.blocks, &slot, &error);
    }
    CHECK_MSG(count == 6, "the error came with block %d", count);
    CHECK(status == TESS_IO_FAILED && strcmp(error.text, "row 30 is bad") == 0);
    s.bad_image = -1;
    check_walk(&r, &s, &set, 20, 0, -1);
    ring_close(&r);
}

static void check_kinds(const char *kind, const char *json, pixel_arrays *a, int64_t rows)
{
    pipeline_run one, many;
    a->readers = 1;
    const bool in_place = a->in_place;
    a->in_place = false;
    pipeline_run_fit(&one, json, a, NULL, rows, 1);
    a->in_place = in_place;
    a->readers = 8;
    pipeline_run_fit_on(kind, &many, json, a, NULL, rows, 2);
    CHECK_MSG(one.status == TESS_OK && many.status == TESS_OK, "%s %s", one.error.text, many.error.text);
    for (int64_t i = 0; one.status == TESS_OK && many.status == TESS_OK && i < a->images; i++) {
        float *first = pipeline_run_scores(&one, a, i), *second = pipeline_run_scores(&many, a, i);
        CHECK_MSG(memcmp(first, second, (size_t)pixel_count(a, i) * sizeof *first) == 0,
                  "image %d: readers change the scores of %s", (int)i, json);
        free(first), free(second);
    }
    CHECK(tess_statistics_facts(one.statistics).bytes_read ==
          tess_statistics_facts(many.statistics).bytes_read);
    pipeline_run_close(&one);
    pipeline_run_close(&many);
}

static void check_same(const char *json, pixel_arrays *a, int64_t rows)
{
    check_kinds("cpu", json, a, rows);
    check_kinds("separate", json, a, rows);
    a->in_place = true;
    check_kinds("cpu", json, a, rows);
    a->in_place = false;
}

int main(void)
{
    pixel_arrays a;
    pixel_arrays_fill(&a, 3, 40, WIDTH, BANDS, TESS_F32);
    for (int64_t i = 0; i < a.images; i++) {
        a.image[i].has_nodata = i != 1;
        a.image[i].nodata = -9999;
        for (int64_t v = 7; v < pixel_count(&a, i) * BANDS; v += 5003)
            ((float *)a.samples[i])[v] = -9999;
    }
    check_order(&a);
    check_error(&a);
    a.image[1].has_nodata = true;
    check_same("{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"pca\"}, {\"kind\": \"rx\"}]}", &a, 0);
    check_same("{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"pca\"}, {\"kind\": \"rx\"}]}", &a, 9);
    check_same("{\"nodes\": [{\"kind\": \"snv\"}, {\"kind\": \"rx\"}, {\"kind\": \"score_to_logit\"}]}", &a,
               16);
    for (int64_t i = 0; i < a.images; i++)
        a.image[i].has_nodata = false; /* the pixels can stay in their place */
    check_same("{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"pca\"}, {\"kind\": \"rx\"}]}", &a, 9);
    check_same("{\"nodes\": [{\"kind\": \"rx\", \"over\": \"stream\", \"every\": 9, \"warmup\": 4}]}", &a, 0);
    pixel_arrays_free(&a);
    return check_end();
}
