#include "physics/convolve_impl.h"

#include <math.h>

static tess_convolve *convolve_of(tess_operator *op)
{
    return (tess_convolve *)op;
}

/* Pointers into the scratch memory. */
typedef struct parts {
    void *workspace, *response, *seen, *blurred, *sum, *image, *waves, *rows;
} parts;

static parts parts_of(const tess_convolve *v, void *scratch)
{
    char *at = scratch;
    return (parts){at + v->workspace_at,
                   at + v->response_at,
                   at + v->waves_at[0],
                   at + v->waves_at[1],
                   at + v->waves_at[2],
                   at + v->image_at,
                   at,
                   at};
}

/* For what needs the spectrum of the whole image. */
static parts whole_of(const tess_convolve *v, void *scratch)
{
    char *at = scratch;
    return (parts){.workspace = at + v->whole.workspace_at,
                   .response = at + v->whole.response_at,
                   .image = at + v->whole.image_at,
                   .waves = at};
}

static void run(const tess_convolve *v, int step, const parts *p, const void *in, void *out, const void *with,
                tess_stream *stream)
{
    const tess_op_buffers buffers = {.in = {in, with}, .out = {out}, .workspace = p->workspace};
    if (v->step[step]) /* not for nothing: none of a strip's rows may be measured */
        v->op.device->ops->run(v->op.device, v->step[step], &buffers, stream);
}

static void copy_columns(const tess_convolve *v, const tess_waves *waves, const void *from, void *to,
                         tess_stream *stream)
{
    size_t bytes;
    if (from != to && tess_tensor_bytes(&waves->columns, &bytes)) /* it did when they were laid out */
        v->op.device->memory->copy(v->op.device, to, from, bytes, stream);
}

static void transform(const tess_convolve *v, const parts *p, const void *image, void *spectrum,
                      tess_stream *stream)
{
    if (v->halo) {
        tess_overlap_gather(&v->overlap, image, p->rows);
        run(v, CONVOLVE_TRANSFORM, p, p->rows, spectrum, NULL, stream);
    } else if (tess_share_many(v->op.share)) {
        copy_columns(v, &v->waves, tess_waves_there(&v->waves, image, p->waves, stream), spectrum, stream);
    } else {
        run(v, CONVOLVE_TRANSFORM, p, image, spectrum, NULL, stream);
    }
}

static void back(const tess_convolve *v, const parts *p, const void *spectrum, void *image,
                 tess_stream *stream)
{
    if (v->halo) {
        run(v, CONVOLVE_BACK, p, spectrum, p->rows, NULL, stream);
        tess_overlap_own(&v->overlap, p->rows, image);
    } else if (tess_share_many(v->op.share)) {
        copy_columns(v, &v->waves, spectrum, p->waves, stream);
        tess_waves_back(&v->waves, p->waves, image, stream);
    } else {
        run(v, CONVOLVE_BACK, p, spectrum, image, NULL, stream);
    }
}

/* Computes this rank's columns of H_i in p->response. */
static void make_columns(const tess_convolve *v, const tess_kernels *kernels, int64_t i, const parts *p,
                         tess_stream *stream)
{
    tess_kernels_place(kernels, v->held.data, i, p->image, stream);
    copy_columns(v, &v->kernel_waves, tess_waves_there(&v->kernel_waves, p->image, p->waves, stream),
                 p->response, stream);
}

/* Computes H_i in p->response; p->image, or the rows of a halo, hold the kernel's image temporarily. */
static void make_response(const tess_convolve *v, int64_t i, const parts *p, tess_stream *stream)
{
    if (tess_share_many(v->op.share) && !v->halo) {
        make_columns(v, &v->kernels, i, p, stream);
        return;
    }
    void *image = v->halo ? p->rows : p->image;
    tess_kernels_place(&v->kernels, v->held.data, i, image, stream);
    run(v, CONVOLVE_KERNEL_SPECTRUM, p, image, p->response, NULL, stream);
}

/* Blurs the image whose spectrum is p->seen into `out`. */
static void blur(const tess_convolve *v, const parts *p, void *out, tess_stream *stream)
{
    run(v, CONVOLVE_TIMES, p, p->seen, p->blurred, p->response, stream);
    back(v, p, p->blurred, out, stream);
}

