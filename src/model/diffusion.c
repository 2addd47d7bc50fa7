#include "model/diffusion.h"

#include <math.h>

void tess_diffusion_level(double gamma, int64_t levels, float *values)
{
    const int64_t half = levels / 2;
    for (int64_t i = 0; i < half; i++) {
        const double f = exp(-log(10000) * (double)i / (double)half);
        values[i] = (float)cos(gamma * f);
        values[half + i] = (float)sin(gamma * f);
    }
}
