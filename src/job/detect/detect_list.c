/* detect_list.c: the list of detections as CSV or GeoJSON. Rows and columns count from 0, at the centres of pixels; x and y
 * are in the cube's own coordinates, if its file has a transform. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>

#include "job/detect/detect_job.h"

/* The centre of a detection in the coordinates of its cube; false: it has none. */
static bool place_of(const tess_detect_job *job, const tess_detection *d, double *x, double *y)
{
    const tess_cube_info *info = &job->input.list.entries[job->input.file[d->image]].info;
    const double *t = info->transform, column = d->column + 0.5, row = d->row + 0.5;
    *x = info->has_transform ? t[0] + column * t[1] + row * t[2] : d->column;
    *y = info->has_transform ? t[3] + column * t[4] + row * t[5] : d->row;
    return info->has_transform;
}

static void write_csv(FILE *file, const tess_detect_job *job, const tess_detection *list, int64_t count)
{
    fprintf(file,
            "file,image,row,column,pixels,score,mean_score,peak_row,peak_column,top,left,bottom,right,x,y\n");
    for (int64_t i = 0; i < count; i++) {
        const tess_detection *d = &list[i];
        const char *path = job->input.list.entries[job->input.file[d->image]].path;
        fputc('"', file);
        for (; *path; path++) { /* quotes are doubled */
            if (*path == '"')
                fputc('"', file);
            fputc(*path, file);
        }
        fprintf(file, "\",%lld,%.3f,%.3f,%lld,%.9g,%.9g,%lld,%lld,%lld,%lld,%lld,%lld,",
                (long long)job->input.place[d->image], d->row, d->column, (long long)d->pixels, d->largest,
                d->sum / (double)d->pixels, (long long)d->peak_row, (long long)d->peak_column,
                (long long)d->top, (long long)d->left, (long long)d->bottom, (long long)d->right);
        double x, y;
        if (place_of(job, d, &x, &y))
            fprintf(file, "%.10g,%.10g\n", x, y);
        else
            fprintf(file, ",\n");
    }
}

static tess_json *feature(const tess_detect_job *job, const tess_detection *d)
{
    tess_json *one = tess_json_object(), *geometry = tess_json_object(), *point = tess_json_array(),
              *properties = tess_json_object();
    double x, y;
    place_of(job, d, &x, &y);
    tess_json_append_double(&point, x);
    tess_json_append_double(&point, y);
    tess_json_set_string(&geometry, "type", "Point");
    tess_json_set(&geometry, "coordinates", point);
    tess_json_set_string(&properties, "file", job->input.list.entries[job->input.file[d->image]].path);
    tess_json_set_int(&properties, "image", job->input.place[d->image]);
    tess_json_set_double(&properties, "row", d->row);
    tess_json_set_double(&properties, "column", d->column);
    tess_json_set_int(&properties, "pixels", d->pixels);
    tess_json_set_double(&properties, "score", d->largest);
    tess_json_set_double(&properties, "mean_score", d->sum / (double)d->pixels);
    tess_json_set_string(&one, "type", "Feature");
    tess_json_set(&one, "geometry", geometry);
    tess_json_set(&one, "properties", properties);
    return one;
}

static tess_status write_geojson(FILE *file, const tess_detect_job *job, const tess_detection *list,
                                 int64_t count, tess_error *error)
{
    fprintf(file, "{\"type\": \"FeatureCollection\", \"coordinates_are\": \"%s\", \"features\": [",
            job->input.list.entries[0].info.has_transform ? "those of the cube"
                                                          : "column and row of the image");
    for (int64_t i = 0; i < count; i++) {
        tess_json *one = feature(job, &list[i]);
        char *text = tess_json_dump(one, false);
        tess_json_free(one);
        if (!text)
            return tess_fail(error, TESS_NO_MEMORY, "no memory for the list of detections");
        fprintf(file, "%s\n%s", i ? "," : "", text);
        tess_small_free(text);
    }
    fprintf(file, "\n]}\n");
    return TESS_OK;
}

static tess_status write_list(const tess_detect_job *job, const tess_temp *temp, const tess_detection *list,
                              int64_t count, tess_error *error)
{
    FILE *file = tess_temp_open(temp);
    tess_status status = TESS_OK;
    if (!file)
        return tess_temp_fail(errno, error);
    if (tess_detect_has_suffix(job->settings->detections, ".csv"))
        write_csv(file, job, list, count);
    else
        status = write_geojson(file, job, list, count, error);
    const bool failed = ferror(file) != 0;
    if ((fclose(file) != 0 || failed) && status == TESS_OK)
        status = tess_temp_fail(errno, error);
    return status;
}

tess_status tess_detect_list(const tess_detect_job *job, tess_error *error)
{
    const char *path = job->settings->detections;
    int64_t count;
    const tess_detection *list = tess_objects_sorted(job->objects, &count);
    tess_temp *temp = NULL;
    tess_status status = list ? tess_temp_create(path, &temp, error)
                              : tess_fail(error, TESS_NO_MEMORY, "no memory for the list of detections");
    if (status == TESS_OK)
        status = write_list(job, temp, list, count, error);
    if (status == TESS_OK)
        status = tess_temp_commit(temp, path, error);
    tess_temp_remove(temp);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}
