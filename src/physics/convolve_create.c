/* Creates a stack of convolutions. As for blurs, sizes are computed first. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "physics/convolve_impl.h"

enum { ALIGNMENT = 256, LONGEST = 1 << 20 };

int64_t tess_convolve_side(int64_t seen, int64_t reach)
{
    static const int factors[] = {2, 3, 5, 7};
    for (int64_t side = seen + 2 * reach;; side++) {
        int64_t rest = side;
        for (int i = 0; i < 4; i++)
            while (rest % factors[i] == 0)
                rest /= factors[i];
        if (rest == 1)
            return side;
    }
}

/* Rows that the kernels reach up or down. */
static int64_t reach_of(const tess_convolve_settings *s)
{
    int64_t reach = 0;
    for (int64_t i = 0; i < s->count; i++)
        reach = tess_max_i64(reach, tess_kernel_reach_rows(&s->kernels[i]));
    return reach;
}

bool tess_convolve_can_halo(const tess_convolve_settings *s)
{
    return s->seen_height > 0 && 2 * reach_of(s) + 1 <= s->height;
}

/* Parts of an image may be empty, and without halos ranks transform with `waves`. */
static bool runs(const tess_convolve *v, const tess_op *op)
{
    return op->in[0].h > 0 && op->in[0].w > 0 &&
           !(tess_share_many(v->op.share) && !v->halo && op->kind == TESS_OP_FFT);
}

/* Aligned bytes. */
typedef struct sizes {
    size_t waves, response, image, power, mask, factor; /* factor: a rank's columns of a kernel's spectrum */
    size_t workspace, filter;                           /* of all ops; of the filter */
} sizes;

/* Ranks with halos use the scratch in two ways, one after the other. */
static void lay_out_scratch(tess_convolve *v, const sizes *s)
{
    const size_t one = v->kernel_waves.scratch_bytes, colours = v->waves.scratch_bytes,
                 columns = one > colours ? one : colours;
    size_t rows = 0;
    if (v->halo && tess_tensor_bytes(&v->overlap.rows, &rows)) /* less than its spectrum */
        rows = tess_align_size(rows, ALIGNMENT);
    v->workspace_at = v->halo ? rows : columns;
    v->response_at = v->workspace_at + s->workspace;
    v->waves_at[0] = v->response_at + s->response;
    v->waves_at[1] = tess_share_many(v->op.share) && !v->halo ? 0 : v->waves_at[0] + s->waves;
    v->waves_at[2] = (v->waves_at[1] ? v->waves_at[1] : v->waves_at[0]) + s->waves;
    v->image_at = v->waves_at[2] + s->waves;
    v->op.scratch_bytes = v->image_at + s->image;
    v->whole.workspace_at = columns;
    v->whole.response_at = columns + s->workspace;
    v->whole.image_at = v->whole.response_at + s->factor;
    const size_t whole = v->whole.image_at + s->image;
    if (v->halo && whole > v->op.scratch_bytes)
        v->op.scratch_bytes = whole;
    v->op.step_scratch_bytes = v->margins ? v->op.scratch_bytes : v->workspace_at + s->filter;
}

static bool bytes_of(const tess_tensor *t, size_t *bytes)
{
    const bool fits = tess_tensor_bytes(t, bytes);
    *bytes = fits ? tess_align_size(*bytes, ALIGNMENT) : 0;
    return fits;
}

