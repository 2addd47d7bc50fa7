#include "physics/blur_impl.h"

static tess_blur *blur_of(tess_operator *op)
{
    return (tess_blur *)op;
}

/* Pointers into the scratch memory. */
typedef struct parts {
    void *workspace, *response, *real, *image;
} parts;

static parts parts_of(const tess_blur *b, void *scratch)
{
    char *at = scratch;
    return (parts){at, at + b->response_at, at + b->real_at, at + b->image_at};
}

static void run(const tess_blur *b, int step, const tess_op_buffers *buffers, tess_stream *stream)
{
    b->op.device->ops->run(b->op.device, b->step[step], buffers, stream);
}

/* Computes H_i in p->real; p->image holds the image of the kernel temporarily. */
static void make_response(const tess_blur *b, int64_t i, const parts *p, tess_stream *stream)
{
    const void *response = p->response;
    tess_kernels_place(&b->kernels, b->held.data, i, p->image, stream);
    if (tess_share_many(b->op.share))
        response = tess_waves_there(&b->kernel_waves, p->image, p->workspace, stream);
    else
        run(b, BLUR_KERNEL_SPECTRUM,
            &(tess_op_buffers){.in = {p->image}, .out = {p->response}, .workspace = p->workspace}, stream);
    run(b, BLUR_KEEP_REAL, &(tess_op_buffers){.in = {response}, .out = {p->real}}, stream);
}

/* `in`: the image, S, B; see tess_op_filter. */
static void filter(const tess_blur *b, const void *const in[3], const double factors[TESS_FILTER_FACTORS],
                   void *out, void *workspace, tess_stream *stream)
{
    tess_op_buffers buffers = {
        .in = {in[0], in[1], in[2]}, .out = {out}, .workspace = workspace, .factors = factors};
    if (!tess_share_many(b->op.share)) {
        run(b, BLUR_FILTER, &buffers, stream);
        return;
    }
    buffers.in[0] = buffers.out[0] = tess_waves_there(&b->waves, in[0], workspace, stream);
    run(b, BLUR_FILTER, &buffers, stream);
    tess_waves_back(&b->waves, workspace, out, stream);
}

static void transform(const tess_blur *b, const void *image, void *spectrum, void *workspace,
                      tess_stream *stream)
{
    size_t bytes = 0;
    if (!tess_share_many(b->op.share)) {
        run(b, BLUR_TRANSFORM, &(tess_op_buffers){.in = {image}, .out = {spectrum}, .workspace = workspace},
            stream);
        return;
    }
    const void *waves = tess_waves_there(&b->waves, image, workspace, stream);
    if (tess_tensor_bytes(&b->waves.columns, &bytes)) /* it did when they were laid out */
        b->op.device->memory->copy(b->op.device, spectrum, waves, bytes, stream);
}

/* Applies A_i, which is its own transpose. */
static void apply(const tess_blur *b, const parts *p, const void *in, void *out, tess_stream *stream)
{
    static const double factors[TESS_FILTER_FACTORS] = {0, 1, 0, 1, 0};
    filter(b, (const void *const[]){in, p->real, NULL}, factors, out, p->workspace, stream);
}

static int64_t image_floats(const tess_operator *op)
{
    return op->image.stride_n;
}

static void blur_forward(tess_operator *op, const void *image, void *measurement, void *scratch,
                         tess_stream *stream)
{
    const tess_blur *b = blur_of(op);
    const parts p = parts_of(b, scratch);
    for (int64_t i = 0; i < op->measurement.n; i++) {
        make_response(b, i, &p, stream);
        apply(b, &p, image, (float *)measurement + i * image_floats(op), stream);
    }
}

/* Computes sum A_i y_i in the image `sum`; p->real holds H_i when `each`, if not NULL, is called. */
static void correlate(const tess_blur *b, const void *measurement, void *sum, const parts *p,
                      void (*each)(const tess_blur *, int64_t, const parts *, tess_stream *),
                      tess_stream *stream)
{
    for (int64_t i = 0; i < b->op.measurement.n; i++) {
        make_response(b, i, p, stream);
        apply(b, p, (const float *)measurement + i * image_floats(&b->op), i ? p->image : sum, stream);
        if (i)
            run(b, BLUR_ADD, &(tess_op_buffers){.in = {sum, p->image}, .out = {sum}}, stream);
        if (each)
            each(b, i, p, stream);
    }
}

static void blur_adjoint(tess_operator *op, const void *measurement, void *image, void *scratch,
                         tess_stream *stream)
{
    const parts p = parts_of(blur_of(op), scratch);
    correlate(blur_of(op), measurement, image, &p, NULL, stream);
}

static void add_power(const tess_blur *b, int64_t i, const parts *p, tess_stream *stream)
{
    void *power = (char *)b->held.data + b->power_at;
    run(b, BLUR_SQUARE, &(tess_op_buffers){.in = {p->real, p->real}, .out = {p->real}}, stream);
    run(b, i ? BLUR_ADD_SQUARE : BLUR_KEEP_SQUARE, &(tess_op_buffers){.in = {p->real, power}, .out = {power}},
        stream);
}

/* B's memory first holds the sum as an image. */
static void blur_absorb(tess_operator *op, const void *measurement, void *scratch, tess_stream *stream)
{
    const tess_blur *b = blur_of(op);
    const parts p = parts_of(b, scratch);
    void *data = (char *)b->held.data + b->data_at;
    correlate(b, measurement, data, &p, add_power, stream);
    run(b, BLUR_COPY, &(tess_op_buffers){.in = {data}, .out = {p.image}}, stream);
    transform(b, p.image, data, p.workspace, stream);
}

static void blur_step(tess_operator *op, const tess_normal_step *s, const void *image, void *out,
                      void *scratch, tess_stream *stream)
{
    const tess_blur *b = blur_of(op);
    const char *held = b->held.data;
    const double factors[TESS_FILTER_FACTORS] = {s->a, s->b, s->c, s->d, s->e};
    filter(b, (const void *const[]){image, held + b->power_at, held + b->data_at}, factors, out, scratch,
           stream);
}

static float *blur_kernel(tess_operator *op, int64_t i, int64_t *floats)
{
    return tess_kernels_at(&blur_of(op)->kernels, blur_of(op)->held.data, i, floats);
}

static void blur_destroy(tess_operator *op)
{
    tess_blur *b = blur_of(op);
    for (int i = 0; i < BLUR_STEPS; i++)
        if (b->step[i])
            op->device->ops->release(op->device, b->step[i]);
    tess_kernels_close(&b->kernels);
    tess_waves_close(&b->waves);
    tess_waves_close(&b->kernel_waves);
    op->device->memory->free(op->device, &b->held);
    tess_small_free(b);
}

const tess_operator_table tess_blur_table = {.destroy = blur_destroy,
                                             .forward = blur_forward,
                                             .adjoint = blur_adjoint,
                                             .absorb = blur_absorb,
                                             .kernel = blur_kernel,
                                             .step = blur_step};
