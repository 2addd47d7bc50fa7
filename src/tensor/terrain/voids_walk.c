/* voids_walk.c: the voids of a window in memory, one after another, each with the list of its pixels. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/terrain/voids.h"

typedef struct walk {
    int64_t h, w;
    float *distances;
    int32_t *queue;
    uint8_t *seen;
    uint64_t *bits;
    void *scratch;
} walk;

static size_t place(walk *task, int64_t h, int64_t w, char *scratch)
{
    const size_t pixels = (size_t)(h * w), floats = tess_align_size(pixels * sizeof(float), 64);
    const size_t bits = tess_align_size(tess_bitmap_bytes(h, w), 64), bytes = tess_align_size(pixels, 64);
    if (task)
        *task = (walk){h,
                       w,
                       (float *)(void *)scratch,
                       (int32_t *)(void *)(scratch + floats),
                       (uint8_t *)(scratch + 2 * floats),
                       (uint64_t *)(void *)(scratch + 2 * floats + bytes),
                       scratch + 2 * floats + bytes + bits};
    return 2 * floats + bytes + bits + tess_voids_distance_bytes(h, w);
}

size_t tess_voids_walk_bytes(int64_t h, int64_t w)
{
    return place(NULL, h, w, NULL);
}

static void keep_row(void *arg, int64_t y, const int64_t *squares)
{
    const walk *task = arg;
    for (int64_t x = 0; x < task->w; x++)
        task->distances[y * task->w + x] = squares[x] == TESS_VOID_FAR ? INFINITY : sqrtf((float)squares[x]);
}

/* Collects the void that contains pixel `first` in the queue. */
static tess_void_one collect(const walk *task, const uint8_t *flags, int64_t first)
{
    const int64_t h = task->h, w = task->w;
    tess_void_one one = {.top = h, .left = w};
    float distance = 0;
    int64_t end = 0;
    task->queue[end++] = (int32_t)first;
    task->seen[first] = 1;
    for (int64_t next = 0; next < end; next++) {
        const int64_t at = task->queue[next], y = at / w, x = at % w;
        one.top = tess_min_i64(one.top, y), one.bottom = tess_max_i64(one.bottom, y + 1);
        one.left = tess_min_i64(one.left, x), one.right = tess_max_i64(one.right, x + 1);
        distance = fmaxf(distance, task->distances[at]);
        for (int64_t j = tess_max_i64(y - 1, 0); j <= tess_min_i64(y + 1, h - 1); j++)
            for (int64_t i = tess_max_i64(x - 1, 0); i <= tess_min_i64(x + 1, w - 1); i++)
                if (flags[j * w + i] && !task->seen[j * w + i]) {
                    task->seen[j * w + i] = 1;
                    task->queue[end++] = (int32_t)(j * w + i);
                }
    }
    one.pixels = end;
    one.width = 2 * (double)distance;
    one.at_edge = one.top == 0 || one.left == 0 || one.bottom == h || one.right == w;
    return one;
}

void tess_voids_walk(const uint8_t *flags, int64_t h, int64_t w, void *scratch, tess_voids_walk_fn each,
                     void *arg)
{
    walk task;
    tess_bitmap voids;
    place(&task, h, w, scratch);
    tess_bitmap_init(&voids, h, w, task.bits);
    tess_bitmap_write(&voids, 0, 0, h, w, flags);
    tess_voids_distances(&voids, task.scratch, keep_row, &task);
    memset(task.seen, 0, (size_t)(h * w));
    for (int64_t i = 0; i < h * w; i++)
        if (flags[i] && !task.seen[i]) {
            const tess_void_one one = collect(&task, flags, i);
            each(arg, &one, task.queue);
        }
}

static void set_class(void *arg, const tess_void_one *one, const int32_t *pixels)
{
    uint8_t *classes = arg;
    for (int64_t i = 0; i < one->pixels; i++)
        classes[pixels[i]] = (uint8_t)tess_void_class_of(one->width);
}

void tess_voids_classify(const uint8_t *flags, int64_t h, int64_t w, void *scratch, uint8_t *classes)
{
    memset(classes, TESS_VOID_CLASSES, (size_t)(h * w));
    tess_voids_walk(flags, h, w, scratch, set_class, classes);
}