/* Computes the layout of the memory and its size. */
static tess_status lay_out(tess_convolve *v, const bool *masked, const tess_op ops[CONVOLVE_STEPS],
                           tess_error *error)
{
    tess_device *device = v->op.device;
    const tess_tensor *m = &v->op.measurement, seen = tess_tensor_2d(TESS_F32, 1, m->h, m->w, m->c);
    sizes s = {0};
    size_t all, plans = 0;
    if (!bytes_of(&v->op.measurement, &all) || !bytes_of(&v->op.image, &s.image) ||
        !bytes_of(&seen, &s.mask) || !bytes_of(&ops[CONVOLVE_TRANSFORM].out[0], &s.waves) ||
        !bytes_of(&ops[CONVOLVE_KERNEL_SPECTRUM].out[0], &s.response) ||
        !bytes_of(&ops[CONVOLVE_SQUARE].out[0], &s.factor) ||
        !bytes_of(&ops[CONVOLVE_KEEP_POWER].out[0], &s.power))
        return tess_fail(error, TESS_OVER_LIMIT, "%lld blurs of %lldx%lld pixels are too many",
                         (long long)v->op.measurement.n, (long long)v->op.image.h, (long long)v->op.image.w);
    for (int i = 0; i < CONVOLVE_STEPS; i++) {
        tess_op_needs needs;
        if (!runs(v, &ops[i]))
            continue;
        TESS_TRY(device->ops->query(device, &ops[i], &needs, error));
        const size_t workspace = tess_align_size(needs.workspace, ALIGNMENT);
        s.workspace = workspace > s.workspace ? workspace : s.workspace;
        s.filter = i == CONVOLVE_FILTER ? workspace : s.filter;
        plans += needs.held;
    }
    lay_out_scratch(v, &s);
    v->power_at = tess_align_size(tess_kernels_bytes(&v->kernels), ALIGNMENT);
    v->data_at = v->power_at + s.power;
    v->masks_at = v->held_bytes = v->data_at + (v->margins ? s.image : s.waves);
    v->mask_bytes = s.mask;
    for (int64_t i = 0; masked && i < m->n; i++)
        v->held_bytes += masked[i] ? s.mask : 0;
    v->op.held_bytes = device->memory->granted(device, v->held_bytes) + plans + v->waves.held_bytes +
                       v->kernel_waves.held_bytes;
    v->op.making_bytes = tess_block_granted(tess_kernels_making_bytes(&v->kernels));
    return TESS_OK;
}

static tess_status check(const tess_convolve_settings *s, tess_error *error)
{
    if (s->height < 1 || s->width < 1 || s->channels < 1 || s->count < 1)
        return tess_fail(error, TESS_BAD_OPTION, "a blur needs an image and at least one kernel");
    if (s->height > LONGEST || s->width > LONGEST)
        return tess_fail(error, TESS_BAD_OPTION,
                         "%lldx%lld pixels, margins included, are too many; a side has at most %d",
                         (long long)s->height, (long long)s->width, (int)LONGEST);
    const bool whole =
                   s->seen_height == 0 && s->seen_width == 0 && s->margin_rows == 0 && s->margin_columns == 0,
               inside = s->seen_height > 0 && s->seen_width > 0 && s->margin_rows >= 0 &&
                        s->margin_columns >= 0 && s->margin_rows <= s->height - s->seen_height &&
                        s->margin_columns <= s->width - s->seen_width;
    if (!whole && !inside)
        return tess_fail(error, TESS_BAD_OPTION,
                         "%lldx%lld pixels behind margins of %lld and %lld do not lie in %lldx%lld",
                         (long long)s->seen_height, (long long)s->seen_width, (long long)s->margin_rows,
                         (long long)s->margin_columns, (long long)s->height, (long long)s->width);
    for (int64_t i = 0; i < s->count; i++)
        TESS_TRY(tess_kernel_check(&s->kernels[i], i, error));
    if (s->masked && whole)
        return tess_fail(error, TESS_BAD_OPTION, "blurs have masks only if the image has margins");
    if (s->halo && !tess_convolve_can_halo(s))
        return tess_fail(error, TESS_BAD_OPTION,
                         "ranks blur strips beside their neighbours only if the image has margins and is "
                         "higher than the kernels");
    return TESS_OK;
}

/* How ranks blur: where the kernels are placed, and what is exchanged. */
static tess_status sketch_ranks(tess_convolve *v, const tess_convolve_settings *s, tess_error *error)
{
    tess_device *device = v->op.device;
    const int64_t first = tess_share_first(s->share), rows = tess_share_rows(s->share, s->height),
                  reach = reach_of(s), below = s->height - s->margin_rows - s->seen_height,
                  height = tess_convolve_side(tess_overlap_height(s->share, s->height, reach), 0);
    TESS_TRY(tess_waves_lay_out(&v->waves, device, s->share, s->width, s->channels, error));
    TESS_TRY(tess_waves_lay_out(&v->kernel_waves, device, s->share, s->width, 1, error));
    if (!v->halo) {
        tess_kernels_take_rows(&v->kernels, first, rows);
        return TESS_OK;
    }
    v->whole_kernels = v->kernels;
    tess_kernels_take_rows(&v->whole_kernels, first, rows);
    tess_kernels_lay_out(&v->kernels, device, height, s->width, s->kernels, s->count);
    tess_overlap_lay_out(&v->overlap, s->share, s->height, reach,
                         tess_tensor_2d(TESS_F32, 1, height, s->width, s->channels));
    /* beside margins as wide as the kernels' reach no measured row sees the other edge */
    v->overlap.around = s->margin_rows < reach || below < reach;
    const double pixels = (double)height * (double)s->width,
                 transforms = (double)(s->count * (s->channels + 1) + s->channels);
    v->op.forward_flops = transforms * 2.5 * pixels * log2(pixels + 1);
    v->op.forward_bytes = transforms * 8 * sizeof(float) * pixels;
    return TESS_OK;
}

