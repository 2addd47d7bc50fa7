#include <math.h>
#include <string.h>

#include "base/process.h"
#include "job/common/choice.h"
#include "job/common/note.h"
#include "job/common/record.h"
#include "job/reconstruct/look/colours.h"
#include "job/reconstruct/mask/hidden.h"
#include "job/reconstruct/plan/choose.h"
#include "job/reconstruct/problem/views.h"
#include "job/reconstruct/reconstruct_impl.h"
#include "job/reconstruct/scan/detector_grid.h"

static const double COARSE = 1.45; /* pixels in the side of a voxel */

/* Chooses the network for the image. A colour network assumes that all colours share their edges; in the synthetic
 * picture each colour has its own, so there colours are denoised one by one, as are measured ones that share their noise. */
static tess_status find_model(tess_reconstruct_job *job, tess_error *error)
{
    const int64_t channels = job->problem.channels;
    const bool published = job->settings->preset && strcmp(job->settings->preset, "deepinv") == 0,
               drawn = job->problem.synthetic && !job->problem.image;
    const char *name = job->settings->model                     ? job->settings->model
                       : channels == 3 && (published || !drawn) ? "drunet-color-small"
                                                                : "drunet-gray-small";
    const bool flat = job->problem.depth == 1,
               slices = job->settings->prior && strcmp(job->settings->prior, "slices") == 0;
    TESS_TRY(job->recipe.volume
                 ? tess_engine_volume_of(&job->engine, name, job->recipe.inflation, &job->prior.model, error)
                 : tess_engine_model_of(&job->engine, name, &job->prior.model, error));
    const tess_model_net *model = &job->prior.model->model;
    if (model->channels != channels && model->channels != 1)
        return tess_fail(error, TESS_BAD_OPTION, "the image has %lld channel(s), but the model %s takes %lld",
                         (long long)channels, name, (long long)model->channels);
    if (model->volume && flat)
        return tess_fail(error, TESS_BAD_OPTION, "the model %s takes volumes; %s is an image", name,
                         job->problem.name);
    if (model->volume && slices)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`prior` slices: the model %s takes volumes; leave it out, or use a 2-D one", name);
    job->prior.engine = &job->engine;
    if (model->channels != TESS_TOGETHER_COLOURS)
        return TESS_OK;
    return tess_together_replace(&job->problem.colours, job->problem.measurement,
                                 job->settings->model != NULL, &job->settings->common)
               ? tess_engine_bundled_of(&job->engine, 1, &job->prior.model, error)
               : TESS_OK;
}

/* The caller's record and trace must not replace a file that is read: each may also be a folder of views. */
static tess_status check_record(const tess_problem *p, const tess_common *common, tess_error *error)
{
    const char *const read[] = {p->measurement, p->truth, p->geometry, p->image, p->flat, p->dark},
                      *const own[] = {common->record_file, common->trace_file};
    TESS_TRY(tess_record_apart(common, read, 6, error));
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 2 && read[i]; k++)
            if (own[k] && tess_views_same_file(own[k], read[i]))
                return tess_record_apart(common, &own[k], 1, error);
    for (int64_t i = 0; p->kernel_files && i < p->count; i++)
        TESS_TRY(tess_record_apart(common, (const char *const *)&p->kernel_files[i], 1, error));
    return TESS_OK;
}

/* Voxels hold means of edges that the rays see sharply, which no such volume explains; small voxels that are averaged
 * afterwards do, and end above a filtered backprojection again. */
static void note_coarse(const tess_problem *p, const tess_common *common)
{
    const double side = p->detector_grid ? p->detector_grid[0].column_step : 1;
    const int64_t parts = side < 2 ? 2 : (int64_t)lround(side), slices = p->depth > 1 ? parts : 1;
    if (side >= COARSE)
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: its voxels are %.3g pixels wide, as seen at the axis; \"volume\": [%lld, %lld, %lld] with "
            "\"spacing\": %.10g, and the mean of each %lld x %lld x %lld voxels afterwards, takes longer "
            "but is far more exact",
            p->name, side, (long long)(slices * p->depth), (long long)(parts * p->height),
            (long long)(parts * p->width), p->spacing / (double)parts, (long long)slices, (long long)parts,
            (long long)parts);
}

