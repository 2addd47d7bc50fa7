#include "physics/blur_impl.h"

static tess_blur *blur_of(tess_operator *op)
{
    return (tess_blur *)op;
}

/* Where things are in a scratch. */
typedef struct parts {
    void *spectrum, *product, *response, *workspace;
} parts;

static parts parts_of(const tess_blur *b, void *scratch)
{
    char *at = scratch;
    return (parts){at, at + b->product_at, at + b->response_at, at + b->workspace_at};
}

static void run(const tess_blur *b, int step, const tess_op_buffers *buffers, tess_stream *stream)
{
    b->op.device->run(b->op.device, b->step[step], buffers, stream);
}

/* The spectrum of kernel i into p->response; the image of the kernel needs p->product for a moment. */
static void make_response(const tess_blur *b, int64_t i, const parts *p, tess_stream *stream)
{
    const float *kernel = (const float *)b->held.data + i * tess_blur_kernel_floats(b);
    float *image = p->product;
    run(b, BLUR_CLEAR, &(tess_op_buffers){.in = image, .out = image}, stream);
    for (int k = 0; k < 4; k++)
        if (b->step[BLUR_PLACE + k])
            run(b, BLUR_PLACE + k,
                &(tess_op_buffers){.in = kernel + b->pieces[k].from, .out = image + b->pieces[k].to}, stream);
    run(b, BLUR_KERNEL_SPECTRUM,
        &(tess_op_buffers){.in = image, .out = p->response, .workspace = p->workspace}, stream);
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
    run(b, BLUR_TRANSFORM, &(tess_op_buffers){.in = image, .out = p.spectrum, .workspace = p.workspace},
        stream);
    for (int64_t i = 0; i < op->measurement.n; i++) {
        float *to = (float *)measurement + i * image_floats(op);
        make_response(b, i, &p, stream);
        run(b, BLUR_MULTIPLY,
            &(tess_op_buffers){.in = p.spectrum, .out = p.product, .residual = {p.response}}, stream);
        run(b, BLUR_BACK, &(tess_op_buffers){.in = p.product, .out = to, .workspace = p.workspace}, stream);
    }
}

/* sum conj(H_i) rfft2(y_i) into `sum`; p->response holds H_i when `each`, if there, is called. */
static void correlate(const tess_blur *b, const void *measurement, void *sum, const parts *p,
                      void (*each)(const tess_blur *, int64_t, const parts *, tess_stream *),
                      tess_stream *stream)
{
    for (int64_t i = 0; i < b->op.measurement.n; i++) {
        const float *from = (const float *)measurement + i * image_floats(&b->op);
        make_response(b, i, p, stream);
        run(b, BLUR_TRANSFORM, &(tess_op_buffers){.in = from, .out = p->product, .workspace = p->workspace},
            stream);
        run(b, BLUR_MULTIPLY_CONJUGATE,
            &(tess_op_buffers){.in = p->product, .out = i ? p->product : sum, .residual = {p->response}},
            stream);
        if (i)
            run(b, BLUR_ADD, &(tess_op_buffers){.in = sum, .out = sum, .residual = {p->product}}, stream);
        if (each)
            each(b, i, p, stream);
    }
}

static void blur_adjoint(tess_operator *op, const void *measurement, void *image, void *scratch,
                         tess_stream *stream)
{
    const tess_blur *b = blur_of(op);
    const parts p = parts_of(b, scratch);
    correlate(b, measurement, p.spectrum, &p, NULL, stream);
    run(b, BLUR_BACK, &(tess_op_buffers){.in = p.spectrum, .out = image, .workspace = p.workspace}, stream);
}

static void add_power(const tess_blur *b, int64_t i, const parts *p, tess_stream *stream)
{
    void *power = (char *)b->held.data + b->power_at;
    run(b, BLUR_SQUARE, &(tess_op_buffers){.in = p->response, .out = p->response, .residual = {p->response}},
        stream);
    run(b, i ? BLUR_ADD_SQUARE : BLUR_KEEP_SQUARE,
        &(tess_op_buffers){.in = p->response, .out = power, .residual = {power}}, stream);
}

static void blur_absorb(tess_operator *op, const void *measurement, void *scratch, tess_stream *stream)
{
    const tess_blur *b = blur_of(op);
    const parts p = parts_of(b, scratch);
    correlate(b, measurement, (char *)b->held.data + b->data_at, &p, add_power, stream);
}

static void blur_gradient(tess_operator *op, const void *image, void *gradient, void *scratch,
                          tess_stream *stream)
{
    const tess_blur *b = blur_of(op);
    const parts p = parts_of(b, scratch);
    const char *held = b->held.data;
    run(b, BLUR_TRANSFORM, &(tess_op_buffers){.in = image, .out = p.spectrum, .workspace = p.workspace},
        stream);
    run(b, BLUR_NORMAL,
        &(tess_op_buffers){
            .in = p.spectrum, .out = p.spectrum, .residual = {held + b->power_at, held + b->data_at}},
        stream);
    run(b, BLUR_BACK, &(tess_op_buffers){.in = p.spectrum, .out = gradient, .workspace = p.workspace},
        stream);
}

static void blur_destroy(tess_operator *op)
{
    tess_blur *b = blur_of(op);
    for (int i = 0; i < BLUR_STEPS; i++)
        if (b->step[i])
            op->device->release(op->device, b->step[i]);
    op->device->free(op->device, &b->held);
    tess_small_free(b);
}

const tess_operator_table tess_blur_table = {.destroy = blur_destroy,
                                             .forward = blur_forward,
                                             .adjoint = blur_adjoint,
                                             .absorb = blur_absorb,
                                             .gradient = blur_gradient};
