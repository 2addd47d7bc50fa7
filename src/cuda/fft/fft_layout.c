#include "cuda/fft/fft_layout.h"

/* Most values of the rows that one call transforms: cuFFT's work area grows with them. */
static const int64_t MOST_MERGED = (int64_t)1 << 24;

/* True if the rows of all images have one constant distance. */
static bool merges(const tess_tensor *t)
{
    return (t->d == 1 || t->stride_d == t->h * t->stride_h) &&
           (t->n == 1 || t->stride_n == t->d * t->h * t->stride_h);
}

static int64_t images_at_once(const tess_tensor *real, int64_t images)
{
    for (int64_t parts = 1; parts < images; parts++)
        if (images % parts == 0 && images / parts <= MOST_MERGED / (real->h * real->w))
            return images / parts;
    return 1;
}

static const char *refuses(const tess_tensor *r, const tess_tensor *s)
{
    if (r->dtype != TESS_F32 || s->dtype != TESS_F32)
        return "values are fp32";
    if (r->n != s->n || r->d != s->d || r->h != s->h || s->w != r->w / 2 + 1 || s->c != 2 * r->c)
        return "a spectrum has w/2+1 columns and twice the channels";
    if (r->n < 1 || r->d < 1 || r->h < 1 || r->w < 1 || r->c < 1 || r->h > INT32_MAX || r->w > INT32_MAX)
        return "lines have 1 to 2^31 - 1 values";
    if (s->w * s->c > INT32_MAX || r->n * r->d * r->h > INT32_MAX)
        return "it has too many values";
    if (s->stride_w % 2 || s->stride_h % 2 || s->stride_d % 2 || s->stride_n % 2 || s->stride_w < 2)
        return "a spectrum's pixels begin at even places";
    return NULL;
}

const char *tess_fft_layout_of(const tess_op *op, tess_fft_layout *layout)
{
    const tess_tensor *r = tess_fft_real(op), *s = tess_fft_spectrum(op);
    if (op->fft.columns_only || op->fft.rows)
        return "a card transforms whole images";
    const char *why = refuses(r, s);
    if (why)
        return why;
    const bool lines = op->fft.rows_only || r->h == 1;
    if (!lines && s->stride_h % s->stride_w)
        return "the rows of a spectrum are a whole number of its pixels apart";
    const bool staged = r->stride_n % 2 || r->stride_d % 2 || (lines && r->c > 1) ||
                        (!lines && (r->stride_w < 1 || r->stride_h % r->stride_w));
    memset(layout, 0, sizeof *layout);
    layout->inverse = op->fft.inverse;
    layout->rank = lines ? 1 : 2;
    layout->staged = staged;
    layout->h = r->h;
    layout->w = r->w;
    layout->images = 1;
    if (lines) {
        if (!staged && merges(r) && merges(s))
            layout->images = images_at_once(r, r->n * r->d);
        layout->passes = r->c;
        layout->batch = r->h * layout->images;
        layout->real = (tess_fft_side){r->w, r->stride_w, r->stride_h};
        layout->spectrum = (tess_fft_side){s->w, s->stride_w / 2, s->stride_h / 2};
        if (staged)
            layout->real = (tess_fft_side){r->w, 1, tess_fft_staged_pitch(r)};
    } else {
        layout->passes = 1;
        layout->batch = r->c;
        layout->spectrum = (tess_fft_side){s->stride_h / s->stride_w, s->stride_w / 2, 1};
        if (staged)
            layout->real = (tess_fft_side){tess_fft_staged_pitch(r), 1, tess_fft_staged_plane(r)};
        else
            layout->real = (tess_fft_side){r->stride_h / r->stride_w, r->stride_w, 1};
    }
    layout->groups = r->n * r->d / layout->images;
    return NULL;
}

size_t tess_fft_staged_bytes(const tess_op *op, const tess_fft_layout *layout)
{
    const tess_tensor *r = tess_fft_real(op);
    return layout->staged ? (size_t)(r->c * tess_fft_staged_plane(r)) * sizeof(float) : 0;
}
