#include "job/reconstruct/run/workspace.h"

#include <math.h>

#include "base/checked.h"

enum { ALIGN = 64 };

static void carve(char *at, size_t *used, size_t bytes, bool wanted, void *out)
{
    if (!wanted)
        return;
    if (at)
        *(void **)out = at + *used;
    *used += tess_align_size(bytes, ALIGN);
}

/* Places the host's block at `at`; with NULL it only returns its size. */
static size_t carve_host(const tess_layout *layout, char *at, tess_host_part *host)
{
    const size_t image = (size_t)layout->image_values * sizeof(float),
                 above = (size_t)layout->above_values * sizeof(float);
    size_t used = 0;
    carve(at, &used, above + image, layout->has_truth, &host->truth);
    if (host->truth)
        host->truth += layout->above_values;
    carve(at, &used, above, layout->has_truth && above, &host->above);
    carve(at, &used, image, layout->is_shown, &host->shown);
    carve(at, &used, TESS_PIECE * sizeof(float), true, &host->piece);
    for (int i = 0; i < 2; i++)
        carve(at, &used, (size_t)layout->row_values * sizeof(float), true, &host->rows[i]);
    carve(at, &used, layout->line_bytes, layout->has_truth, &host->lines);
    carve(at, &used, (size_t)layout->ring_values * sizeof(double), layout->ring_values > 0, &host->rings);
    carve(at, &used, (size_t)layout->start_values * sizeof(float), layout->start_values > 0, &host->start);
    return used;
}

size_t tess_layout_host_bytes(const tess_layout *layout)
{
    return carve_host(layout, NULL, &(tess_host_part){0});
}

/* Whether making measurements needs separate scratch; otherwise it uses that of the data term. */
static bool own_scratch(const tess_operator *op)
{
    return tess_data_term_absorbed(op) && op->step_scratch_bytes < op->scratch_bytes;
}

size_t tess_layout_measurement_bytes(const tess_operator *op)
{
    return tess_vector_bytes(&op->measurement) + (own_scratch(op) ? op->scratch_bytes : 0);
}

static tess_status take(tess_workspace *w, tess_block *block, size_t bytes, tess_error *error)
{
    tess_device *device = w->device;
    return w->layout.hosted ? device->memory->host_alloc(device, block, bytes, error)
                            : device->memory->alloc(device, block, TESS_MEM_WORKSPACE, bytes, error);
}

static void drop(tess_workspace *w, tess_block *block)
{
    tess_device *device = w->device;
    if (w->layout.hosted)
        device->memory->host_free(device, block);
    else
        device->memory->free(device, block);
}

tess_status tess_workspace_take(tess_workspace *w, tess_error *error)
{
    tess_device *device = w->device;
    const tess_layout *layout = &w->layout;
    const size_t vector = tess_vector_bytes(&w->op->image), images = (size_t)layout->vectors * vector;
    if (tess_share_many(w->op->share))
        TESS_TRY(tess_dist_exchange_create(w->engine->dist, 2, &w->exchange, error));
    TESS_TRY(
        tess_block_alloc(w->engine->memory, &w->io, TESS_MEM_HOST, tess_layout_host_bytes(layout), error));
    (void)carve_host(layout, w->io.data, &w->host);
    TESS_TRY(take(w, &w->solver, images + layout->residual_bytes, error));
    for (int i = 0; i < layout->vectors; i++)
        w->vectors[i] = (char *)w->solver.data + (size_t)i * vector;
    TESS_TRY(take(w, &w->measurement, tess_layout_measurement_bytes(w->op), error));
    TESS_TRY(device->memory->alloc(device, &w->work, TESS_MEM_WORKSPACE, layout->term_bytes, error));
    TESS_TRY(tess_data_term_open(&w->term, w->op, w->measurement.data, (char *)w->solver.data + images,
                                 w->work.data, error));
    w->scratch = own_scratch(w->op) ? (char *)w->measurement.data + tess_vector_bytes(&w->op->measurement)
                                    : w->term.scratch;
    return TESS_OK;
}

