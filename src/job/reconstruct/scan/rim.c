/* Looks at the mean of a column over some rows, since an object that reaches out of the volume does so in several rows.
 * Errors of pixels are the same in all views and those of the light are the same in all of a view, so both are subtracted.
 * Noise, and edges inside of the volume, leave errors of both signs, which cancel along a face; what lies outside of it does
 * not. The error of the sum is that of all rays that meet the volume: where the result fits badly, the rim says nothing. */
#include "job/reconstruct/scan/rim.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/reconstruct/problem/data.h"

enum {
    ROWS = 8,         /* of a block */
    MOST_BLOCKS = 16, /* one below the other: of more rows, blocks have more */
    RAYS = 5,         /* of a pixel, side by side: it sees more than the ray to its middle */
    BESIDE = 2,       /* voxels beside a face, where rays along it run */
    MORE = 4,         /* voxels on both sides together for the volume that is proposed */
    FACES = 4,        /* at the ends of the width, then of the height */
    LEAST = 4         /* rays */
};
static const double ALONG = 0.5;  /* of the shorter side: so much of a ray along a face is beside it */
static const double LITTLE = 0.7; /* of that: so much at most is inside of the volume */
/* Of that, where rays hardly cross the volume: a box that ends at a face leaves something only where they cross more. */
static const double HARDLY = 0.3;
/* Least that is noted: standard errors, also of those that hardly cross the volume, and the share of the largest block. Objects
 * that end at the faces leave up to 3.6 errors, or, if they are boxes, more but up to 0.0063 of the largest. Ellipsoids
 * that reach out by a voxel leave 4.1 to 25 errors and 0.009 to 0.04 of the largest. A pixel wider than a voxel sees faces
 * more blurred than the model has them: a slab that ends there leaves 0.018 with pixels of 1.75 voxels. So does a detector
 * that blurs by a pixel, which is not known: a box that ends there leaves 0.029, and is noted. */
static const double CERTAIN = 4, LIKELY = 2, CLEAR = 0.0085;
static const double ONE_BLOCK = 5.5; /* as CERTAIN; each block has tests of its own */

/* Rays along a face. The weight of a ray is the voxels that it crosses beside the face. */
typedef struct face {
    double rays, sum, weights, squares;
    double bare_sum, bare_squares; /* of those that hardly cross the volume */
} face;

typedef struct rim {
    const tess_problem *problem;
    double half[3];       /* of the volume that is computed, in voxels: x, y, z */
    int64_t blocks, rows; /* one below the other; rows of all but the last one */
    double *sum, *mean, *sorted;
    face faces[MOST_BLOCKS][FACES];
    double largest;           /* of the measured blocks */
    double residual, meeting; /* the squares of all blocks that meet the volume, and their number */
} rim;

/* What a pixel sees, in voxels. */
typedef struct pixel {
    double inside, beside;
    int face; /* the nearest */
} pixel;

static int64_t all_of(const rim *r)
{
    return r->blocks * r->problem->columns;
}

static int64_t rows_of(const rim *r, int64_t block)
{
    return block == r->blocks - 1 ? r->problem->rows - block * r->rows : r->rows;
}

/* Width of a pixel at the axis, in voxels. */
static double width_of(const tess_problem *p)
{
    const double *v = p->vectors;
    double away = 0, all = 0, square = 0;
    for (int i = 0; i < 3; i++) {
        away += v[i] * v[i];
        all += (v[3 + i] - v[i]) * (v[3 + i] - v[i]);
        square += v[6 + i] * v[6 + i];
    }
    return sqrt(square) / p->spacing * (p->parallel ? 1 : sqrt(away / all));
}

/* Voxels of a box that a ray crosses. */
static double crosses(const double half[3], const double from[3], const double along[3])
{
    double low = -INFINITY, high = INFINITY, square = 0;
    for (int i = 0; i < 3; i++) {
        square += along[i] * along[i];
        if (fabs(along[i]) < 1e-12) {
            high = fabs(from[i]) > half[i] ? -INFINITY : high;
            continue;
        }
        const double a = (-half[i] - from[i]) / along[i], b = (half[i] - from[i]) / along[i];
        low = fmax(low, fmin(a, b));
        high = fmin(high, fmax(a, b));
    }
    return high > low ? (high - low) * sqrt(square) : 0;
}

