/* Estimates the noise of a scan (tensor/noise_scan.h). The default, 0.01 of the range, is right for a scan almost
 * without noise; with more noise than that, the solver would fit the noise and end below a filtered backprojection. */
#include "job/reconstruct/look/scan.h"

#include <string.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "tensor/noise_scan.h"

enum {
    MOST_COLUMNS = TESS_PIECE / 3, /* of three views, in the piece on the host */
    MOST_SAMPLES = 1 << 22,        /* of a larger scan some parts are left out, evenly */
    MOST_WAVES = 1 << 18, /* samples of one row whose spectrum is looked at, in the middle of the scan */
    WAVE_COLUMNS = 4096,  /* of these */
    WAVE_ROWS = 8,        /* of the detector */
    ALIGN = 64
};

bool tess_problem_noise_unknown(const tess_problem *p, const tess_recipe *recipe)
{
    return !p->synthetic && recipe->noise_from == TESS_NOISE_FROM_DEFAULT &&
           (p->physics == TESS_PHYSICS_BLUR || !p->as_published);
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* `count` values of a view, wherever it is. Collective: all ranks get them. */
static tess_status take_values(const tess_problem *p, tess_workspace *w, int64_t view, int64_t first,
                               int64_t count, float *to, tess_error *error)
{
    tess_device *device = w->device;
    const bool many = tess_share_many(p->share);
    const int64_t own = view - tess_problem_first_view(p);
    int owner = 0;
    if (own >= 0 && own < tess_problem_own_views(p)) {
        device->memory->copy(device, to,
                             (const float *)w->measurement.data + own * p->rows * p->columns + first,
                             (size_t)count * sizeof *to, NULL);
        TESS_TRY(tess_share_keep(p->share, device->streams->sync(device, NULL, error), error));
    }
    while (many && view >= tess_problem_view(p, owner + 1))
        owner++;
    return many ? tess_dist_broadcast(p->share->dist, owner, to, (size_t)count * sizeof *to, error) : TESS_OK;
}

/* Part `part` of detector row `row` of a view, and of the views before and after it if there are any. */
static tess_status add_part(const tess_problem *p, tess_workspace *w, int64_t view, int64_t row, int64_t part,
                            tess_scan_noise *noise, tess_error *error)
{
    const int64_t first = part * MOST_COLUMNS, count = tess_min_i64(MOST_COLUMNS, p->columns - first);
    const bool alone = p->count < 3;
    float *const to = w->host.piece;
    for (int64_t k = alone ? 1 : 0; k < (alone ? 2 : 3); k++)
        TESS_TRY(take_values(p, w, view + k - 1, row * p->columns + first, count, to + k * count, error));
    tess_scan_noise_row(noise, alone ? NULL : to, to + count, alone ? NULL : to + 2 * count, count);
    return TESS_OK;
}

static tess_status add_all(const tess_problem *p, tess_workspace *w, tess_scan_noise *noise,
                           tess_error *error)
{
    const int64_t parts = tess_ceil_div(p->columns, MOST_COLUMNS), a_view = p->rows * parts,
                  edge = p->count < 3 ? 0 : 1, views = p->count - 2 * edge,
                  all = tess_ceil_div(views * p->rows * p->columns, MOST_SAMPLES);
    int64_t step = tess_max_i64(all, 1);
    while (step > 1 && common_divisor(step, a_view) > 1) /* not the same place of each view */
        step++;
    for (int64_t at = 0; at < views * a_view; at += step) {
        if (at % a_view < step)
            TESS_TRY(tess_share_agree(p->share, tess_stop_check(&w->engine->stop, error), error));
        TESS_TRY(add_part(p, w, edge + at / a_view, at % a_view / parts, at % a_view % parts, noise, error));
    }
    return TESS_OK;
}

/* What of each row of the detector has its spectrum looked at, and the bytes for one spectrum; 0: it is too small. */
typedef struct extract {
    int64_t views, columns;
    size_t bytes;
} extract;

static extract extract_of(const tess_problem *p)
{
    const int64_t columns = tess_min_i64(p->columns, WAVE_COLUMNS),
                  views = tess_min_i64(p->count, MOST_WAVES / columns);
    return (extract){views, columns, tess_scan_waves_bytes(views, columns)};
}

/* The estimate lies before the spectrum, and the values of one row behind it. */
static size_t before_spectrum(void)
{
    return tess_align_size(sizeof(tess_scan_noise), ALIGN);
}

size_t tess_problem_scan_noise_bytes(const tess_problem *p, const tess_recipe *recipe)
{
    if (p->physics == TESS_PHYSICS_BLUR || !tess_problem_noise_unknown(p, recipe))
        return 0;
    const extract e = extract_of(p);
    return before_spectrum() + e.bytes + (e.bytes ? (size_t)(e.views * e.columns) * sizeof(float) : 0);
}

static tess_status look_at_waves(const tess_problem *p, tess_workspace *w, char *spectrum,
                                 tess_scan_noise *noise, tess_error *error)
{
    const extract e = extract_of(p);
    const int64_t rows = e.bytes ? tess_min_i64(p->rows, WAVE_ROWS) : 0;
    float *values = (float *)(spectrum + e.bytes), *const piece = w->host.piece;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t first = (2 * i + 1) * p->rows / (2 * rows) * p->columns + (p->columns - e.columns) / 2;
        TESS_TRY(tess_share_agree(p->share, tess_stop_check(&w->engine->stop, error), error));
        for (int64_t k = 0; k < e.views; k++) {
            TESS_TRY(take_values(p, w, (p->count - e.views) / 2 + k, first, e.columns, piece, error));
            memcpy(values + k * e.columns, piece, (size_t)e.columns * sizeof *values);
        }
        tess_scan_noise_waves(noise, values, e.views, e.columns, spectrum);
    }
    return TESS_OK;
}

