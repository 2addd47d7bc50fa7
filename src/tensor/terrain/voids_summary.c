/* voids_summary.c: counts voids while going down the rows. A void that is still growing owns a slot; two that meet are
 * joined, and one that has no run in the current row is finished and gives its slot back. A row of w pixels has at most
 * (w + 1) / 2 runs, so memory does not depend on how many voids there are. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/terrain/voids.h"

typedef struct slot {
    tess_void_one one;
    int64_t square; /* largest squared distance */
    int64_t parent; /* itself, or the slot that it was joined to */
    int64_t row;    /* the last one with a run of it */
} slot;

typedef struct run {
    int64_t from, to, slot;
} run;

typedef struct summary_pass {
    const tess_bitmap *voids;
    tess_void_summary *summary;
    tess_voids_each_fn each;
    void *arg;
    slot *slots;
    int64_t *unused; /* a stack of slots */
    int64_t free_count;
    run *before, *now;
    int64_t before_count;
    void *distance_scratch;
} summary_pass;

/* Each row needs at most one new slot a run; those of the row before are live as well. */
static size_t place(summary_pass *pass, int64_t h, int64_t w, void *scratch)
{
    const size_t runs = (size_t)(w / 2 + 2), slots = 2 * runs;
    const size_t run_bytes = tess_align_size(runs * sizeof(run), 64);
    const size_t slot_bytes = tess_align_size(slots * sizeof(slot), 64),
                 stack = tess_align_size(slots * sizeof(int64_t), 64);
    if (pass) {
        char *at = scratch;
        pass->before = (run *)at, at += run_bytes;
        pass->now = (run *)at, at += run_bytes;
        pass->slots = (slot *)at, at += slot_bytes;
        pass->unused = (int64_t *)at, at += stack;
        pass->distance_scratch = at;
        for (size_t i = 0; i < slots; i++)
            pass->unused[i] = (int64_t)(slots - 1 - i);
        pass->free_count = (int64_t)slots;
    }
    return 2 * run_bytes + slot_bytes + stack + tess_voids_distance_bytes(h, w);
}

size_t tess_voids_summary_bytes(int64_t h, int64_t w)
{
    return place(NULL, h, w, NULL);
}

static int64_t root(summary_pass *pass, int64_t at)
{
    while (pass->slots[at].parent != at)
        at = pass->slots[at].parent = pass->slots[pass->slots[at].parent].parent;
    return at;
}

static void join(summary_pass *pass, int64_t a, int64_t b)
{
    a = root(pass, a), b = root(pass, b);
    if (a == b)
        return;
    slot *into = &pass->slots[a], *from = &pass->slots[b];
    into->one.pixels += from->one.pixels;
    into->one.top = tess_min_i64(into->one.top, from->one.top);
    into->one.left = tess_min_i64(into->one.left, from->one.left);
    into->one.bottom = tess_max_i64(into->one.bottom, from->one.bottom);
    into->one.right = tess_max_i64(into->one.right, from->one.right);
    into->one.at_edge |= from->one.at_edge;
    into->square = tess_max_i64(into->square, from->square);
    into->row = tess_max_i64(into->row, from->row);
    from->parent = a;
}

static void finish(summary_pass *pass, const slot *done)
{
    tess_void_one one = done->one;
    tess_void_summary *sum = pass->summary;
    one.width = done->square == TESS_VOID_FAR ? INFINITY : 2 * sqrt((double)done->square);
    const tess_void_class kind = tess_void_class_of(one.width);
    sum->count++, sum->pixels += one.pixels, sum->at_edge += one.at_edge;
    sum->counts[kind]++, sum->class_pixels[kind] += one.pixels;
    if (one.pixels > sum->largest.pixels)
        sum->largest = one;
    if (one.width > sum->widest.width)
        sum->widest = one;
    if (pass->each)
        pass->each(pass->arg, &one);
}

static int64_t new_slot(summary_pass *pass, int64_t y, const run *r)
{
    const int64_t at = pass->unused[--pass->free_count];
    pass->slots[at] =
        (slot){.one = {.top = y, .left = r->from, .bottom = y + 1, .right = r->to}, .parent = at};
    return at;
}

/* Joins a run with those of the row before that touch it, from number `first` on; returns the first that may touch the next
 * run. */
static int64_t connect(summary_pass *pass, int64_t y, run *r, int64_t first)
{
    r->slot = -1;
    while (first < pass->before_count && pass->before[first].to < r->from)
        first++;
    for (int64_t k = first; k < pass->before_count && pass->before[k].from <= r->to; k++) {
        if (r->slot < 0)
            r->slot = root(pass, pass->before[k].slot);
        else
            join(pass, r->slot, pass->before[k].slot);
    }
    if (r->slot < 0)
        r->slot = new_slot(pass, y, r);
    return first;
}

static void add_run(summary_pass *pass, int64_t y, const run *r, const int64_t *squares)
{
    slot *to = &pass->slots[root(pass, r->slot)];
    to->one.pixels += r->to - r->from;
    to->one.left = tess_min_i64(to->one.left, r->from);
    to->one.right = tess_max_i64(to->one.right, r->to);
    to->one.bottom = y + 1;
    to->one.at_edge |= y == 0 || y == pass->voids->h - 1 || r->from == 0 || r->to == pass->voids->w;
    to->row = y;
    for (int64_t x = r->from; x < r->to; x++)
        to->square = tess_max_i64(to->square, squares[x]);
}

/* Slots of the row before: joined ones are free now, and so are those without a run in row y. A slot may appear in several
 * runs; its parent is set to -1 when it is given back. */
static void release(summary_pass *pass, int64_t y)
{
    for (int64_t k = 0; k < pass->before_count; k++) {
        const int64_t at = pass->before[k].slot;
        slot *s = &pass->slots[at];
        if (s->parent < 0 || (s->parent == at && s->row == y))
            continue;
        if (s->parent == at)
            finish(pass, s);
        s->parent = -1;
        pass->unused[pass->free_count++] = at;
    }
}

static void summary_row(void *arg, int64_t y, const int64_t *squares)
{
    summary_pass *pass = arg;
    int64_t count = 0, first = 0;
    for (int64_t from = tess_bitmap_find(pass->voids, y, 0, true); from < pass->voids->w;) {
        const int64_t to = tess_bitmap_find(pass->voids, y, from, false);
        run *r = &pass->now[count++];
        *r = (run){from, to, -1};
        first = connect(pass, y, r, first);
        from = tess_bitmap_find(pass->voids, y, to, true);
    }
    for (int64_t k = 0; k < count; k++) {
        pass->now[k].slot = root(pass, pass->now[k].slot);
        add_run(pass, y, &pass->now[k], squares);
    }
    release(pass, y);
    run *swap = pass->before;
    pass->before = pass->now, pass->now = swap;
    pass->before_count = count;
}

void tess_voids_summary(const tess_bitmap *voids, void *scratch, tess_voids_each_fn each, void *arg,
                        tess_void_summary *summary)
{
    *summary = (tess_void_summary){0};
    summary_pass pass = {.voids = voids, .summary = summary, .each = each, .arg = arg};
    place(&pass, voids->h, voids->w, scratch);
    tess_voids_distances(voids, pass.distance_scratch, summary_row, &pass);
    release(&pass, voids->h);
}