/* The face that a ray is nearest to where it passes the axis. */
static int face_of(const rim *r, const double from[3], const double along[3])
{
    const double flat = along[0] * along[0] + along[1] * along[1],
                 at = flat > 0 ? -(from[0] * along[0] + from[1] * along[1]) / flat : 0;
    const double x = (from[0] + at * along[0]) / r->half[0], y = (from[1] + at * along[1]) / r->half[1];
    return fabs(x) >= fabs(y) ? x > 0 : 2 + (y > 0);
}

static pixel look_at(const rim *r, int64_t view, int64_t block, int64_t column)
{
    const tess_problem *p = r->problem;
    const double wide[3] = {r->half[0] + BESIDE, r->half[1] + BESIDE, r->half[2]},
                 *v = p->vectors + 12 * view, middle = 0.5 * (double)(rows_of(r, block) - 1),
                 down = (double)(block * r->rows) + middle - 0.5 * (double)(p->rows - 1);
    pixel seen = {0};
    for (int k = 0; k < RAYS; k++) {
        const double aside = ((double)k + 0.5) / RAYS - 0.5,
                     right = (double)column + aside - 0.5 * (double)(p->columns - 1);
        double from[3], along[3];
        for (int i = 0; i < 3; i++) {
            const double point = v[3 + i] + right * v[6 + i] + down * v[9 + i];
            from[i] = (p->parallel ? point : v[i]) / p->spacing;
            along[i] = (p->parallel ? v[i] : point - v[i]) / p->spacing;
        }
        const double inside = crosses(r->half, from, along);
        seen.inside += inside / RAYS;
        seen.beside += (crosses(wide, from, along) - inside) / RAYS;
        if (k == RAYS / 2)
            seen.face = face_of(r, from, along);
    }
    return seen;
}

/* Adds a value to its block. True: it is the last one of its view. */
static bool add_value(rim *r, int64_t index, double value)
{
    const tess_problem *p = r->problem;
    const int64_t column = index % p->columns, row = index / p->columns % p->rows,
                  block = tess_min_i64(row / r->rows, r->blocks - 1);
    r->sum[block * p->columns + column] += value / (double)rows_of(r, block);
    return column == p->columns - 1 && row == p->rows - 1;
}

static void add_measured(void *user, int64_t first, int64_t count, float *values)
{
    rim *r = user;
    for (int64_t k = 0; k < count; k++) {
        if (!add_value(r, first + k, (double)values[k]))
            continue;
        for (int64_t i = 0; i < all_of(r); i++) {
            r->largest = fmax(r->largest, r->sum[i]);
            r->sum[i] = 0;
        }
    }
}

/* What the measurements have beyond the result, as the mean of all views. */
static void add_to_mean(void *user, int64_t first, int64_t count, float *values)
{
    rim *r = user;
    for (int64_t k = 0; k < count; k++) {
        if (!add_value(r, first + k, -(double)values[k]))
            continue;
        for (int64_t i = 0; i < all_of(r); i++) {
            r->mean[i] += r->sum[i] / (double)r->problem->count;
            r->sum[i] = 0;
        }
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void end_view(rim *r, int64_t view)
{
    const tess_problem *p = r->problem;
    const double beside = ALONG * 2 * fmin(r->half[0], r->half[1]);
    for (int64_t i = 0; i < all_of(r); i++)
        r->sorted[i] = r->sum[i] -= r->mean[i];
    qsort(r->sorted, (size_t)all_of(r), sizeof *r->sorted, compare);
    const double light = r->sorted[all_of(r) / 2];
    for (int64_t i = 0; i < all_of(r); i++) {
        const int64_t block = i / p->columns;
        const double more = r->sum[i] - light;
        const pixel seen = look_at(r, view, block, i % p->columns);
        r->sum[i] = 0;
        r->residual += seen.inside > 0 ? more * more : 0;
        r->meeting += seen.inside > 0;
        if (!(seen.beside >= beside && seen.inside <= LITTLE * seen.beside))
            continue;
        face *f = &r->faces[block][seen.face];
        f->rays++;
        f->sum += seen.beside * more;
        f->weights += seen.beside;
        f->squares += seen.beside * seen.beside;
        if (seen.inside > HARDLY * seen.beside)
            continue;
        f->bare_sum += seen.beside * more;
        f->bare_squares += seen.beside * seen.beside;
    }
}

static void add_to_faces(void *user, int64_t first, int64_t count, float *values)
{
    rim *r = user;
    const tess_problem *p = r->problem;
    for (int64_t k = 0; k < count; k++)
        if (add_value(r, first + k, -(double)values[k]))
            end_view(r, tess_problem_first_view(p) + (first + k) / (p->rows * p->columns));
}

/* Collective: both passes over the residual, and one over the measurements. */
static tess_status look(rim *r, tess_workspace *w, tess_error *error)
{
    const tess_problem *p = r->problem;
    const int64_t values = tess_problem_own_views(p) * p->rows * p->columns;
    void *const from[] = {w->measurement.data, w->term.residual, w->term.residual};
    const tess_piece_fn add[] = {add_measured, add_to_mean, add_to_faces};
    for (int i = 0; i < 3; i++) {
        const tess_status status = tess_workspace_pieces(w, from[i], values, false, add[i], r, error);
        TESS_TRY(tess_share_agree(p->share, status, error));
        if (add[i] == add_to_mean && tess_share_many(p->share))
            TESS_TRY(tess_dist_sum_f64(p->share->dist, r->mean, all_of(r), error));
    }
    if (tess_share_many(p->share))
        TESS_TRY(tess_dist_sum_f64(p->share->dist, &r->faces[0][0].rays,
                                   (int64_t)(sizeof r->faces / sizeof(double)), error));
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_MOST, &r->largest, error));
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_SUM, &r->residual, error));
    return tess_share_add(p->share, TESS_SHARE_SUM, &r->meeting, error);
}

