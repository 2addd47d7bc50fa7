/* bench size: memory and time against the image's width, for widths that the networks' grid divides and for
 * widths that it does not. The curve that others show with jumps is a line here. */
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

/* The runs of one image, as the denoise job cuts it. */
static tess_status work_of(const tess_cut_plan *choice, tess_bench_work *work, tess_error *error)
{
    *work = (tess_bench_work){.count = 0};
    for (int64_t r = 0; r < choice->rows.tiles; r++) {
        tess_span rows = tess_axis_span(&choice->rows, r);
        for (int64_t c = 0, n; c < choice->cols.tiles; c += n) {
            n = tess_axis_run(&choice->cols, c, choice->batch);
            tess_span cols = tess_axis_span(&choice->cols, c);
            tess_plan_shape shape = {n, rows.window_to - rows.window_from, cols.window_to - cols.window_from,
                                     TESS_INFER};
            if (!tess_bench_add(work, shape, 1))
                return tess_fail(error, TESS_OVER_LIMIT,
                                 "--memory: the image would be cut into tiles of more than %d shapes",
                                 TESS_BENCH_SHAPES);
        }
    }
    return TESS_OK;
}

/* The plan of the denoise job, for an image that lies on the device: its rows take nothing on the host, and what
 * the study holds besides is taken from the limit. */
static tess_status choose(tess_study *study, int64_t width, tess_cut_plan *choice, tess_bench_work *work,
                          tess_error *error)
{
    const tess_bench_settings *s = study->settings;
    uint64_t held = 0;
    tess_cut_request request = {.size = {1, s->height, width},
                                .planes = 1,
                                .halo = {0, s->halo, s->halo},
                                .separate_memory = study->engine.apart,
                                .host_limit = UINT64_MAX,
                                .limit = tess_bench_limit(study),
                                .asked_limit = s->common.memory_limit};
    for (int attempt = 0; attempt < 2; attempt++) { /* the second knows what the tiles' input takes */
        request.others = held;
        TESS_TRY(tess_cut_choose(study->model->bound, &study->model->model, study->engine.rates, &request,
                                 choice, error));
        TESS_TRY(work_of(choice, work, error));
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

tess_status tess_bench_size(tess_study *study, tess_error *error)
{
    const tess_bench_settings *s = study->settings;
    int64_t defaults[MOST];
    const int count = s->width_count ? s->width_count : default_widths(defaults);
    const int64_t *widths = s->width_count ? s->widths : defaults;
    /* The least and the largest: engines may differ with the size, and every one of them is loaded on its first use. */
    for (int i = 0; i < 2; i++) {
        tess_cut_plan choice;
        tess_bench_work work;
        TESS_TRY(choose(study, widths[i ? count - 1 : 0], &choice, &work, error));
        for (int k = 0; k < work.count; k++)
            TESS_TRY(tess_bench_warm(study, work.shapes[k].shape, error));
    }
    TESS_TRY(tess_bench_settle(study, error));
    for (int i = 0; i < count; i++)
        TESS_TRY(one_width(study, widths[i], error));
    return TESS_OK;
}
