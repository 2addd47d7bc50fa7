/* Compares the phantoms with their definition, and the ramp filter with the ideal one. */
#include "check.h"
#include "physics/filter.h"
#include "physics/phantom.h"

static const double pi = 3.14159265358979323846;

/* The ramp is that of its taps: zero mean but for the padding, half a cycle at most 1/2, Hann ends at zero. */
static void test_filter(void)
{
    float sharp[513], soft[513];
    tess_error error;
    CHECK(tess_filter_padded(20) == 64 && tess_filter_padded(32) == 64 && tess_filter_padded(33) == 128 &&
          tess_filter_padded(768) == 2048);
    CHECK(tess_filter_spectrum(TESS_FILTER_RAM_LAK, 1024, 1, sharp, &error) == TESS_OK);
    CHECK(tess_filter_spectrum(TESS_FILTER_HANN, 1024, 2, soft, &error) == TESS_OK);
    for (int k = 0; k <= 512; k++) {
        CHECK(fabs((double)sharp[k] - k / 1024.0) < 5e-4);
        const double window = 0.5 * (1 + cos(2 * pi * k / 1024));
        CHECK(fabs((double)soft[k] - 2 * window * (double)sharp[k]) < 1e-6);
    }
    CHECK(sharp[0] > 0);
}

static void test_phantoms(void)
{
    enum { SIZE = 64 };
    static float image[SIZE * SIZE], volume[SIZE * SIZE * SIZE];
    tess_phantom_2d(SIZE, 1, image);
    /* Against the definition, point by point. */
    for (int i = 0; i < SIZE * SIZE; i++) {
        const double x = (2.0 * (i % SIZE) + 1) / SIZE - 1, y = (2.0 * (i / SIZE) + 1) / SIZE - 1;
        double sum = 0;
        for (int k = 0; k < TESS_PHANTOM_PARTS; k++) {
            const tess_ellipsoid *e = &tess_shepp_logan_2d[k];
            const double c = cos(e->angle * pi / 180), s = sin(e->angle * pi / 180);
            const double u = x - e->centre[0], v = y - e->centre[1];
            sum += hypot((u * c + v * s) / e->axis[0], (v * c - u * s) / e->axis[1]) <= 1 ? e->value : 0;
        }
        CHECK_MSG(fabs(sum - (double)image[i]) < 1e-6, "pixel %d is %g, not %g", i, (double)image[i], sum);
    }
    CHECK(image[0] == 0);
    const tess_ellipsoid ball = {2, {0.5, 0.25, 0.75}, {0.1, -0.2, 0.05}, 30};
    tess_ellipsoids_draw(&ball, 1, SIZE, SIZE, SIZE, 3, volume);
    double sum = 0;
    for (int i = 0; i < SIZE * SIZE * SIZE; i++)
        sum += (double)volume[i] * 8 / (SIZE * SIZE * SIZE);
    CHECK_MSG(fabs(sum / (2 * 4 * pi / 3 * 0.5 * 0.25 * 0.75) - 1) < 2e-3, "volume %g", sum);
    tess_phantom_3d(SIZE, SIZE, SIZE, 1, volume);
    for (int i = 0; i < SIZE * SIZE * SIZE; i++)
        CHECK(volume[i] >= 0 && volume[i] <= 1);
    /* The slice at z = 0 is nearly that of the plane. */
    double difference = 0;
    for (int i = 0; i < SIZE * SIZE; i++)
        difference += fabs((double)volume[SIZE / 2 * SIZE * SIZE + i] - (double)image[i]);
    CHECK_MSG(difference / (SIZE * SIZE) < 0.02, "differs by %g a pixel", difference / (SIZE * SIZE));
    float colour[5 * 7 * 3];
    tess_phantom_colour(5, 7, colour);
    CHECK(fabs((double)colour[(2 * 7 + 3) * 3] - (0.8 + 0.075)) < 1e-6); /* the centre */
    CHECK(fabs((double)colour[(2 * 7 + 3) * 3 + 1] - 0.1) < 1e-6);
    CHECK(fabs((double)colour[(2 * 7 + 3) * 3 + 2] - 0.5) < 1e-6);
}

int main(void)
{
    test_filter();
    test_phantoms();
    return check_end();
}