static tess_status sketch(tess_convolve *v, tess_device *device, const tess_convolve_settings *s,
                          tess_op ops[CONVOLVE_STEPS], tess_error *error)
{
    const bool margins = s->seen_height > 0;
    const int64_t first = tess_share_first(s->share), rows = tess_share_rows(s->share, s->height),
                  seen_first = tess_max_i64(first, s->margin_rows),
                  seen_height = margins ? s->seen_height : s->height,
                  seen_end = tess_min_i64(first + rows, s->margin_rows + seen_height);
    const double pixels = (double)s->height * (double)s->width,
                 transforms =
                     (double)rows / (double)s->height * (double)(s->count * (s->channels + 1) + s->channels);
    double norm = 0;
    for (int64_t i = 0; i < s->count; i++)
        norm += tess_kernel_gain(&s->kernels[i]) * tess_kernel_gain(&s->kernels[i]);
    /* an upper bound; exact if no kernel has negative values */
    v->op = (tess_operator){.table = margins ? &tess_convolve_margins : &tess_convolve_circular,
                            .device = device,
                            .name = "blur",
                            .image = tess_tensor_2d(TESS_F32, 1, rows, s->width, s->channels),
                            .measurement =
                                tess_tensor_2d(TESS_F32, s->count, tess_max_i64(seen_end - seen_first, 0),
                                               margins ? s->seen_width : s->width, s->channels),
                            .share = s->share,
                            .image_first = first * s->width * s->channels,
                            .forward_flops = transforms * 2.5 * pixels * log2(pixels + 1),
                            .forward_bytes = transforms * 8 * sizeof(float) * pixels,
                            .norm_squared = norm};
    v->margin_rows = tess_min_i64(seen_first - first, rows);
    tess_kernels_lay_out(&v->kernels, device, s->height, s->width, s->kernels, s->count);
    v->halo = s->halo && tess_share_many(s->share);
    if (tess_share_many(s->share))
        TESS_TRY(sketch_ranks(v, s, error));
    tess_convolve_describe(v, s, ops);
    return lay_out(v, s->masked, ops, error);
}

static tess_status make(tess_convolve *v, const tess_blur_kernel *list, const bool *masked,
                        const tess_op ops[CONVOLVE_STEPS], tess_error *error)
{
    tess_device *device = v->op.device;
    const size_t count = (size_t)v->op.measurement.n;
    if (masked && !(v->masked = tess_small_alloc(count, sizeof *masked)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the masks of %zu blurs", count);
    if (masked)
        memcpy(v->masked, masked, count * sizeof *masked);
    for (int i = 0; i < CONVOLVE_STEPS; i++)
        if (runs(v, &ops[i]))
            TESS_TRY(device->ops->prepare(device, &ops[i], &v->step[i], error));
    if (tess_share_many(v->op.share)) {
        TESS_TRY(tess_waves_open(&v->waves, error));
        TESS_TRY(tess_waves_open(&v->kernel_waves, error));
    }
    TESS_TRY(device->memory->alloc(device, &v->held, TESS_MEM_WORKSPACE, v->held_bytes, error));
    if (v->halo) { /* both have the same values: no kernel is folded */
        TESS_TRY(tess_overlap_open(&v->overlap, error));
        TESS_TRY(tess_kernels_open(&v->whole_kernels, list, v->held.data, error));
    }
    return tess_kernels_open(&v->kernels, list, v->held.data, error);
}

tess_status tess_convolve_sketch(tess_device *device, const tess_convolve_settings *s, tess_operator *out,
                                 tess_error *error)
{
    TESS_TRY(check(s, error));
    tess_convolve v = {0};
    tess_op ops[CONVOLVE_STEPS];
    const tess_status status = sketch(&v, device, s, ops, error);
    *out = v.op;
    return status;
}

tess_status tess_convolve_create(tess_device *device, const tess_convolve_settings *s, tess_operator **out,
                                 tess_error *error)
{
    *out = NULL;
    TESS_TRY(check(s, error));
    tess_convolve *v = tess_small_alloc(1, sizeof *v);
    if (!v)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a blur");
    tess_op ops[CONVOLVE_STEPS];
    tess_status status = sketch(v, device, s, ops, error);
    if (status == TESS_OK)
        status = make(v, s->kernels, s->masked, ops, error);
    if (status == TESS_OK)
        *out = &v->op;
    else
        tess_operator_destroy(&v->op);
    return status;
}