static tess_status describe_problem(tess_reconstruct_job *job, tess_context *context, tess_error *error)
{
    const tess_reconstruct_settings *s = job->settings;
    TESS_TRY(tess_reconstruct_check(s, error));
    TESS_TRY(tess_problem_describe(&context->memory, &job->before, s, &job->problem, error));
    TESS_TRY(tess_detector_grid_choose(&job->problem, error));
    TESS_TRY(tess_problem_find_hidden(&job->problem, &s->common, error));
    TESS_TRY(tess_problem_find_colours(&job->problem, error));
    const tess_problem *p = &job->problem;
    if (p->detector_grid)
        tess_note(&s->common, TESS_NOTE_DETAIL,
                  "%s: views of %lld x %lld pixels are resampled to %lld x %lld, so that rows lie before "
                  "slices and pixels are not smaller than voxels; \"resample\": false keeps them",
                  p->measurement, (long long)p->file_rows, (long long)p->file_columns, (long long)p->rows,
                  (long long)p->columns);
    note_coarse(p, &s->common);
    if (p->bare_integers)
        tess_note(
            &s->common, TESS_NOTE_WARNING,
            "%s: its integers are taken as line integrals; raw counts need \"flat\" (and \"dark\") in %s",
            p->measurement, p->name);
    TESS_TRY(check_record(p, &s->common, error));
    TESS_TRY(tess_recipe_of(s, &job->problem, &job->recipe, error));
    return tess_parts_check(context->dist, s, p, error);
}

static tess_status check_files(const tess_reconstruct_job *job, tess_error *error)
{
    const tess_reconstruct_settings *s = job->settings;
    const char *const weights = job->prior.model->path;
    TESS_TRY(tess_record_apart(&s->common, &weights, 1, error));
    const char *used[] = {s->output, s->side_by_side, s->save_measurement};
    for (int i = 0; i < 3; i++)
        if (used[i])
            TESS_TRY(tess_image_load_library(used[i], error));
    for (int i = 0; i < 3; i++) /* reported by the plan and, before any work, by the run */
        if (used[i])
            TESS_TRY(tess_writer_check_folder(used[i], error));
    return TESS_OK;
}

/* Ranks share the operator on the CPU, beside the card that the network may have. */
static tess_status place_operator(tess_reconstruct_job *job, tess_error *error)
{
    tess_workspace *w = &job->workspace;
    const bool beside = job->engine.dist->size > 1 && job->engine.separate_memory;
    if (beside)
        TESS_TRY(tess_beside_open(&job->beside, &job->engine, error));
    w->engine = &job->engine;
    w->device = beside ? job->beside.device : job->engine.device;
    w->rates = beside ? job->beside.rates : job->engine.rates;
    job->prior.links = beside ? &job->links : NULL;
    return TESS_OK;
}

/* With `device` auto ranks stay on the CPU. */
tess_status tess_reconstruct_describe(tess_reconstruct_job *job, tess_context *context, bool will_run,
                                      tess_error *error)
{
    const tess_reconstruct_settings *s = job->settings;
    tess_dist *dist = context->dist;
    TESS_TRY(tess_dist_agree(dist, describe_problem(job, context, error), error));
    TESS_TRY(tess_choice_open_ranks(&job->engine, dist, &context->memory, &s->common, error));
    job->problem.stop = &job->engine.stop;
    TESS_TRY(tess_dist_agree(dist, find_model(job, error), error));
    if (dist->size == 1)
        TESS_TRY(tess_reconstruct_choose(&job->engine, s, &job->problem, &job->recipe, &job->prior, error));
    TESS_TRY(tess_dist_agree(dist, check_files(job, error), error));
    TESS_TRY(tess_dist_agree(dist, place_operator(job, error), error));
    TESS_TRY(tess_parts_divide(&job->parts, &job->problem, &job->prior, job->workspace.rates,
                               job->recipe.iterations, error));
    job->problem.share = job->prior.share = &job->parts.share;
    job->problem.halo = job->parts.blurs.way == TESS_BLURS_HALO;
    job->prior.slices = job->problem.depth > 1;
    if (job->prior.links && tess_prior_in_strips(&job->prior))
        TESS_TRY(tess_card_links_open(&job->links, &job->engine, &s->common, will_run, error));
    tess_process_reset_peak();
    tess_memory_reset_peak(&context->memory);
    job->usage.overhead = tess_process_resident();
    return TESS_OK;
}
