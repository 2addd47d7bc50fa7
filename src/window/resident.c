/* A 2-D network processes a volume slice by slice, a 3-D one in windows that are cut in depth too. The slices
 * of a window are moved like a batch of images, since import and export ops support only height and width. */
#include "window/resident.h"

#include "base/checked.h"
#include "window/sample_ops.h"
#include "window/window_impl.h"

typedef struct move {
    const tess_resident *images;
    tess_sample_ops *ops;
    tess_stream *stream;
    tess_status failed; /* to gather a strip, whose exchanges with its neighbours are made all the same */
    tess_error why;
} move;

/* Describes `count` slices of the image from `slice` on, as images, within the given rows and columns, and
 * their offset in elements. */
static tess_tensor view(const tess_tensor *image, int64_t slice, int64_t count, const int64_t rows[2],
                        const int64_t cols[2], int64_t *offset)
{
    tess_tensor part = *image;
    part.n = count;
    part.stride_n = image->stride_d;
    part.d = 1;
    part.h = tess_min_i64(rows[1], image->h) - rows[0];
    part.w = tess_min_i64(cols[1], image->w) - cols[0];
    *offset = slice * image->stride_d + rows[0] * image->stride_h + cols[0] * image->stride_w;
    return part;
}

/* Describes `count` slices of one window of the network's input or output, as images. */
static tess_tensor slices_of(const tess_tensor *end, int64_t count)
{
    tess_tensor slices = *end;
    slices.n = count;
    slices.stride_n = end->stride_d;
    slices.d = 1;
    return slices;
}

static char *at(const void *data, const tess_tensor *tensor, int64_t elements)
{
    return (char *)data + elements * (int64_t)tess_dtype_size(tensor->dtype);
}

/* The layout of an image's channels: `count` of `all` are moved, from `first` on. */
typedef struct channels {
    int64_t stride, all, count, first;
} channels;

static bool separate(const channels *how)
{
    return how->all > 1 && how->stride != 0 && how->stride != 1;
}

/* Uses one op for each channel; the last op also writes the noise level. */
static tess_status import_channels(const move *m, const tess_tensor *image, const void *data,
                                   const tess_tensor *input, void *to, const channels *how, tess_error *error)
{
    const tess_resident *r = m->images;
    for (int64_t c = 0; c < how->count; c++) {
        const bool level = r->level_channel && c == how->count - 1;
        const tess_tensor from = tess_tensor_channels(*image, 1),
                          into = tess_tensor_channels(*input, level ? 2 : 1);
        const tess_op op = tess_import_op(&from, &into,
                                          (tess_op_samples){.full_scale = r->full_scale,
                                                            .level_channel = level,
                                                            .level = level ? r->level : 0});
        TESS_TRY(tess_sample_op_run(m->ops, &op, at(data, image, (how->first + c) * how->stride),
                                    at(to, input, c), m->stream, error));
    }
    return TESS_OK;
}

static tess_status export_channels(const move *m, const tess_op *all, const void *data, void *to,
                                   const channels *how, tess_error *error)
{
    for (int64_t c = 0; c < how->count; c++) {
        const tess_tensor from = tess_tensor_channels(all->in[0], 1),
                          into = tess_tensor_channels(all->out[0], 1);
        const tess_op op =
            tess_export_op(&from, &into, (tess_op_samples){.full_scale = m->images->full_scale},
                           all->pad_before[TESS_HEIGHT], all->pad_before[TESS_WIDTH]);
        TESS_TRY(tess_sample_op_run(m->ops, &op, at(data, &all->in[0], c),
                                    at(to, &all->out[0], (how->first + c) * how->stride), m->stream, error));
    }
    return TESS_OK;
}

