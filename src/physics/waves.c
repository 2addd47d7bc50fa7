#include "physics/waves.h"

#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

enum { ROWS, COLUMNS, COLUMNS_BACK, ROWS_BACK, ALIGNMENT = 256 };

/* The first column of a rank. */
static int64_t column_of(const tess_waves *v, int rank)
{
    return v->lines.w * rank / v->share->dist->size;
}

static tess_op transform(tess_tensor in, tess_tensor out, tess_op_fft fft)
{
    tess_op op = {.kind = TESS_OP_FFT, .inputs = 1, .outputs = 1, .in = {in}, .out = {out}, .fft = fft};
    for (int k = 0; k < TESS_SPATIAL; k++)
        op.kernel[k] = op.stride[k] = 1;
    return op;
}

tess_status tess_waves_lay_out(tess_waves *v, tess_device *device, tess_share *share, int64_t width,
                               int64_t channels, tess_error *error)
{
    const int size = share->dist->size, rank = share->dist->rank;
    const int64_t height = share->from[size], rows = tess_share_rows(share, height), bins = width / 2 + 1;
    *v = (tess_waves){.device = device, .share = share};
    if (bins < size)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "%d ranks share the %lld columns of a spectrum; start at most %lld", size,
                         (long long)bins, (long long)bins);
    v->strip = tess_tensor_2d(TESS_F32, 1, rows, width, channels);
    v->lines = tess_tensor_2d(TESS_F32, 1, rows, bins, 2 * channels);
    v->columns =
        tess_tensor_2d(TESS_F32, 1, height, column_of(v, rank + 1) - column_of(v, rank), 2 * channels);
    v->ops[ROWS] = transform(v->strip, v->lines, (tess_op_fft){.rows_only = true});
    v->ops[COLUMNS] = transform(v->columns, v->columns, (tess_op_fft){.columns_only = true});
    v->ops[COLUMNS_BACK] =
        transform(v->columns, v->columns, (tess_op_fft){.columns_only = true, .inverse = true});
    v->ops[ROWS_BACK] =
        transform(v->lines, v->strip, (tess_op_fft){.rows_only = true, .inverse = true, .rows = height});
    size_t lines, columns, workspace = 0;
    if (!tess_tensor_bytes(&v->lines, &lines) || !tess_tensor_bytes(&v->columns, &columns))
        return tess_fail(error, TESS_OVER_LIMIT, "an image of %lldx%lld pixels is too large to transform",
                         (long long)height, (long long)width);
    for (int i = 0; i < WAVES_STEPS; i++) {
        tess_op_needs needs;
        TESS_TRY(device->ops->query(device, &v->ops[i], &needs, error));
        workspace = needs.workspace > workspace ? needs.workspace : workspace;
        v->held_bytes += needs.held;
    }
    v->part_bytes = tess_align_size(lines > columns ? lines : columns, ALIGNMENT);
    v->workspace_at = 2 * v->part_bytes;
    v->scratch_bytes = v->workspace_at + tess_align_size(workspace, ALIGNMENT);
    return TESS_OK;
}

tess_status tess_waves_open(tess_waves *v, tess_error *error)
{
    for (int i = 0; i < WAVES_STEPS; i++)
        TESS_TRY(v->device->ops->prepare(v->device, &v->ops[i], &v->step[i], error));
    v->list = tess_small_alloc((size_t)v->share->dist->size, sizeof *v->list);
    if (!v->list)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the parts of a spectrum");
    return tess_dist_exchange_create(v->share->dist, v->share->dist->size, &v->exchange, error);
}

void tess_waves_close(tess_waves *v)
{
    for (int i = 0; i < WAVES_STEPS; i++)
        if (v->step[i])
            v->device->ops->release(v->device, v->step[i]);
    tess_small_free(v->list);
    tess_dist_exchange_destroy(v->exchange);
    *v = (tess_waves){0};
}

static void run(const tess_waves *v, int step, const void *in, void *out, char *scratch, tess_stream *stream)
{
    v->device->ops->run(v->device, v->step[step],
                        &(tess_op_buffers){.in = {in}, .out = {out}, .workspace = scratch + v->workspace_at},
                        stream);
}

/* The block of rank r in the packed part: some columns of this rank's rows. */
static size_t packed_at(const tess_waves *v, int rank)
{
    return (size_t)(v->lines.h * column_of(v, rank) * v->lines.c) * sizeof(float);
}

/* Copies the blocks of all ranks between the lines and the packed part. */
static void pack(const tess_waves *v, char *lines, char *packed, bool back)
{
    const size_t pixel = (size_t)v->lines.c * sizeof(float);
    for (int r = 0; r < v->share->dist->size; r++) {
        const int64_t first = column_of(v, r);
        const size_t width = (size_t)(column_of(v, r + 1) - first) * pixel;
        char *block = packed + packed_at(v, r);
        for (int64_t y = 0; y < v->lines.h; y++) {
            char *row = lines + (size_t)(y * v->lines.w + first) * pixel;
            memcpy(back ? row : block + (size_t)y * width, back ? block + (size_t)y * width : row, width);
        }
    }
}

/* Rows of a rank follow each other in the columns, so only the other side is packed. */
static void swap(const tess_waves *v, char *columns, char *packed, bool back)
{
    tess_dist *dist = v->share->dist;
    const size_t row = (size_t)(v->columns.w * v->columns.c) * sizeof(float);
    tess_error error;
    for (int r = 0; r < dist->size; r++) {
        const size_t ours = packed_at(v, r + 1) - packed_at(v, r),
                     theirs = (size_t)(v->share->from[r + 1] - v->share->from[r]) * row;
        char *part = columns + (size_t)v->share->from[r] * row, *block = packed + packed_at(v, r);
        v->list[r] = (tess_dist_transfer){.peer = r,
                                          .send = back ? part : block,
                                          .send_bytes = back ? theirs : ours,
                                          .receive = back ? block : part,
                                          .receive_bytes = back ? ours : theirs};
    }
    tess_status status = tess_dist_exchange_begin(v->exchange, v->list, dist->size, &error);
    if (status == TESS_OK)
        status = tess_dist_exchange_end(v->exchange, &error);
    (void)!tess_share_keep(v->share, status, &error); /* several ranks: it is kept */
}

void *tess_waves_there(const tess_waves *v, const void *strip, void *scratch, tess_stream *stream)
{
    char *one = scratch, *other = one + v->part_bytes;
    run(v, ROWS, strip, one, scratch, stream);
    pack(v, one, other, false);
    swap(v, one, other, false);
    run(v, COLUMNS, one, one, scratch, stream);
    return one;
}

void tess_waves_back(const tess_waves *v, void *scratch, void *strip, tess_stream *stream)
{
    char *one = scratch, *other = one + v->part_bytes;
    run(v, COLUMNS_BACK, one, one, scratch, stream);
    swap(v, one, other, true);
    pack(v, one, other, true);
    run(v, ROWS_BACK, one, strip, scratch, stream);
}
