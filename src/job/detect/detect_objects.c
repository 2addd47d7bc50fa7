#include "job/detect/detect_objects.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct run {
    int64_t first, last, object;
} run;

/* An object that was joined to another has pixels = 0 and points to it. */
typedef struct object {
    tess_detection found;
    int64_t joined;
} object;

struct tess_objects {
    int64_t image, width, row, capacity, count;
    object *list;
    run *above, *here;
    int64_t above_count, here_count;
    int64_t live; /* objects that are not joined to another */
    tess_detection *sorted;
};

tess_objects *tess_objects_create(int64_t width)
{
    tess_objects *o = tess_small_alloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->above = tess_small_alloc((size_t)width / 2 + 1, sizeof *o->above);
    o->here = tess_small_alloc((size_t)width / 2 + 1, sizeof *o->here);
    if (o->above && o->here)
        return o;
    tess_objects_free(o);
    return NULL;
}

void tess_objects_free(tess_objects *o)
{
    if (!o)
        return;
    tess_small_free(o->list);
    tess_small_free(o->above);
    tess_small_free(o->here);
    tess_small_free(o->sorted);
    tess_small_free(o);
}

void tess_objects_image(tess_objects *o, int64_t image, int64_t width)
{
    o->image = image, o->width = width;
    o->row = o->above_count = o->here_count = 0;
}

static int64_t root_of(const tess_objects *o, int64_t at)
{
    while (o->list[at].joined != at)
        at = o->list[at].joined;
    return at;
}

/* `row` and `column` are sums until the end. */
static void join(tess_objects *o, int64_t a, int64_t b)
{
    a = root_of(o, a), b = root_of(o, b);
    if (a == b)
        return;
    tess_detection *to = &o->list[a < b ? a : b].found, *from = &o->list[a < b ? b : a].found;
    o->list[a < b ? b : a].joined = a < b ? a : b;
    to->pixels += from->pixels;
    to->row += from->row, to->column += from->column, to->sum += from->sum;
    to->top = to->top < from->top ? to->top : from->top;
    to->left = to->left < from->left ? to->left : from->left;
    to->bottom = to->bottom > from->bottom ? to->bottom : from->bottom;
    to->right = to->right > from->right ? to->right : from->right;
    if (from->largest > to->largest)
        to->largest = from->largest, to->peak_row = from->peak_row, to->peak_column = from->peak_column;
    from->pixels = 0;
    o->live--;
}

static tess_status new_object(tess_objects *o, const run *r, const float *scores, int64_t *index,
                              tess_error *error)
{
    if (o->count == o->capacity) {
        const int64_t capacity = o->capacity ? 2 * o->capacity : 256;
        object *larger = tess_small_realloc(o->list, (size_t)capacity, sizeof *larger);
        if (!larger)
            return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld detections", (long long)capacity);
        o->list = larger;
        o->capacity = capacity;
    }
    tess_detection d = {.image = o->image,
                        .pixels = r->last - r->first + 1,
                        .top = o->row,
                        .bottom = o->row,
                        .left = r->first,
                        .right = r->last,
                        .largest = (double)scores[r->first],
                        .peak_row = o->row,
                        .peak_column = r->first};
    for (int64_t x = r->first; x <= r->last; x++) {
        d.row += (double)o->row, d.column += (double)x, d.sum += (double)scores[x];
        if ((double)scores[x] > d.largest)
            d.largest = (double)scores[x], d.peak_column = x;
    }
    o->list[o->count] = (object){d, o->count};
    *index = o->count++;
    o->live++;
    return TESS_OK;
}

tess_status tess_objects_row(tess_objects *o, const float *scores, double threshold, tess_error *error)
{
    int64_t a = 0;
    o->here_count = 0;
    for (int64_t x = 0; x < o->width; x++) {
        if (!((double)scores[x] >= threshold))
            continue;
        run r = {.first = x};
        while (x + 1 < o->width && (double)scores[x + 1] >= threshold)
            x++;
        r.last = x;
        TESS_TRY(new_object(o, &r, scores, &r.object, error));
        while (a < o->above_count && o->above[a].last < r.first - 1)
            a++;
        for (int64_t k = a; k < o->above_count && o->above[k].first <= r.last + 1; k++)
            join(o, o->above[k].object, r.object);
        r.object = root_of(o, r.object);
        o->here[o->here_count++] = r;
    }
    run *swap = o->above;
    o->above = o->here, o->above_count = o->here_count;
    o->here = swap;
    o->row++;
    return TESS_OK;
}

int64_t tess_objects_count(const tess_objects *o)
{
    return o->live;
}

static int by_score(const void *a, const void *b)
{
    const tess_detection *x = a, *y = b;
    if (x->largest != y->largest)
        return x->largest > y->largest ? -1 : 1;
    if (x->image != y->image)
        return x->image < y->image ? -1 : 1;
    return x->top != y->top ? (x->top < y->top ? -1 : 1) : (x->left > y->left) - (x->left < y->left);
}

const tess_detection *tess_objects_sorted(tess_objects *o, int64_t *count)
{
    *count = 0;
    tess_small_free(o->sorted);
    o->sorted = tess_small_alloc((size_t)o->live + 1, sizeof *o->sorted);
    for (int64_t i = 0; o->sorted && i < o->count; i++)
        if (o->list[i].joined == i) {
            tess_detection d = o->list[i].found;
            d.row /= (double)d.pixels, d.column /= (double)d.pixels;
            o->sorted[(*count)++] = d;
        }
    if (o->sorted)
        qsort(o->sorted, (size_t)*count, sizeof *o->sorted, by_score);
    return o->sorted;
}
