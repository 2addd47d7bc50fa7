#define _XOPEN_SOURCE 700
#include "job/reconstruct/run/output_impl.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "job/common/note.h"
#include "job/reconstruct/problem/views.h"

bool tess_output_is_npy(const char *path)
{
    const char *suffix = strrchr(path, '.');
    return suffix && strcasecmp(suffix, ".npy") == 0;
}

bool tess_output_holds_values(const char *path)
{
    static const char *const suffixes[] = {".npy", ".tif", ".tiff", ".img", ".bil", ".bip", ".bsq"};
    const char *suffix = strrchr(path, '.');
    for (size_t i = 0; suffix && i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcasecmp(suffix, suffixes[i]) == 0)
            return true;
    return false;
}

static tess_image_info info_of(const char *path, int64_t height, int64_t width, int64_t channels)
{
    tess_image_info info = {
        .height = height, .width = width, .channels = (int)channels, .dtype = TESS_U8, .full_scale = 255};
    if (tess_output_holds_values(path)) {
        info.dtype = TESS_F32;
        info.full_scale = 1;
    }
    return info;
}

static tess_image_info measurement_info(const tess_outputs *o)
{
    const tess_extent m = tess_problem_measurement_extent(o->problem);
    return info_of(o->measurement, m.height, m.width, m.channels);
}

static tess_image_info side_info(const tess_outputs *o)
{
    const tess_problem *p = o->problem;
    const int64_t pictures = tess_problem_has_truth(p) ? 3 : 2;
    return info_of(o->side_by_side, p->height, pictures * p->width + (pictures - 1) * TESS_GAP, p->channels);
}

static tess_image_info result_info(const tess_outputs *o)
{
    const tess_problem *p = o->problem;
    const tess_extent all = tess_problem_image_extent(p);
    if (tess_output_is_npy(o->result)) {
        tess_image_info info = info_of(o->result, all.height, all.width, all.channels);
        info.axes = p->channel_axis ? TESS_AXES_HWC : TESS_AXES_AUTO;
        return info;
    }
    tess_image_info info = info_of(o->result, p->height, p->width, p->channels);
    info.extras_bytes = p->like_measurement ? p->extras_bytes : 0;
    info.same_numbers = tess_output_holds_values(o->result); /* pictures show the range in 8 bits */
    return info;
}

/* Outputs must not overwrite measured data, which cannot be recreated. */
static tess_status check_names(const tess_outputs *o, tess_error *error)
{
    const tess_problem *p = o->problem;
    const char *const outputs[] = {o->result, o->side_by_side, o->measurement}, *const inputs[] = {
                                                                                    p->measurement, p->truth,
                                                                                    p->geometry,    p->image,
                                                                                    p->name,        p->flat,
                                                                                    p->dark};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; outputs[i] && k < 7; k++)
            if (inputs[k] && (tess_image_same_target(outputs[i], inputs[k]) ||
                              tess_views_same_file(outputs[i], inputs[k])))
                return tess_fail(error, TESS_BAD_OPTION, "%s: is read by this problem; write to another name",
                                 outputs[i]);
        for (int64_t k = 0; outputs[i] && p->kernel_files && k < p->count; k++)
            if (tess_image_same_file(outputs[i], p->kernel_files[k]))
                return tess_fail(error, TESS_BAD_OPTION, "%s: is read by this problem; write to another name",
                                 outputs[i]);
        for (int k = 0; outputs[i] && k < i; k++)
            if (outputs[k] && tess_image_same_target(outputs[i], outputs[k]))
                return tess_fail(error, TESS_BAD_OPTION, "%s: is named for two outputs", outputs[i]);
    }
    return TESS_OK;
}

tess_status tess_outputs_check(const tess_outputs *o, tess_outputs_held *held, tess_error *error)
{
    tess_image_info info = result_info(o);
    *held = (tess_outputs_held){0};
    TESS_TRY(check_names(o, error));
    TESS_TRY(tess_writer_check(o->result, &info, error));
    held->results = tess_writer_held_bytes(o->result, &info);
    if (o->side_by_side) {
        info = side_info(o);
        TESS_TRY(tess_writer_check(o->side_by_side, &info, error));
        const size_t side = tess_writer_held_bytes(o->side_by_side, &info);
        held->results = side > held->results ? side : held->results;
    }
    if (!o->measurement)
        return TESS_OK;
    if (!tess_output_is_npy(o->measurement))
        return tess_fail(error, TESS_BAD_OPTION, "`save_measurement` %s: name an .npy file", o->measurement);
    info = measurement_info(o);
    TESS_TRY(tess_writer_check(o->measurement, &info, error));
    held->measurement = tess_writer_held_bytes(o->measurement, &info);
    return TESS_OK;
}