void tess_workspace_drop_measurement(tess_workspace *w)
{
    drop(w, &w->measurement);
    w->term.measurement = NULL;
}

void tess_workspace_release(tess_workspace *w)
{
    tess_data_term_close(&w->term);
    if (w->device) {
        drop(w, &w->measurement);
        drop(w, &w->solver);
        w->device->memory->free(w->device, &w->work);
    }
    tess_block_free(&w->io);
    tess_dist_exchange_destroy(w->exchange);
    w->exchange = NULL;
}

void tess_workspace_close(tess_workspace *w)
{
    tess_workspace_release(w);
    tess_operator_destroy(w->op);
    w->op = NULL;
}

int64_t tess_workspace_values(const tess_tensor *t)
{
    return t->n * t->d * t->h * t->w * t->c;
}

int64_t tess_workspace_pixels(const tess_workspace *w)
{
    const tess_tensor *image = &w->op->image;
    return image->d * image->h * image->w;
}

int64_t tess_workspace_all_values(const tess_workspace *w)
{
    const tess_share *share = w->op->share;
    const int64_t own = tess_workspace_values(&w->op->image);
    return tess_share_many(share) ? own / tess_share_rows(share, 0) * share->from[share->dist->size] : own;
}

tess_status tess_workspace_pieces(tess_workspace *w, void *vector, int64_t count, bool back, tess_piece_fn fn,
                                  void *user, tess_error *error)
{
    tess_device *device = w->device;
    for (int64_t at = 0; at < count; at += TESS_PIECE) {
        const int64_t some = tess_min_i64(TESS_PIECE, count - at);
        const size_t bytes = (size_t)some * sizeof(float);
        device->memory->copy(device, w->host.piece, (float *)vector + at, bytes, NULL);
        TESS_TRY(device->streams->sync(device, NULL, error));
        fn(user, at, some, w->host.piece);
        if (!back)
            continue;
        device->memory->copy(device, (float *)vector + at, w->host.piece, bytes, NULL);
        TESS_TRY(device->streams->sync(device, NULL, error));
    }
    return TESS_OK;
}

static void look(void *user, int64_t first, int64_t count, float *values)
{
    (void)first;
    tess_extremes *e = user;
    for (int64_t i = 0; i < count; i++) {
        const double value = (double)values[i];
        e->low = fmin(e->low, value);
        e->high = fmax(e->high, value);
        *(value < 0 ? &e->negative : &e->positive) += fabs(value);
        e->bad += !isfinite(value);
        e->outside += value < -0.2 || value > 1.5;
    }
    e->count += count;
}

tess_status tess_workspace_extremes(tess_workspace *w, void *vector, int64_t count, tess_extremes *extremes,
                                    tess_error *error)
{
    tess_share *share = w->op->share;
    *extremes = (tess_extremes){.low = INFINITY, .high = -INFINITY};
    TESS_TRY(
        tess_share_keep(share, tess_workspace_pieces(w, vector, count, false, look, extremes, error), error));
    double counts[] = {(double)extremes->count, (double)extremes->bad, (double)extremes->outside};
    double *const added[] = {&extremes->negative, &extremes->positive, &counts[0], &counts[1], &counts[2]};
    for (int i = 0; i < 5; i++)
        TESS_TRY(tess_share_add(share, TESS_SHARE_SUM, added[i], error));
    TESS_TRY(tess_share_add(share, TESS_SHARE_LEAST, &extremes->low, error));
    TESS_TRY(tess_share_add(share, TESS_SHARE_MOST, &extremes->high, error));
    extremes->count = (int64_t)counts[0];
    extremes->bad = (int64_t)counts[1];
    extremes->outside = (int64_t)counts[2];
    return TESS_OK;
}
