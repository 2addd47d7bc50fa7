#include "job/reconstruct/look/sampled_kernel.h"

#include <math.h>

#include "base/mem.h"

tess_status tess_sample_kernel(const tess_problem *p, int64_t i, tess_sampled_kernel *out, tess_error *error)
{
    const tess_blur_kernel kernel =
        p->kernels ? p->kernels[i] : (tess_blur_kernel){.gaussian = {p->blur[0], p->blur[1], p->angles[i]}};
    out->rows = tess_kernel_reach_rows(&kernel);
    out->columns = tess_kernel_reach_columns(&kernel);
    const int64_t count = (2 * out->rows + 1) * (2 * out->columns + 1);
    double sum = 0;
    if (!(out->values = tess_small_alloc((size_t)count, sizeof *out->values)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a kernel");
    if (!kernel.values) {
        tess_gaussian_kernel(&kernel.gaussian, out->values);
        return TESS_OK;
    }
    for (int64_t k = 0; k < count; k++)
        sum += kernel.values[k];
    for (int64_t k = 0; k < count; k++)
        out->values[k] = kernel.values[k] / sum;
    return TESS_OK;
}

tess_status tess_kernels_look(const tess_problem *p, tess_kernel_facts *out, tess_error *error)
{
    tess_status status = TESS_OK;
    *out = (tess_kernel_facts){0};
    for (int64_t i = 0; i < p->count && status == TESS_OK; i++) {
        tess_sampled_kernel kernel = {0};
        status = tess_sample_kernel(p, i, &kernel, error);
        for (int64_t k = 0; status == TESS_OK && k < (2 * kernel.rows + 1) * (2 * kernel.columns + 1); k++) {
            const double value = kernel.values[k];
            out->peak = fmax(out->peak, value);
            out->squares += value * value / (double)p->count;
        }
        tess_small_free(kernel.values);
    }
    return status;
}
