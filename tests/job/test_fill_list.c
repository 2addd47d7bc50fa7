/* Which tile fills which pixel: every pixel has a tile; a void that lies alone in its rectangle and fits into a tile has one only,
 * well inside of it; few voids have tiles of their own, and voids everywhere do not need many more tiles than the grid has. */
#include "base/checked.h"
#include "base/rng.h"
#include "check.h"
#include "job/fill/fill_list.h"

enum { TILE = 32, OVERLAP = 6 };

typedef struct trial {
    int64_t h, w;
    tess_memory memory;
    tess_fill_map map;
    void *voids, *wanted;
} trial;

static void open_trial(trial *t, int64_t h, int64_t w)
{
    *t = (trial){.h = h, .w = w};
    t->voids = calloc(1, tess_bitmap_bytes(h, w));
    t->wanted = calloc(1, tess_bitmap_bytes(h, w));
    t->map.count = 1;
    t->map.levels[0] = (tess_fill_level){.height = h, .width = w};
    tess_bitmap_init(&t->map.levels[0].voids, h, w, t->voids);
    tess_bitmap_init(&t->map.levels[0].wanted, h, w, t->wanted);
}

static void close_trial(trial *t)
{
    free(t->voids);
    free(t->wanted);
}

static void add_void(trial *t, int64_t top, int64_t left, int64_t h, int64_t w)
{
    for (int64_t y = top; y < tess_min_i64(t->h, top + h); y++)
        for (int64_t x = left; x < tess_min_i64(t->w, left + w); x++) {
            tess_bitmap_set(&t->map.levels[0].voids, y, x);
            tess_bitmap_set(&t->map.levels[0].wanted, y, x);
        }
}

/* Adds 1 to each pixel that the tile fills, and 100 where it is a placed one. */
static void count_tile(const trial *t, const tess_fill_list *list, int64_t id, int *tiles)
{
    const tess_fill_tile *tile = &list->tiles[id];
    uint8_t flags[TILE * TILE];
    int64_t h, w, pixels = 0;
    tess_fill_tile_wanted(list, &t->map, tile, flags, &h, &w);
    CHECK(tile->top >= 0 && tile->left >= 0 && tile->top + h <= t->h && tile->left + w <= t->w);
    CHECK((h == TILE || h == t->h) && (w == TILE || w == t->w));
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            pixels += flags[y * w + x];
            tiles[(tile->top + y) * t->w + tile->left + x] +=
                flags[y * w + x] ? (tile->row < 0 ? 101 : 1) : 0;
        }
    CHECK_MSG(pixels == tile->pixels && pixels > 0, "%lld of %lld pixels", (long long)pixels,
              (long long)tile->pixels);
    CHECK(tess_fill_tile_at(list, tile->level, tile->place) == id);
}

/* No void goes on outside of the box. */
static bool is_whole(const trial *t, const tess_fill_box *b)
{
    const tess_bitmap *wanted = &t->map.levels[0].wanted;
    for (int64_t y = tess_max_i64(0, b->top - 1); y < tess_min_i64(t->h, b->bottom + 1); y++)
        for (int64_t x = tess_max_i64(0, b->left - 1); x < tess_min_i64(t->w, b->right + 1); x++) {
            const bool inside = y >= b->top && y < b->bottom && x >= b->left && x < b->right;
            const int64_t top = tess_max_i64(b->top, y - 1), left = tess_max_i64(b->left, x - 1),
                          h = tess_min_i64(b->bottom, y + 2) - top, w = tess_min_i64(b->right, x + 2) - left;
            if (!inside && tess_bitmap_get(wanted, y, x) &&
                tess_bitmap_count_window(wanted, top, left, h, w) > 0)
                return false;
        }
    return true;
}

/* The distance of a box from the ends of the tile that are not edges of the map. */
static void check_box(const trial *t, const tess_fill_list *list, const tess_fill_box *b, const int *tiles)
{
    const int64_t id = tess_fill_tile_at(list, 0, b->place);
    CHECK_MSG(is_whole(t, b), "box at %lld, %lld", (long long)b->top, (long long)b->left);
    CHECK(id >= 0);
    if (id < 0)
        return;
    const tess_fill_tile *tile = &list->tiles[id];
    const int64_t margin = OVERLAP / 2;
    CHECK_MSG((tile->top == 0 || b->top - tile->top >= margin) &&
                  (tile->left == 0 || b->left - tile->left >= margin) &&
                  (tile->top + TILE >= t->h || tile->top + TILE - b->bottom >= margin) &&
                  (tile->left + TILE >= t->w || tile->left + TILE - b->right >= margin),
              "box at %lld, %lld", (long long)b->top, (long long)b->left);
    for (int64_t y = b->top; y < b->bottom; y++)
        for (int64_t x = b->left; x < b->right; x++)
            if (tess_bitmap_get(&t->map.levels[0].wanted, y, x))
                CHECK(tiles[y * t->w + x] == (tile->row < 0 ? 101 : 1));
}