/* Adds the spectrum of the transpose of blur i of `image` to p->sum. */
static void collect(const tess_convolve *v, int64_t i, const parts *p, const void *image, tess_stream *stream)
{
    transform(v, p, image, p->blurred, stream);
    run(v, CONVOLVE_TIMES_CONJUGATE, p, p->blurred, p->blurred, p->response, stream);
    if (i)
        run(v, CONVOLVE_ADD_WAVES, p, p->sum, p->sum, p->blurred, stream);
    else
        run(v, CONVOLVE_KEEP_WAVES, p, p->blurred, p->sum, NULL, stream);
}

static float *middle_of(const tess_convolve *v, void *image)
{
    return (float *)image + v->middle;
}

static float *convolve_mask(tess_operator *op, int64_t i)
{
    const tess_convolve *v = convolve_of(op);
    char *at = (char *)v->held.data + v->masks_at;
    if (!v->masked || !v->masked[i])
        return NULL;
    for (int64_t k = 0; k < i; k++)
        at += v->masked[k] ? v->mask_bytes : 0;
    return (float *)at;
}

/* Clears what blur i does not show. */
static void hide(const tess_convolve *v, int64_t i, const parts *p, tess_stream *stream)
{
    const float *mask = convolve_mask((tess_operator *)&v->op, i);
    if (mask)
        run(v, CONVOLVE_MASK, p, middle_of(v, p->image), middle_of(v, p->image), mask, stream);
}

static void convolve_forward(tess_operator *op, const void *image, void *measurement, void *scratch,
                             tess_stream *stream)
{
    const tess_convolve *v = convolve_of(op);
    const parts p = parts_of(v, scratch);
    transform(v, &p, image, p.seen, stream);
    for (int64_t i = 0; i < op->measurement.n; i++) {
        float *to = (float *)measurement + i * op->measurement.stride_n;
        make_response(v, i, &p, stream);
        blur(v, &p, p.image, stream);
        hide(v, i, &p, stream);
        run(v, CONVOLVE_CROP, &p, middle_of(v, p.image), to, NULL, stream);
    }
}

/* S = sum |H_i|^2; its terms are computed in the memory of the response. */
static void add_power(const tess_convolve *v, int64_t i, const parts *p, tess_stream *stream)
{
    void *power = (char *)v->held.data + v->power_at;
    run(v, CONVOLVE_SQUARE, p, p->response, p->response, p->response, stream);
    run(v, i ? CONVOLVE_ADD_POWER : CONVOLVE_KEEP_POWER, p, p->response, power, power, stream);
}

/* Computes the spectrum of A^T y in p->sum and, with `power`, S. */
static void correlate(const tess_convolve *v, const void *measurement, const parts *p, bool power,
                      tess_stream *stream)
{
    for (int64_t i = 0; i < v->op.measurement.n; i++) {
        const float *from = (const float *)measurement + i * v->op.measurement.stride_n;
        make_response(v, i, p, stream);
        run(v, CONVOLVE_CLEAR, p, p->image, p->image, NULL, stream);
        run(v, CONVOLVE_PAD, p, from, middle_of(v, p->image), NULL, stream);
        hide(v, i, p, stream);
        collect(v, i, p, p->image, stream);
        if (power)
            add_power(v, i, p, stream);
    }
}

static void convolve_adjoint(tess_operator *op, const void *measurement, void *image, void *scratch,
                             tess_stream *stream)
{
    const tess_convolve *v = convolve_of(op);
    const parts p = parts_of(v, scratch);
    correlate(v, measurement, &p, false, stream);
    back(v, &p, p.sum, image, stream);
}

static void convolve_absorb(tess_operator *op, const void *measurement, void *scratch, tess_stream *stream)
{
    const tess_convolve *v = convolve_of(op);
    const parts p = parts_of(v, scratch);
    void *data = (char *)v->held.data + v->data_at;
    correlate(v, measurement, &p, !v->halo, stream);
    if (v->margins)
        back(v, &p, p.sum, data, stream);
    else
        run(v, CONVOLVE_KEEP_WAVES, &p, p.sum, data, NULL, stream);
    const parts whole = whole_of(v, scratch);
    for (int64_t i = 0; v->halo && i < op->measurement.n; i++) {
        make_columns(v, &v->whole_kernels, i, &whole, stream);
        add_power(v, i, &whole, stream);
    }
}

