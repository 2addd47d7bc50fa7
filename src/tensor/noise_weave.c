/* noise_weave.c: sees a pattern that repeats every 2 samples, such as the colours of a raw sensor, by its phase.
 *
 * Without its checker (noise.c) the patches of a mosaic are quieter, but a mosaic need not have one: in a reddish scene
 * the mean of red and blue may be green. Its stripes are then left, and the texture of one colour makes noise of them.
 * But rows, columns and checkers that alternate have the same phase everywhere. So their amplitude with its sign is
 * measured in blocks of 8 x 8, and compared with the next block's in the direction in which it alternates: an edge or
 * a line lies in one of them only, and noise has any sign. The mean product is more than 0.6 of the mean square in
 * mosaics of photographs, less than 0.2 in photographs and less than 0.4 in crops of 64 x 64 of them. */
#include <math.h>

#include "base/checked.h"
#include "tensor/noise_parts.h"

enum { SIDE = TESS_NOISE_SIDE, FEWEST = 32 };

static const double common = 0.5; /* the mean product, of the mean square */
/* The standard deviation of the pattern, of the noise's. Thin lines that repeat every 4 or 8 samples have half of it. */
static const double strong = 1;

/* (1 - z)^7: it is one for values that alternate, and zero for every polynomial below the 7th degree. */
static const double alternate[SIDE] = {1 / 128.0,  -7 / 128.0,  21 / 128.0, -35 / 128.0,
                                       35 / 128.0, -21 / 128.0, 7 / 128.0,  -1 / 128.0};

typedef struct amplitudes {
    double rows, columns, checker;
} amplitudes;

int64_t tess_noise_weave_blocks(const tess_noise_shape *shape)
{
    return shape->width / SIDE * shape->channels;
}

/* NaN if the block has a hole. */
static amplitudes measure(const float *line, int64_t stride)
{
    amplitudes a = {0};
    for (int k = 0; k < SIDE; k++) {
        double sum = 0, down = 0;
        for (int y = 0; y < SIDE; y++) {
            sum += (double)line[y * stride + k];
            down += alternate[y] * (double)line[y * stride + k];
        }
        a.rows += down / SIDE, a.columns += alternate[k] * sum / SIDE, a.checker += alternate[k] * down;
    }
    return a;
}

static void compare(tess_noise_weave *weave, double a, double b)
{
    if (isnan(a) || isnan(b))
        return;
    weave->product += a * b, weave->square += (a * a + b * b) / 2;
    weave->pairs++;
}

void tess_noise_weave_rows(tess_noise *noise, int channel)
{
    const int64_t blocks = noise->shape.width / SIDE, stride = noise->shape.width * noise->shape.channels;
    const float *line = noise->lines + channel * noise->shape.width;
    tess_noise_weave *weave = &noise->weave[channel];
    float *above = noise->above + channel * blocks;
    amplitudes left = {NAN, NAN, NAN};
    for (int64_t i = 0; i < blocks; i++) {
        const amplitudes here = measure(line + i * SIDE, stride);
        if (noise->rows >= SIDE)
            compare(weave, (double)above[i], here.rows);
        compare(weave, left.columns, here.columns);
        compare(weave, left.checker, here.checker);
        above[i] = (float)here.rows;
        left = here;
    }
}

bool tess_noise_is_woven(const tess_noise *noise, int channel, double sigma)
{
    const tess_noise_weave *weave = &noise->weave[channel];
    /* The three amplitudes have about as many pairs each. */
    const double variance = 3 * weave->product / (double)tess_max_i64(weave->pairs, 1);
    return weave->pairs >= FEWEST && weave->product > common * weave->square &&
           variance > strong * strong * sigma * sigma;
}