/* Returns the number of tiles; `placed` and `boxes` may be NULL. */
static int64_t check_list(trial *t, int64_t *placed, int64_t *boxes)
{
    tess_fill_list list;
    tess_error error;
    int *tiles = calloc((size_t)(t->h * t->w), sizeof *tiles);
    t->map.memory = &t->memory;
    CHECK(tess_fill_list_open(&list, &t->map, TILE, OVERLAP, &error) == TESS_OK);
    for (int64_t i = 0; i < list.count; i++)
        count_tile(t, &list, i, tiles);
    for (int64_t i = 0; i < t->h * t->w; i++) {
        const bool wanted = tess_bitmap_get(&t->map.levels[0].wanted, i / t->w, i % t->w);
        CHECK_MSG((tiles[i] > 0) == wanted, "%lld, %lld", (long long)(i / t->w), (long long)(i % t->w));
    }
    for (int64_t i = 0; i < list.boxes[0].count; i++)
        check_box(t, &list, &list.boxes[0].list[i], tiles);
    const int64_t count = list.count;
    if (placed)
        *placed = list.placed;
    if (boxes)
        *boxes = list.boxes[0].count;
    tess_fill_list_close(&list);
    free(tiles);
    return count;
}

static void check_cases(void)
{
    int64_t placed, boxes;
    trial t;
    open_trial(&t, 100, 130); /* in the corner of four tiles of the grid */
    add_void(&t, 18, 20, 16, 16);
    CHECK(check_list(&t, &placed, &boxes) == 1 && placed == 1 && boxes == 1);
    add_void(&t, 36, 22, 2, 3); /* fits beside it */
    CHECK(check_list(&t, &placed, &boxes) == 1 && placed == 1 && boxes == 2);
    add_void(&t, 80, 100, 3, 3); /* far away */
    CHECK(check_list(&t, &placed, &boxes) == 2 && boxes == 3);
    close_trial(&t);

    open_trial(&t, 100, 130); /* a ring with a void inside: one box */
    add_void(&t, 40, 40, 20, 2);
    add_void(&t, 40, 58, 20, 2);
    add_void(&t, 40, 40, 2, 20);
    add_void(&t, 58, 40, 2, 20);
    add_void(&t, 49, 49, 3, 3);
    CHECK(check_list(&t, &placed, &boxes) == 1 && boxes == 1);
    add_void(&t, 49, 0, 2, 130); /* a river through it: the grid has all of it */
    CHECK(check_list(&t, &placed, &boxes) > 3 && placed == 0);
    close_trial(&t);

    open_trial(&t, 100, 130); /* a river that ends between the arms of another void: the grid has both */
    add_void(&t, 40, 40, 20, 3);
    add_void(&t, 57, 40, 3, 20);
    add_void(&t, 46, 46, 4, 80);
    (void)check_list(&t, &placed, &boxes);
    CHECK(boxes == 0 && placed == 0);
    close_trial(&t);

    open_trial(&t, 20, 500); /* a map that is lower than a tile */
    add_void(&t, 0, 100, 20, 25);
    add_void(&t, 3, 300, 4, 60);
    (void)check_list(&t, &placed, &boxes);
    CHECK(boxes == 1);
    close_trial(&t);
}

static void check_random(uint64_t seed, int64_t voids, int64_t size)
{
    trial t;
    float at[4];
    open_trial(&t, 150 + (int64_t)seed * 13, 170 + (int64_t)seed * 7);
    for (int64_t i = 0; i < voids; i++) {
        tess_rng_uniform((tess_rng_key){seed, 5}, 4 * i, 4, at);
        add_void(&t, (int64_t)(at[0] * (float)t.h), (int64_t)(at[1] * (float)t.w),
                 1 + (int64_t)(at[2] * (float)size), 1 + (int64_t)(at[3] * (float)size));
    }
    const int64_t tiles = check_list(&t, NULL, NULL), grid = tess_fill_axis_of(t.h, TILE, OVERLAP).count *
                                                             tess_fill_axis_of(t.w, TILE, OVERLAP).count;
    CHECK_MSG(2 * tiles <= 3 * grid, "%lld tiles, %lld of the grid", (long long)tiles, (long long)grid);
    CHECK(tiles <= 2 * voids + grid / 2);
    close_trial(&t);
}

int main(void)
{
    check_cases();
    for (uint64_t seed = 0; seed < 12; seed++) {
        check_random(seed, 10, 12);
        check_random(seed, 120, 8);
        check_random(seed, 60, 40);
        check_random(seed, 900, 3);
    }
    return check_end();
}
