#include "physics/kernels.h"

#include <math.h>

#include "base/checked.h"

int64_t tess_kernel_reach_rows(const tess_blur_kernel *k)
{
    return k->values ? k->height / 2 : tess_gaussian_reach(&k->gaussian);
}

int64_t tess_kernel_reach_columns(const tess_blur_kernel *k)
{
    return k->values ? k->width / 2 : tess_gaussian_reach(&k->gaussian);
}

/* Row y, counted from the centre, before the division. */
static void row_of(const tess_blur_kernel *k, int64_t y, double *row)
{
    if (!k->values) {
        tess_gaussian_row(&k->gaussian, y, row);
        return;
    }
    const double *from = k->values + (y + k->height / 2) * k->width;
    for (int64_t x = 0; x < k->width; x++)
        row[x] = from[x];
}

double tess_kernel_gain(const tess_blur_kernel *k)
{
    double sum = 0, all = 0;
    for (int64_t i = 0; k->values && i < k->height * k->width; i++) {
        sum += k->values[i];
        all += fabs(k->values[i]);
    }
    return k->values ? all / sum : 1;
}

tess_status tess_kernel_check(const tess_blur_kernel *k, int64_t number, tess_error *error)
{
    if (!k->values)
        return TESS_OK;
    if (k->height < 1 || k->width < 1 || k->height % 2 == 0 || k->width % 2 == 0)
        return tess_fail(error, TESS_BAD_INPUT,
                         "kernel %lld has %lldx%lld values; both sides must be odd, with the centre in the "
                         "middle: pad it with a row or column of zeros",
                         (long long)number, (long long)k->height, (long long)k->width);
    int64_t bad = 0;
    double sum = 0, all = 0;
    for (int64_t i = 0; i < k->height * k->width; i++) {
        bad += !isfinite(k->values[i]);
        sum += k->values[i];
        all += fabs(k->values[i]);
    }
    if (bad)
        return tess_fail(error, TESS_BAD_INPUT, "kernel %lld has %lld values that are not finite",
                         (long long)number, (long long)bad);
    if (!(sum > 1e-3 * all))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "kernel %lld sums to %g, which is %s; a blur keeps the brightness, so its sum must be above "
            "0.001 of the sum of its absolute values, %g",
            (long long)number, sum, sum > 0 ? "too little beside its negative values" : "not above zero",
            all);
    return TESS_OK;
}

static tess_kernel_side side_of(int64_t image, int64_t reach)
{
    const bool fits = 2 * reach + 1 <= image;
    return (tess_kernel_side){image, fits ? 2 * reach + 1 : image, fits ? reach : 0};
}

void tess_kernels_lay_out(tess_kernels *k, tess_device *device, int64_t height, int64_t width,
                          const tess_blur_kernel *list, int64_t count)
{
    int64_t rows = 0, columns = 0;
    for (int64_t i = 0; i < count; i++) {
        rows = tess_max_i64(rows, tess_kernel_reach_rows(&list[i]));
        columns = tess_max_i64(columns, tess_kernel_reach_columns(&list[i]));
    }
    *k = (tess_kernels){.device = device,
                        .count = count,
                        .rows = side_of(height, rows),
                        .columns = side_of(width, columns),
                        .own = height};
}

void tess_kernels_take_rows(tess_kernels *k, int64_t first, int64_t rows)
{
    k->first = first;
    k->own = rows;
}

static int64_t floats_of(const tess_kernels *k)
{
    return k->rows.length * k->columns.length;
}

size_t tess_kernels_bytes(const tess_kernels *k)
{
    return (size_t)(k->count * floats_of(k)) * sizeof(float);
}

size_t tess_kernels_making_bytes(const tess_kernels *k)
{
    return (size_t)floats_of(k) * (sizeof(double) + sizeof(float));
}

/* A quarter of the kernel: before or after its centre in each direction. An empty quarter has height or width 0. */
static tess_op quarter_of(const tess_kernels *k, int quarter, tess_kernel_piece *p)
{
    const tess_kernel_side *rows = &k->rows, *columns = &k->columns;
    const bool below = quarter & 2, right = quarter & 1;
    tess_tensor in = tess_tensor_2d(TESS_F32, 1, rows->length, columns->length, 1),
                out = tess_tensor_2d(TESS_F32, 1, rows->image, columns->image, 1);
    in.h = out.h = below ? rows->length - rows->origin : rows->origin;
    in.w = out.w = right ? columns->length - columns->origin : columns->origin;
    p->from = (below ? rows->origin : 0) * columns->length + (right ? columns->origin : 0);
    p->to = (below ? 0 : rows->image - rows->origin) * columns->image +
            (right ? 0 : columns->image - columns->origin);
    return (tess_op){.kind = TESS_OP_COMBINE,
                     .inputs = 1,
                     .outputs = 1,
                     .in = {in},
                     .out = {out},
                     .kernel = {1, 1, 1},
                     .stride = {1, 1, 1},
                     .combine = {.a = 1, .low = -INFINITY, .high = INFINITY}};
}

static int64_t folded(const tess_kernel_side *s, int64_t offset)
{
    return ((offset + s->origin) % s->image + s->image) % s->image;
}