/* Imports slices [slice, slice + count) of the image into a window's input, which begins at `to`. */
static tess_status import(const move *m, const tess_window_batch *b, int64_t item, const int64_t slices[2],
                          int64_t plane, const tess_tensor *input, void *to, tess_error *error)
{
    const tess_resident *r = m->images;
    const tess_span cols = tess_batch_cols(b, item);
    int64_t offset;
    const tess_tensor from = view(&r->in, slices[0], slices[1] - slices[0],
                                  (const int64_t[]){b->rows.window_from, b->rows.window_to},
                                  (const int64_t[]){cols.window_from, cols.window_to}, &offset),
                      into = slices_of(input, slices[1] - slices[0]);
    const tess_op_samples samples = {.full_scale = r->full_scale,
                                     .first = (int32_t)plane,
                                     .level_channel = r->level_channel,
                                     .level = r->level};
    const channels how = {r->in_channel_stride, from.c, into.c - r->level_channel, plane};
    if (separate(&how))
        return import_channels(m, &from, at(r->in_data, &r->in, offset), &into, to, &how, error);
    const tess_op op = tess_import_op(&from, &into, samples);
    return tess_sample_op_run(m->ops, &op, at(r->in_data, &r->in, offset), to, m->stream, error);
}

/* Repeats the last slice beyond the end of the volume, like rows and columns. */
static tess_status gather_all(const move *m, const tess_window_batch *b, int64_t plane,
                              const tess_window_end *input, tess_error *error)
{
    const tess_tensor *t = &input->tensor;
    const int64_t last = m->images->in.d, from = b->depth.window_from,
                  to = tess_min_i64(b->depth.window_to, last);
    for (int64_t i = 0; i < b->n; i++) {
        const int64_t first = i * t->stride_n;
        TESS_TRY(import(m, b, i, (const int64_t[]){from, to}, plane, t, at(input->data, t, first), error));
        for (int64_t z = to - from; z < t->d; z++)
            TESS_TRY(import(m, b, i, (const int64_t[]){last - 1, last}, plane, t,
                            at(input->data, t, first + z * t->stride_d), error));
    }
    return TESS_OK;
}

static tess_status gather(void *user, const tess_window_batch *b, int64_t plane, const tess_window_end *input,
                          tess_error *error)
{
    move *m = user;
    const tess_status status = gather_all(m, b, plane, input, error);
    if (status == TESS_OK || !m->images->exchanger)
        return status;
    m->failed = status;
    m->why = *error;
    return TESS_OK;
}

static tess_status scatter(void *user, const tess_window_batch *b, int64_t plane,
                           const tess_window_end *output, tess_error *error)
{
    const move *m = user;
    const tess_resident *r = m->images;
    const tess_tensor *t = &output->tensor;
    const int64_t from = b->depth.from, count = tess_min_i64(b->depth.to, r->out.d) - from;
    const tess_tensor in = slices_of(t, count);
    for (int64_t i = 0; i < b->n; i++) {
        const tess_span cols = tess_batch_cols(b, i);
        int64_t offset;
        const tess_tensor out = view(&r->out, from, count, (const int64_t[]){b->rows.from, b->rows.to},
                                     (const int64_t[]){cols.from, cols.to}, &offset);
        const tess_op op =
            tess_export_op(&in, &out, (tess_op_samples){.full_scale = r->full_scale, .first = (int32_t)plane},
                           b->rows.from - b->rows.window_from, cols.from - cols.window_from);
        const int64_t start = i * t->stride_n + (from - b->depth.window_from) * t->stride_d;
        const channels how = {r->out_channel_stride, out.c, t->c, plane};
        const void *results = at(output->data, t, start);
        void *to = at(r->out_data, &r->out, offset);
        TESS_TRY(separate(&how) ? export_channels(m, &op, results, to, &how, error)
                                : tess_sample_op_run(m->ops, &op, results, to, m->stream, error));
    }
    return TESS_OK;
}

tess_status tess_windows_run_resident(tess_windows *windows, const tess_window_net *net, const tess_cut *cut,
                                      const tess_resident *images, tess_stream *stream, tess_error *error)
{
    static const tess_mover mover = {.gather = gather, .scatter = scatter};
    move m = {.images = images, .ops = windows->sample_ops, .stream = stream};
    const tess_window_run run = {.net = net,
                                 .cut = cut,
                                 .strip = TESS_ALL_STRIPS,
                                 .size = {images->in.d, images->in.h, images->in.w},
                                 .stream = stream,
                                 .mover = &mover,
                                 .user = &m,
                                 .exchanger = images->exchanger,
                                 .exchange_user = images->exchange_user};
    TESS_TRY(tess_windows_run(windows, &run, error));
    return m.failed == TESS_OK ? TESS_OK : tess_fail(error, m.failed, "%s", m.why.text);
}
