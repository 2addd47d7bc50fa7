#include "job/reconstruct/look/finite.h"

#include <math.h>
#include <stdio.h>

void tess_bad_values_count(tess_bad_values *bad, int64_t row, const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (isfinite(values[i]))
            continue;
        if (bad->nan + bad->infinite == 0) {
            bad->row = row;
            bad->at = i;
        }
        ++*(isnan(values[i]) ? &bad->nan : &bad->infinite);
    }
}

tess_status tess_bad_values_check(const tess_bad_values *bad, const char *path, tess_extent extent,
                                  bool volume, tess_error *error)
{
    const long long row = bad->row, column = bad->at / extent.channels, last = bad->at % extent.channels;
    char place[96];
    if (bad->nan + bad->infinite == 0)
        return TESS_OK;
    if (volume)
        snprintf(place, sizeof place, "[%lld, %lld, %lld]", row, column, last);
    else
        snprintf(place, sizeof place, "row %lld, column %lld", row, column);
    return tess_fail(
        error, TESS_BAD_INPUT,
        "%s: of %lld values %lld are NaN and %lld infinite, the first at %s (a nodata value and what a mask "
        "hides are NaN); measurements, images and volumes must be finite: fill the gaps first",
        path, (long long)(extent.height * extent.width * extent.channels), (long long)bad->nan,
        (long long)bad->infinite, place);
}
