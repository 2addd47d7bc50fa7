#include "job/reconstruct/problem/file_rows.h"

#include "base/mem.h"
#include "job/reconstruct/problem/values.h"

tess_status tess_problem_file_rows(const tess_problem *p, tess_file_row_fn take, void *user,
                                   tess_error *error)
{
    const int64_t samples = tess_problem_row(p), rows = p->count * p->height;
    tess_values values = {0};
    tess_kept kept = {0};
    float *row = tess_small_alloc((size_t)samples, sizeof *row);
    tess_status status = row ? tess_values_open(p->memory, p->measurement, TESS_AXES_PLAIN, 0, &values, error)
                             : tess_fail(error, TESS_NO_MEMORY, "no memory for a row of a blur");
    values.stop = p->stop;
    values.marks = p->hidden.marks;
    values.mark_count = p->hidden.mark_count;
    for (int64_t y = 0; y < rows && status == TESS_OK; y++) {
        status = tess_values_next(&values, error);
        if (status == TESS_OK)
            status = tess_values_take(&values, 1, 0, samples, row, &kept, error);
        for (int64_t i = 0; i < samples && status == TESS_OK; i++)
            row[i] = (float)((double)row[i] - p->offset) / (float)p->unit;
        if (status == TESS_OK)
            status = take(user, y, row, error);
    }
    tess_values_close(&values);
    tess_small_free(row);
    return status;
}