/* Rank 0 writes. */
static bool writes(const tess_outputs *o)
{
    return !tess_share_many(o->problem->share) || o->problem->share->dist->rank == 0;
}

tess_status tess_outputs_save_measurement(const tess_outputs *o, tess_workspace *w, tess_error *error)
{
    const tess_image_info info = measurement_info(o);
    tess_writer *writer = NULL;
    tess_status status =
        writes(o) ? tess_writer_open(o->memory, o->measurement, &info, NULL, &writer, error) : TESS_OK;
    status = tess_share_agree(o->problem->share, status, error);
    if (status == TESS_OK)
        status = tess_output_rows(o, w, writer, &info, &tess_measurement_rows, error);
    tess_writer_close(writer);
    return status;
}

tess_status tess_outputs_open(tess_outputs *o, tess_error *error)
{
    const tess_image_info result = result_info(o);
    if (!writes(o))
        return TESS_OK;
    if (o->problem->like_measurement && !tess_output_is_npy(o->result))
        TESS_TRY(tess_reader_open_axes(o->memory, o->problem->measurement, TESS_AXES_PLAIN, &o->like, error));
    TESS_TRY(tess_writer_open(o->memory, o->result, &result, o->like, &o->writer, error));
    if (!o->side_by_side)
        return TESS_OK;
    const tess_image_info side = side_info(o);
    return tess_writer_open(o->memory, o->side_by_side, &side, NULL, &o->side_writer, error);
}

/* What says where pixels are, or what their values mean, and is not written. */
static void doubt_meaning(const tess_outputs *o, const tess_common *common)
{
    static const struct {
        unsigned bits;
        const char *words;
    } parts[] = {{TESS_SAYS_TRANSFORM | TESS_SAYS_PROJECTION | TESS_SAYS_POINTS, "georeference"},
                 {TESS_SAYS_SCALE | TESS_SAYS_SCALES, "scale and offset"},
                 {TESS_SAYS_UNIT, "unit"}};
    const unsigned says = o->problem->says;
    char list[64] = "";
    size_t used = 0;
    for (int i = 0; i < 3; i++)
        if (says & parts[i].bits)
            used +=
                (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", parts[i].words);
    if (used)
        tess_note(common, TESS_NOTE_WARNING, "%s: of %s this file does not hold: %s", o->result,
                  o->problem->measurement, list);
}

void tess_outputs_doubts(const tess_outputs *o, const tess_common *common)
{
    const tess_problem *p = o->problem;
    if (!writes(o))
        return;
    const char *lost = tess_writer_lost(o->writer);
    if (p->depth > 1 && !tess_output_is_npy(o->result)) /* a raster may be expected to hold all slices */
        tess_note(common, tess_output_holds_values(o->result) ? TESS_NOTE_WARNING : TESS_NOTE_DETAIL,
                  "%s: holds the slice in the middle of the volume; an .npy file holds all of it", o->result);
    if (lost)
        tess_note(common, TESS_NOTE_WARNING, "%s: of %s this format cannot hold: %s", o->result,
                  p->measurement, lost);
    if (!o->like)
        doubt_meaning(o, common);
}

tess_status tess_outputs_write(tess_outputs *o, tess_workspace *w, tess_error *error)
{
    const tess_image_info result = result_info(o);
    TESS_TRY(tess_output_rows(o, w, o->writer, &result, &tess_result_rows, error));
    tess_writer_close(o->writer); /* its memory is free for the next writer */
    o->writer = NULL;
    if (!o->side_by_side)
        return TESS_OK;
    const tess_image_info side = side_info(o);
    return tess_output_rows(o, w, o->side_writer, &side, &tess_side_rows, error);
}

void tess_outputs_close(tess_outputs *o)
{
    tess_writer_close(o->writer);
    tess_writer_close(o->side_writer);
    tess_reader_close(o->like);
    o->like = NULL;
    o->writer = o->side_writer = NULL;
}
