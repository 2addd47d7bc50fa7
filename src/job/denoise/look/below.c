#include "job/denoise/look/below.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "job/common/note.h"

enum { SIDE = 4, MOST = 1 << 13 };
/* Factors of the noise level: white noise reaches 0.6 in a mean, and some that neighbours share twice that. What rings around
 * edges. */
static const double SHARED = 1.1, WHITE = 0.3, RINGING = 0.02;

tess_status tess_below_begin(tess_below *b, int64_t rows, int64_t width, int64_t colours, tess_error *error)
{
    const int64_t across = width / SIDE * colours;
    b->width = width, b->colours = colours;
    b->stride = across ? tess_stride_across(tess_ceil_div(rows / SIDE * across, MOST), across) : 1;
    b->means = tess_small_alloc(MOST, sizeof *b->means);
    b->sums = tess_small_alloc((size_t)tess_max_i64(across, 1), sizeof *b->sums);
    return b->means && b->sums ? TESS_OK
                               : tess_fail(error, TESS_NO_MEMORY, "no memory to look at the samples");
}

void tess_below_row(tess_below *b, const float *values)
{
    const int64_t across = b->width / SIDE * b->colours;
    const bool first = b->rows % SIDE == 0, last = b->rows % SIDE == SIDE - 1;
    b->rows++;
    for (int64_t i = 0; i < across; i++) {
        const float *value = values + i / b->colours * SIDE * b->colours + i % b->colours;
        double sum = first ? 0 : b->sums[i];
        for (int64_t x = 0; x < SIDE; x++)
            sum += (double)value[x * b->colours];
        b->sums[i] = sum;
        if (last && b->seen++ % b->stride == 0 && b->count < MOST && isfinite(sum)) /* no holes */
            b->means[b->count++] = (float)(sum / (SIDE * SIDE));
    }
}

static int compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

double tess_below_end(tess_below *b)
{
    if (b->count == 0)
        return 0;
    qsort(b->means, (size_t)b->count, sizeof *b->means, compare);
    return (double)b->means[b->count / 100];
}

void tess_below_release(tess_below *b)
{
    tess_small_free(b->means);
    tess_small_free(b->sums);
}

bool tess_denoise_lies_below(const tess_denoise_settings *s, const tess_denoise_file *file)
{
    const tess_denoise_look *look = &file->look;
    const double sigma = file->sigma_estimated ? look->noise.sigma : s->sigma > 0 ? s->sigma : 0.05;
    return look->found > 0 && look->low_mean < -fmax(SHARED * sigma, WHITE * sigma + RINGING);
}

void tess_denoise_note_below(const tess_denoise_settings *s, const tess_denoise_file *file, double low)
{
    tess_note(
        &s->common, TESS_NOTE_WARNING,
        "%s: samples down to %s lie below the range, where networks do poorly; give `range` with that as "
        "its lower end",
        file->input, tess_denoise_words(file, tess_denoise_sample_of(file, low)).text);
}