/* `sums`: a kernel as stored. A wide Gaussian is computed twice, row by row, so that it need not be held whole. */
static void fold(const tess_kernels *k, const tess_blur_kernel *one, double *row, double *sums)
{
    const int64_t rows = tess_kernel_reach_rows(one), columns = tess_kernel_reach_columns(one);
    double sum = 0;
    for (int64_t y = -rows; y <= rows; y++) {
        row_of(one, y, row);
        for (int64_t x = 0; x <= 2 * columns; x++)
            sum += row[x];
    }
    for (int64_t i = 0; i < floats_of(k); i++)
        sums[i] = 0;
    for (int64_t y = -rows; y <= rows; y++) {
        double *to = sums + folded(&k->rows, y) * k->columns.length;
        row_of(one, y, row);
        for (int64_t x = -columns; x <= columns; x++)
            to[folded(&k->columns, x)] += row[x + columns] / sum;
    }
}

static tess_status hold(const tess_kernels *k, const tess_blur_kernel *list, const tess_block *block,
                        void *held, tess_error *error)
{
    const int64_t floats = floats_of(k);
    double *sums = block->data;
    float *values = (float *)(sums + floats);
    for (int64_t i = 0; i < k->count; i++) {
        double *row = tess_small_alloc((size_t)(2 * tess_kernel_reach_columns(&list[i]) + 1), sizeof *row);
        if (!row)
            return tess_fail(error, TESS_NO_MEMORY, "no memory for a row of a kernel");
        fold(k, &list[i], row, sums);
        tess_small_free(row);
        for (int64_t j = 0; j < floats; j++)
            values[j] = (float)sums[j];
        k->device->memory->copy(k->device, (float *)held + i * floats, values,
                                (size_t)floats * sizeof *values, NULL);
        TESS_TRY(k->device->streams->sync(k->device, NULL, error));
    }
    return TESS_OK;
}

tess_status tess_kernels_open(tess_kernels *k, const tess_blur_kernel *list, void *held, tess_error *error)
{
    tess_device *device = k->device;
    const tess_tensor image = tess_tensor_2d(TESS_F32, 1, k->own, k->columns.image, 1);
    const tess_op clear = {.kind = TESS_OP_COMBINE,
                           .inputs = 1,
                           .outputs = 1,
                           .in = {image},
                           .out = {image},
                           .kernel = {1, 1, 1},
                           .stride = {1, 1, 1},
                           .combine = {.low = -INFINITY, .high = INFINITY}};
    TESS_TRY(device->ops->prepare(device, &clear, &k->clear, error));
    for (int i = 0; i < 4; i++) {
        const tess_op place = quarter_of(k, i, &k->pieces[i]);
        if (place.in[0].h > 0 && place.in[0].w > 0 && k->own == k->rows.image)
            TESS_TRY(device->ops->prepare(device, &place, &k->place[i], error));
    }
    tess_block block = {0};
    TESS_TRY(tess_block_alloc(device->counter, &block, TESS_MEM_HOST, tess_kernels_making_bytes(k), error));
    const tess_status status = hold(k, list, &block, held, error);
    tess_block_free(&block);
    return status;
}

void tess_kernels_close(tess_kernels *k)
{
    if (k->clear)
        k->device->ops->release(k->device, k->clear);
    for (int i = 0; i < 4; i++)
        if (k->place[i])
            k->device->ops->release(k->device, k->place[i]);
    *k = (tess_kernels){0};
}

float *tess_kernels_at(const tess_kernels *k, void *held, int64_t i, int64_t *floats)
{
    *floats = floats_of(k);
    return (float *)held + i * *floats;
}

/* The rows of a kernel that lie in these rows of the image: each begins at its centre and ends before it. */
static void place_rows(const tess_kernels *k, const float *kernel, float *image, tess_stream *stream)
{
    const tess_kernel_side *rows = &k->rows, *columns = &k->columns;
    const int64_t left = columns->origin, right = columns->length - left;
    for (int64_t y = 0; y < rows->length; y++) {
        const int64_t row = (y - rows->origin + rows->image) % rows->image - k->first;
        const float *from = kernel + y * columns->length;
        float *to = image + row * columns->image;
        if (row < 0 || row >= k->own)
            continue;
        k->device->memory->copy(k->device, to, from + left, (size_t)right * sizeof *to, stream);
        k->device->memory->copy(k->device, to + columns->image - left, from, (size_t)left * sizeof *to,
                                stream);
    }
}

void tess_kernels_place(const tess_kernels *k, const void *held, int64_t i, void *image, tess_stream *stream)
{
    const float *kernel = (const float *)held + i * floats_of(k);
    k->device->ops->run(k->device, k->clear, &(tess_op_buffers){.in = {image}, .out = {image}}, stream);
    if (k->own < k->rows.image)
        place_rows(k, kernel, image, stream);
    for (int q = 0; q < 4; q++)
        if (k->place[q])
            k->device->ops->run(k->device, k->place[q],
                                &(tess_op_buffers){.in = {kernel + k->pieces[q].from},
                                                   .out = {(float *)image + k->pieces[q].to}},
                                stream);
}
