#include "job/fill/fill_boxes.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/mem.h"

/* Boxes are compared with all that begin in the same rows. */
enum { MOST_VOIDS = 1 << 17 };
enum { MERGED = -2 };

static tess_fill_box around(const tess_fill_box *a, const tess_fill_box *b)
{
    return (tess_fill_box){.top = tess_min_i64(a->top, b->top),
                           .left = tess_min_i64(a->left, b->left),
                           .bottom = tess_max_i64(a->bottom, b->bottom),
                           .right = tess_max_i64(a->right, b->right),
                           .pixels = a->pixels + b->pixels,
                           .place = TESS_FILL_NOWHERE};
}

static bool fits(const tess_fill_box *box, int64_t most)
{
    return box->bottom - box->top <= most && box->right - box->left <= most;
}

static bool is_alone(const tess_fill_box *b, const tess_bitmap *wanted)
{
    return tess_bitmap_count_window(wanted, b->top, b->left, b->bottom - b->top, b->right - b->left) ==
           b->pixels;
}

static void add(void *arg, const tess_void_one *one)
{
    tess_fill_boxes *boxes = arg;
    const tess_fill_box box = {one->top,    one->left,         one->bottom, one->right,
                               one->pixels, TESS_FILL_NOWHERE, false};
    if (fits(&box, boxes->most))
        boxes->list[boxes->count++] = box;
}

static int by_place(const void *a, const void *b)
{
    const tess_fill_box *p = a, *q = b;
    const int64_t down = p->top - q->top, right = p->left - q->left;
    return down != 0 ? (down > 0) - (down < 0) : (right > 0) - (right < 0);
}

/* Joins a box that is not alone with those that reach into it and begin below it, if a tile can take both. Returns whether any were. */
static bool merge(tess_fill_boxes *boxes, const tess_bitmap *wanted)
{
    bool merged = false;
    for (int64_t i = 0; i < boxes->count; i++) {
        tess_fill_box *b = &boxes->list[i];
        for (int64_t j = i + 1; b->place != MERGED && j < boxes->count && boxes->list[j].top < b->bottom;
             j++) {
            tess_fill_box *other = &boxes->list[j], both = around(b, other);
            if (other->place == MERGED || (b->alone && other->alone) || other->left >= b->right ||
                other->right <= b->left || !fits(&both, boxes->most))
                continue;
            *b = both;
            b->alone = is_alone(b, wanted);
            other->place = MERGED;
            merged = true;
        }
    }
    return merged;
}

/* Removes boxes that were merged, or, at the end, those that are not alone; sorts the others. */
static void sort_out(tess_fill_boxes *boxes, bool end)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < boxes->count; i++)
        if (boxes->list[i].place != MERGED && (boxes->list[i].alone || !end))
            boxes->list[kept++] = boxes->list[i];
    boxes->count = kept;
    qsort(boxes->list, (size_t)kept, sizeof *boxes->list, by_place);
}

static void find(tess_fill_boxes *boxes, const tess_bitmap *wanted)
{
    for (int64_t i = 0; i < boxes->count; i++)
        boxes->list[i].alone = is_alone(&boxes->list[i], wanted);
    do
        sort_out(boxes, false);
    while (merge(boxes, wanted));
    sort_out(boxes, true);
}

/* A tile takes the first box that is nowhere, and every later one that fits beside it. */
void tess_fill_boxes_place(tess_fill_boxes *boxes, int64_t first)
{
    boxes->tile_count = 0;
    for (int64_t i = 0; i < boxes->count; i++) {
        tess_fill_box all = boxes->list[i];
        if (all.place != TESS_FILL_NOWHERE)
            continue;
        const int64_t place = first + boxes->tile_count;
        boxes->list[i].place = place;
        for (int64_t j = i + 1; j < boxes->count && boxes->list[j].top < all.top + boxes->most; j++) {
            const tess_fill_box both = around(&all, &boxes->list[j]);
            if (boxes->list[j].place != TESS_FILL_NOWHERE || !fits(&both, boxes->most))
                continue;
            all = both;
            boxes->list[j].place = place;
        }
        boxes->tiles[boxes->tile_count++] = all;
    }
}

tess_status tess_fill_boxes_open(tess_fill_boxes *boxes, const tess_fill_level *level, int64_t most,
                                 tess_memory *memory, tess_error *error)
{
    tess_void_summary summary;
    tess_block scratch = {0};
    *boxes = (tess_fill_boxes){.most = most};
    TESS_TRY(tess_block_alloc(memory, &scratch, TESS_MEM_HOST,
                              tess_voids_summary_bytes(level->height, level->width), error));
    tess_voids_summary(&level->wanted, scratch.data, NULL, NULL, &summary);
    const bool few = summary.count > 0 && summary.count <= MOST_VOIDS && most > 0;
    const tess_status status = few ? tess_block_alloc(memory, &boxes->block, TESS_MEM_HOST,
                                                      2 * (size_t)summary.count * sizeof *boxes->list, error)
                                   : TESS_OK;
    if (status == TESS_OK && few) {
        boxes->list = boxes->block.data;
        boxes->tiles = boxes->list + summary.count;
        tess_voids_summary(&level->wanted, scratch.data, add, boxes, &summary);
        find(boxes, &level->wanted);
    }
    tess_block_free(&scratch);
    return status;
}

void tess_fill_boxes_close(tess_fill_boxes *boxes)
{
    tess_block_free(&boxes->block);
}

/* The first box whose first row is at least `row`. */
static int64_t first_from(const tess_fill_boxes *boxes, int64_t row)
{
    int64_t low = 0, high = boxes->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (boxes->list[middle].top < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void tess_fill_boxes_near(const tess_fill_boxes *boxes, int64_t top, int64_t bottom, int64_t *first,
                          int64_t *end)
{
    *first = first_from(boxes, top - boxes->most + 1);
    *end = first_from(boxes, bottom);
}
