/* bench size: memory and time by image width, for widths that the networks' grid divides and for widths that it does
 * not. Other programs show jumps here; this curve is a line. */
#include <string.h>

#include "base/checked.h"
#include "job/study/bench.h"

enum { FROM = 1024, TO = 2048, STEPS = 2, MOST = 40 };

/* FROM to TO in both steps, in order. */
static int default_widths(int64_t widths[MOST])
{
    static const int64_t steps[STEPS] = {64, 68};
    int count = 0;
    for (int64_t width = FROM; width <= TO; width++)
        for (int s = 0; s < STEPS; s++)
            if ((width - FROM) % steps[s] == 0) {
                widths[count++] = width;
                break;
            }
    return count;
}

/* The plan of the denoise job for an image on the device: it needs no rows on the host, and the study's other blocks
 * are subtracted from the limit. */
static tess_status choose(tess_study *study, int64_t width, tess_cut_plan *choice, tess_bench_work *work,
                          tess_error *error)
{
    const tess_bench_settings *s = study->settings;
    uint64_t held = 0;
    tess_cut_request request = {.size = {1, s->height, width},
                                .planes = 1,
                                .halo = {0, s->halo, s->halo},
                                .separate_memory = study->engine.separate_memory,
                                .host_limit = UINT64_MAX,
                                .limit = tess_bench_limit(study),
                                .asked_limit = s->common.memory_limit};
    /* the second attempt knows the bytes of the tiles' input */
    for (int attempt = 0; attempt < 2; attempt++) {
        request.others = held;
        TESS_TRY(tess_cut_choose(study->model->bound, &study->model->model, study->engine.rates, &request,
                                 choice, error));
        *work = (tess_bench_work){.cut = tess_cut_of(choice)};
        if (tess_cut_shapes(&work->cut) > TESS_BENCH_SHAPES)
            return tess_fail(error, TESS_OVER_LIMIT,
                             "`memory_limit`: the image would be cut into tiles of more than %d shapes",
                             TESS_BENCH_SHAPES);
        if (attempt == 0)
            TESS_TRY(tess_bench_io_bytes(study, work, &held, error));
    }
    return TESS_OK;
}

static tess_status one_width(tess_study *study, int64_t width, tess_error *error)
{
    const tess_bench_settings *s = study->settings;
    tess_cut_plan choice;
    tess_bench_work work;
    tess_bench_result result;
    TESS_TRY(choose(study, width, &choice, &work, error));
    TESS_TRY(tess_bench_measure(study, &work, s->repeats, &result, error));
    return tess_bench_tell(study, tess_bench_record(study, s->height, width, &choice, &result), error);
}

static bool add_shape(tess_plan_shape shapes[TESS_BENCH_SHAPES], int *count, tess_plan_shape shape)
{
    for (int i = 0; i < *count; i++)
        if (shapes[i].n == shape.n && shapes[i].h == shape.h && shapes[i].w == shape.w)
            return false;
    shapes[(*count)++] = shape;
    return true;
}

/* One run of each shape. */
static tess_status warm(tess_study *study, const tess_cut *cut, tess_error *error)
{
    tess_plan_shape known[TESS_BENCH_SHAPES];
    int count = 0;
    tess_window_batch batch;
    for (bool more = tess_batch_first(cut, TESS_ALL_STRIPS, &batch); more;
         more = tess_batch_next(cut, TESS_ALL_STRIPS, &batch))
        if (add_shape(known, &count, tess_batch_shape(&batch)))
            TESS_TRY(tess_bench_warm(study, tess_batch_shape(&batch), error));
    return TESS_OK;
}

tess_status tess_bench_size(tess_study *study, tess_error *error)
{
    const tess_bench_settings *s = study->settings;
    int64_t defaults[MOST];
    const int count = s->width_count ? s->width_count : default_widths(defaults);
    const int64_t *widths = s->width_count ? s->widths : defaults;
    /* The least and the largest size: kernels may differ with the size, and each is loaded on first use. */
    for (int i = 0; i < 2; i++) {
        tess_cut_plan choice;
        tess_bench_work work;
        TESS_TRY(choose(study, widths[i ? count - 1 : 0], &choice, &work, error));
        TESS_TRY(warm(study, &work.cut, error));
    }
    TESS_TRY(tess_bench_settle(study, error));
    for (int i = 0; i < count; i++)
        TESS_TRY(one_width(study, widths[i], error));
    return TESS_OK;
}
