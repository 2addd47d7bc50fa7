#include "job/study/bench_scaling.h"

tess_status tess_scaling_measure(const tess_bench_settings *s, tess_dist *dist, tess_memory *memory,
                                 tess_error *error)
{
    (void)s, (void)dist, (void)memory;
    return tess_fail(error, TESS_UNSUPPORTED, "later");
}
