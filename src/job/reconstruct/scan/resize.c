/* Bicubic interpolation as defined by torch.nn.functional.interpolate without aligned corners and without
 * antialiasing: the reference problems resize their image with it. */
#include <math.h>

#include "base/checked.h"
#include "job/reconstruct/scan/resize.h"

enum { TAPS = 4 };

typedef struct taps {
    int64_t at[TAPS];
    float weight[TAPS];
} taps;

static float near(float t) /* |t| <= 1 */
{
    const float a = -0.75f;
    return ((a + 2) * t - (a + 3)) * t * t + 1;
}

static float far(float t) /* 1 < |t| < 2 */
{
    const float a = -0.75f;
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
}

static taps taps_of(int64_t index, int64_t from, int64_t to)
{
    const float place = ((float)index + 0.5f) * ((float)from / (float)to) - 0.5f, below = floorf(place);
    const float t = place - below;
    taps k = {.weight = {far(t + 1), near(t), near(1 - t), far(2 - t)}};
    for (int i = 0; i < TAPS; i++)
        k.at[i] = tess_max_i64(0, tess_min_i64(from - 1, (int64_t)below - 1 + i));
    return k;
}

void tess_bicubic_source(const tess_bicubic *r, int64_t *first, int64_t *count)
{
    *first = taps_of(r->first, r->from_height, r->height).at[0];
    *count = taps_of(r->first + r->rows - 1, r->from_height, r->height).at[TAPS - 1] + 1 - *first;
}

void tess_resize_bicubic(const tess_bicubic *r, const float *from, float *to)
{
    int64_t source, count;
    tess_bicubic_source(r, &source, &count);
    for (int64_t y = r->first; y < r->first + r->rows; y++) {
        const taps rows = taps_of(y, r->from_height, r->height);
        for (int64_t x = 0; x < r->width; x++) {
            const taps cols = taps_of(x, r->from_width, r->width);
            for (int64_t c = 0; c < r->channels; c++) {
                float sum = 0;
                for (int i = 0; i < TAPS; i++) {
                    const float *row = from + (rows.at[i] - source) * r->from_width * r->channels;
                    float line = 0;
                    for (int j = 0; j < TAPS; j++)
                        line += cols.weight[j] * row[cols.at[j] * r->channels + c];
                    sum += rows.weight[i] * line;
                }
                *to++ = fminf(fmaxf(sum, 0), 1);
            }
        }
    }
}
