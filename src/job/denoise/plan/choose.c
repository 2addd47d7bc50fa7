/* The work of a denoise job, to decide on its device: the windows of all files through the network. */
#include "base/checked.h"
#include "job/common/choice.h"
#include "job/denoise/denoise.h"

/* Sizes that are planned; files of further sizes count by their pixels. */
enum { MOST_SIZES = 16 };

typedef struct sizes {
    tess_work work;
    tess_work_phase *phase;
    const tess_denoise_file *file[MOST_SIZES];
    double times[MOST_SIZES];
    int count;
} sizes;

static double pixels_of(const tess_denoise_file *file)
{
    return (double)tess_denoise_rows(&file->info) * (double)file->info.width;
}

static bool same_size(const tess_denoise_file *a, const tess_denoise_file *b)
{
    return a->model == b->model && a->info.height == b->info.height && a->info.width == b->info.width &&
           a->info.depth == b->info.depth && a->request.planes == b->request.planes;
}

static void add_file(sizes *s, const tess_denoise_file *file)
{
    for (int i = 0; i < s->count; i++)
        if (same_size(s->file[i], file)) {
            s->times[i]++;
            return;
        }
    if (s->count < MOST_SIZES) {
        s->file[s->count] = file;
        s->times[s->count++] = 1;
    } else {
        s->times[0] += pixels_of(file) / pixels_of(s->file[0]);
    }
}

/* A limit that is too small here may do on another device: then the least cut is what is predicted. */
static tess_status add_size(sizes *s, const tess_denoise_job *job, const tess_denoise_file *file,
                            double times, tess_error *error)
{
    const tess_bound *bound = file->model->bound;
    const tess_rates *rates = job->engine.rates;
    tess_cut_request request = file->request;
    tess_cut_plan plan;
    const uint64_t asked = job->settings->common.memory_limit;
    const double slices = job->volumes ? 1 : (double)tess_max_i64(1, file->info.depth);
    request.limit = asked ? asked : tess_engine_free_limit(&job->engine);
    if (job->volumes) {
        request.size[TESS_DEPTH] = file->info.depth;
        request.halo[TESS_DEPTH] = request.halo[TESS_HEIGHT];
        request.batch = 1;
    }
    const tess_status status = tess_cut_choose(bound, &file->model->model, rates, &request, &plan, error);
    if (status != TESS_OK && status != TESS_OVER_LIMIT)
        return status;
    TESS_TRY(tess_work_add_cut(&s->work, s->phase, rates, bound, &request, &plan, times * slices, error));
    const double runs = times * slices * (double)(plan.depth.tiles * plan.rows.tiles * plan.cols.tiles) /
                        (double)plan.batch,
                 windows = (double)tess_axis_total_window(&plan.rows) *
                           (double)tess_axis_total_window(&plan.cols) /
                           (double)(file->info.height * file->info.width);
    const tess_cut cut = tess_cut_of(&plan);
    const double rows = times * (double)tess_denoise_rows(&file->info);
    s->work.shapes += (double)tess_cut_shapes(&cut);
    s->phase->up += windows * rows * (double)request.in_row_bytes;
    s->phase->down += rows * (double)request.out_row_bytes;
    s->phase->copies += runs;
    s->phase->pieces += runs;
    return TESS_OK;
}

static tess_status list(const tess_denoise_job *job, sizes *s, tess_error *error)
{
    s->phase = tess_work_begin(&s->work, "denoise", "denoise");
    s->phase->pieces = 0;
    s->phase->copies_overlap = !job->volumes;
    s->work.card_precision = tess_choice_card_precision(job->settings->common.precision, "F16");
    for (int m = 0; m < job->engine.model_count; m++)
        s->work.weight_bytes += 4 * (double)job->engine.models[m].model.parameters;
    for (int64_t i = 0; i < job->count; i++)
        if (tess_denoise_todo(&job->files[i]))
            add_file(s, &job->files[i]);
    for (int i = 0; i < s->count; i++)
        TESS_TRY(add_size(s, job, s->file[i], s->times[i], error));
    return TESS_OK;
}

tess_status tess_denoise_choose(tess_denoise_job *job, tess_error *error)
{
    sizes s = {.count = 0};
    const bool on_host = !job->engine.separate_memory;
    if (!tess_choice_wants_work(&job->engine))
        return TESS_OK;
    tess_status status = tess_dist_agree(job->engine.dist, list(job, &s, error), error);
    if (status == TESS_OK)
        status = tess_choice_settle(&job->engine, &job->settings->common, &s.work, error);
    tess_work_clear(&s.work);
    for (int64_t i = 0; i < job->count && status == TESS_OK && on_host && job->engine.separate_memory; i++)
        if (tess_denoise_todo(&job->files[i]))
            tess_denoise_request(&job->engine, job->settings, &job->files[i]);
    return status;
}