/* The transpose is applied to each blur's middle as soon as it is computed, so that no measurement is held. */
static void convolve_normal(tess_operator *op, bool less, const void *image, void *out, void *scratch,
                            tess_stream *stream)
{
    const tess_convolve *v = convolve_of(op);
    const parts p = parts_of(v, scratch);
    transform(v, &p, image, p.seen, stream);
    for (int64_t i = 0; i < op->measurement.n; i++) {
        make_response(v, i, &p, stream);
        blur(v, &p, p.image, stream);
        for (int k = 0; k < 4; k++) {
            float *edge = (float *)p.image + v->edge_at[k];
            run(v, CONVOLVE_EDGE + k, &p, edge, edge, NULL, stream);
        }
        hide(v, i, &p, stream);
        collect(v, i, &p, p.image, stream);
    }
    back(v, &p, p.sum, out, stream);
    if (less)
        run(v, CONVOLVE_LESS, &p, out, out, (const char *)v->held.data + v->data_at, stream);
}

static void filter(const tess_convolve *v, const double *factors, const void *in, void *out, void *scratch,
                   tess_stream *stream)
{
    const char *held = v->held.data;
    tess_op_buffers buffers = {.in = {in, held + v->power_at, v->margins ? NULL : held + v->data_at},
                               .out = {out},
                               .workspace = whole_of(v, scratch).workspace,
                               .factors = factors};
    const bool many = tess_share_many(v->op.share);
    if (many)
        buffers.in[0] = buffers.out[0] = tess_waves_there(&v->waves, in, scratch, stream);
    v->op.device->ops->run(v->op.device, v->step[CONVOLVE_FILTER], &buffers, stream);
    if (many)
        tess_waves_back(&v->waves, scratch, out, stream);
}

static void convolve_step(tess_operator *op, const tess_normal_step *s, const void *image, void *out,
                          void *scratch, tess_stream *stream)
{
    const double factors[TESS_FILTER_FACTORS] = {s->a, s->b, s->c, s->d, s->e};
    filter(convolve_of(op), factors, image, out, scratch, stream);
}

/* Frequencies that no blur passes are divided by the shift alone, which may be zero. */
static void convolve_precondition(tess_operator *op, double shift, const void *in, void *out, void *scratch,
                                  tess_stream *stream)
{
    static const double least = 1e-4;
    const double factors[TESS_FILTER_FACTORS] = {1, 0, 0, fmax(shift, least * op->norm_squared), 1};
    filter(convolve_of(op), factors, in, out, scratch, stream);
}

static float *convolve_kernel(tess_operator *op, int64_t i, int64_t *floats)
{
    return tess_kernels_at(&convolve_of(op)->kernels, convolve_of(op)->held.data, i, floats);
}

static void convolve_destroy(tess_operator *op)
{
    tess_convolve *v = convolve_of(op);
    for (int i = 0; i < CONVOLVE_STEPS; i++)
        if (v->step[i])
            op->device->ops->release(op->device, v->step[i]);
    tess_kernels_close(&v->kernels);
    tess_kernels_close(&v->whole_kernels);
    tess_overlap_close(&v->overlap);
    tess_waves_close(&v->waves);
    tess_waves_close(&v->kernel_waves);
    op->device->memory->free(op->device, &v->held);
    tess_small_free(v->masked);
    tess_small_free(v);
}

const tess_operator_table tess_convolve_circular = {.destroy = convolve_destroy,
                                                    .forward = convolve_forward,
                                                    .adjoint = convolve_adjoint,
                                                    .absorb = convolve_absorb,
                                                    .kernel = convolve_kernel,
                                                    .step = convolve_step};
const tess_operator_table tess_convolve_margins = {.destroy = convolve_destroy,
                                                   .forward = convolve_forward,
                                                   .adjoint = convolve_adjoint,
                                                   .absorb = convolve_absorb,
                                                   .kernel = convolve_kernel,
                                                   .mask = convolve_mask,
                                                   .normal = convolve_normal,
                                                   .precondition = convolve_precondition};
