/* The axis of a scan whose columns have errors that are the same in all views: the error that is given includes what these
 * do, and the axis is found better than if they were taken for noise. */
#include "adjoint.h"
#include "counter.h"
#include "physics/centre.h"

static const double pi = 3.14159265358979323846;

int main(void)
{
    enum { COLUMNS = 128, VIEWS = 120, SEEDS = 16 };
    static const double disks[][4] = {{0, 0, 45, 0.3}, {17, -12, 9, 0.3}, {-18, 8, 6, 0.5}, {5, 22, 4, 0.4}};
    double angles[VIEWS], squares = 0, ratios = 0;
    float *views = adjoint_floats(VIEWS * COLUMNS), *draws = adjoint_floats(VIEWS * COLUMNS + COLUMNS);
    for (int k = 0; k < VIEWS; k++)
        angles[k] = 180.0 * k / VIEWS;
    void *memory = malloc(tess_centre_bytes(VIEWS, COLUMNS));
    for (int seed = 0; seed < SEEDS; seed++) {
        const double axis = 62.1 + 0.27 * seed;
        tess_centre centre = {0};
        tess_error error = {{0}};
        tess_rng_normal((tess_rng_key){.seed = (uint64_t)seed + 40}, 0, VIEWS * COLUMNS + COLUMNS, draws);
        for (int64_t i = 0; i < VIEWS * COLUMNS; i++) {
            const double t = angles[i / COLUMNS] * pi / 180;
            double sum = 0;
            for (int d = 0; d < 4; d++) {
                const double away =
                    (double)(i % COLUMNS) - axis - disks[d][0] * cos(t) + disks[d][1] * sin(t);
                sum += 2 * disks[d][3] * sqrt(fmax(0, disks[d][2] * disks[d][2] - away * away));
            }
            const double gain = 1 + 0.03 * (double)draws[VIEWS * COLUMNS + i % COLUMNS];
            views[i] = (float)(gain * sum + 0.1 * (double)draws[i]);
        }
        const tess_status status = tess_centre_find(&(tess_centre_views){views, angles, VIEWS, COLUMNS, NULL},
                                                    memory, &centre, &error);
        CHECK_MSG(status == TESS_OK && centre.pairs == 0 && centre.spectrum, "%s", error.text);
        const double off = centre.column - axis;
        squares += off * off / SEEDS;
        ratios += off * off / (centre.within * centre.within) / SEEDS;
    }
    printf("columns with errors: the axis is found to %.4f columns, %.2f times the error that is given\n",
           sqrt(squares), sqrt(ratios));
    CHECK(sqrt(squares) < 0.05 && sqrt(ratios) < 2);
    free(views), free(draws), free(memory);
    return check_end();
}