static void add_face(face *to, const face *from)
{
    to->rays += from->rays;
    to->sum += from->sum;
    to->weights += from->weights;
    to->squares += from->squares;
    to->bare_sum += from->bare_sum;
    to->bare_squares += from->bare_squares;
}

/* What is seen along some faces of some blocks, as a share of the largest, if it is certain; otherwise 0. */
static double seen_along(const rim *r, int64_t first, int64_t blocks, int faces)
{
    const double error = sqrt(r->residual / r->meeting), width = fmax(1, width_of(r->problem));
    const double least = blocks < r->blocks ? ONE_BLOCK : CERTAIN;
    face f = {0};
    for (int64_t k = first; k < first + blocks; k++)
        for (int i = 0; i < FACES; i++)
            if (faces >> i & 1)
                add_face(&f, &r->faces[k][i]);
    const bool certain = f.rays >= LEAST && f.sum > least * error * sqrt(f.squares) &&
                         f.bare_sum > LIKELY * error * sqrt(f.bare_squares),
               clear = f.sum > CLEAR * width * width * r->largest * f.weights;
    return certain && clear ? f.sum / f.weights / r->largest : 0;
}

static double most_seen(const rim *r)
{
    static const int together[] = {1, 2, 4, 8, 3, 12, 15}; /* each face, opposite ones, and all */
    double most = 0;
    for (size_t i = 0; i < sizeof together / sizeof *together && r->meeting > 0; i++) {
        most = fmax(most, seen_along(r, 0, r->blocks, together[i]));
        for (int64_t k = 0; k < r->blocks; k++)
            most = fmax(most, seen_along(r, k, 1, together[i]));
    }
    return most;
}

tess_status tess_scan_judge_rim(const tess_problem *p, tess_workspace *w, double *share, tess_error *error)
{
    rim r = {.problem = p,
             .half = {0.5 * (double)(p->width + 2 * p->margin[1]),
                      0.5 * (double)(p->height + 2 * p->margin[0]),
                      0.5 * (double)(p->depth + 2 * p->margin_depth)},
             .blocks = tess_max_i64(1, tess_min_i64(MOST_BLOCKS, p->rows / ROWS))};
    tess_status status = TESS_OK;
    *share = 0;
    r.rows = p->rows / r.blocks;
    r.sum = tess_small_alloc((size_t)(3 * all_of(&r)), sizeof *r.sum);
    if (r.sum) {
        r.mean = r.sum + all_of(&r);
        r.sorted = r.mean + all_of(&r);
    } else {
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for the rim of the views");
    }
    status = tess_share_agree(p->share, status, error);
    if (status == TESS_OK)
        status = look(&r, w, error);
    if (status == TESS_OK)
        *share = most_seen(&r);
    tess_small_free(r.sum);
    return status;
}

void tess_scan_rim_note(const tess_problem *p, double share, const tess_common *common)
{
    tess_note(
        common, TESS_NOTE_WARNING,
        "%s: rays along the sides of \"volume\" see more than the result holds, by %.1f %% of the largest: "
        "the object reaches out of it, which disturbs the result, or the detector blurs its faces; give "
        "a larger one, such as \"volume\": [%lld, %lld, %lld]",
        p->measurement, 100 * share, (long long)(p->depth + 2 * p->margin_depth),
        (long long)(p->height + 2 * p->margin[0] + MORE), (long long)(p->width + 2 * p->margin[1] + MORE));
}
