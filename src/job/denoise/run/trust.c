/* Weak noise: the network's own errors count.
 *
 * A good denoiser changes an image by less than its noise. Where a network changes a part of a row by more, it also
 * changes the picture: a network that was trained on JPEG files smears sharp colours. With weak noise that costs more than
 * the noise does. The mean of input and result with the least error then has the share (1 - c) * noise / change (both
 * squared) of the result, where c is the part of the noise that the network leaves.
 *
 * Among edges of more than a hundred noise levels, as in small print, networks change an image by less than its noise, but not
 * by that noise. So the input is also kept where such edges are dense. One row at a time, so that tiles, threads and ranks do
 * not matter.
 *
 * Each channel has its own noise: one whose noise is weak beside others with real noise is judged without them. */
#include <math.h>

#include "base/checked.h"
#include "job/denoise/look/bands.h"
#include "job/denoise/run/prepared.h"

enum { SAMPLES = 600 }; /* of a window: their mean square varies by 6 % */
/* Squared change, relative to the noise; 1 where a smooth picture is restored perfectly. Up to the first the result is kept, from the second on shares are as above. */
static const double FINE = 1.25, DOUBTFUL = 1.5;
static const double REMOVED = 0.6;   /* 1 - c; of weak noise, where the network errs */
static const double MUCH_LESS = 0.9; /* share of the result from which a sample does not count as held back */

static const double STEEP = 100; /* noise levels between neighbours */
enum { BESIDE = 32 };            /* pixels to either side in which edges are counted */
/* Share of them with an edge, up to which the result is kept, and from which the input is. In lines of print at 9 pixels it is
 * 0.3, in photographs hardly 0.01. */
static const double SOME = 0.08, DENSE = 0.2;

static double share_of(double change)
{
    const double least = REMOVED / DOUBTFUL;
    return change <= FINE       ? 1
           : change >= DOUBTFUL ? REMOVED / change
                                : 1 - (1 - least) * (change - FINE) / (DOUBTFUL - FINE);
}

/* Channels that are judged together: those with weak noise that one run of the network takes. */
typedef struct group {
    const tess_prepared_image *image;
    int64_t from, to, weak; /* channels, and how many of these have weak noise */
} group;

static double level_of(const tess_prepared_image *image, int64_t channel)
{
    return tess_denoise_band_sigma(image->file, image->sigmas.channel, channel);
}

static bool is_weak(const tess_prepared_image *image, int64_t channel)
{
    return tess_denoise_is_weak(image->settings, image->file, level_of(image, channel));
}

static group group_of(const tess_prepared_image *image, int64_t from, int64_t to)
{
    group g = {.image = image, .from = from, .to = to};
    for (int64_t c = from; c < to; c++)
        g.weak += is_weak(image, c);
    return g;
}

bool tess_prepared_is_weak(const tess_prepared_image *image)
{
    return group_of(image, 0, tess_denoise_colours(&image->file->info)).weak > 0;
}

/* The squared change of a pixel, relative to the noise, as the mean of its weak channels; -1: nothing can be said. A map has the
 * mean level of all channels. */
static float change_of(const group *g, const float *input, const float *result, double map)
{
    double sum = 0;
    for (int64_t c = g->from; c < g->to; c++) {
        if (!is_weak(g->image, c))
            continue;
        const double own = level_of(g->image, c), level = map > 0 ? map * own / g->image->sigmas.all : own,
                     change = (double)result[c] - (double)input[c];
        if (isnan(change))
            return -1;
        sum += change * change / (level * level);
    }
    return (float)(sum / (double)g->weak);
}

typedef struct sums {
    double sum;
    int64_t count;
} sums;

static void add(sums *to, float change, int sign)
{
    if (change < 0)
        return;
    to->sum += sign * (double)change;
    to->count += sign;
}

/* 1 if a weak channel has an edge between this pixel and the one before. */
static int64_t is_edge(const group *g, const float *input, int64_t x)
{
    const int64_t colours = tess_denoise_colours(&g->image->file->info);
    for (int64_t c = g->from; c < g->to && x > 0; c++)
        if (is_weak(g->image, c) &&
            fabs((double)input[x * colours + c] - (double)input[(x - 1) * colours + c]) >
                STEEP * level_of(g->image, c))
            return 1;
    return 0;
}

/* The share of the result that this density of edges leaves. */
static double share_among(int64_t edges, int64_t pixels)
{
    const double density = (double)edges / (double)pixels;
    return fmin(fmax((DENSE - density) / (DENSE - SOME), 0), 1);
}

/* Returns how many samples got less of the result. */
static int64_t blend_pixel(const group *g, double share, const float *input, float *result)
{
    for (int64_t c = g->from; c < g->to && share < 1; c++)
        if (is_weak(g->image, c))
            result[c] = (float)((double)input[c] + share * ((double)result[c] - (double)input[c]));
    return share < MUCH_LESS ? g->weak : 0;
}

static int64_t hold_back(const group *g, const float *input, float *changes, float *result)
{
    const tess_denoise_file *file = g->image->file;
    const int64_t colours = tess_denoise_colours(&file->info), width = file->info.width,
                  step = tess_prepared_info(file).channels,
                  window = tess_min_i64(width, SAMPLES / g->weak + 1);
    const bool map = tess_denoise_has_map(file);
    for (int64_t x = 0; x < width; x++)
        changes[x] = change_of(g, input + x * colours, result + x * step,
                               map ? (double)result[x * step + colours] : 0);
    sums in = {0}; /* of the window, which stays inside the row */
    for (int64_t x = 0; x < window; x++)
        add(&in, changes[x], 1);
    int64_t edges = 0, from = 0, to = 0, held = 0;
    for (int64_t x = 0, first = 0; x < width; x++) {
        for (; to < tess_min_i64(x + BESIDE + 1, width); to++)
            edges += is_edge(g, input, to);
        for (; from < x - BESIDE; from++)
            edges -= is_edge(g, input, from);
        for (; first < tess_min_i64(x - window / 2, width - window); first++) {
            add(&in, changes[first + window], 1);
            add(&in, changes[first], -1);
        }
        const double share =
            changes[x] >= 0 ? fmin(share_of(in.sum / (double)in.count), share_among(edges, to - from)) : 1;
        held += blend_pixel(g, share, input + x * colours, result + x * step);
    }
    return held;
}

void tess_prepared_hold_back(tess_prepared_image *image, const float *input, float *changes, float *result)
{
    const int64_t colours = tess_denoise_colours(&image->file->info),
                  together = image->file->model->model.channels > 1 ? colours : 1;
    for (int64_t c = 0; c < colours; c += together) {
        const group g = group_of(image, c, c + together);
        if (g.weak > 0)
            image->held_back += hold_back(&g, input, changes, result);
    }
}