tess_status tess_problem_find_scan_noise(tess_problem *p, const tess_recipe *recipe, tess_workspace *w,
                                         tess_error *error)
{
    tess_extremes seen;
    tess_block block = {0};
    TESS_TRY(tess_workspace_extremes(w, w->measurement.data, tess_workspace_values(&w->op->measurement),
                                     &seen, error));
    tess_status status = tess_block_alloc(w->engine->memory, &block, TESS_MEM_HOST,
                                          tess_problem_scan_noise_bytes(p, recipe), error);
    status = tess_share_agree(p->share, status, error);
    if (status == TESS_OK) {
        tess_scan_noise *noise = block.data;
        tess_scan_noise_begin(noise, seen.high);
        status = add_all(p, w, noise, error);
        if (status == TESS_OK)
            status = look_at_waves(p, w, (char *)block.data + before_spectrum(), noise, error);
        p->noise_estimate = tess_scan_noise_end(noise, &p->noise_rough);
    }
    tess_block_free(&block);
    return status;
}

void tess_problem_use_scan_noise(const tess_problem *p, tess_recipe *recipe, const tess_common *common)
{
    if (p->noise_estimate < 0)
        return;
    if (p->noise_estimate > recipe->noise) {
        recipe->noise = p->noise_estimate;
        recipe->noise_from = TESS_NOISE_FROM_DATA;
    }
    const bool used = recipe->noise_from == TESS_NOISE_FROM_DATA;
    tess_note(common, used && p->noise_rough ? TESS_NOTE_WARNING : TESS_NOTE_DETAIL,
              "%s: noise %.4g, estimated%s", p->measurement,
              p->noise_estimate * tess_problem_measured_unit(p),
              !used            ? "; the default is above it, and is used"
              : p->noise_rough ? " roughly: so few views do not tell it from fine details; give \"noise\" "
                                 "where it is known"
                               : "");
}
