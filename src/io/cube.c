/* cube.c: opens a cube with the reader that fits its file, and reads rows.
 *
 * image.h's readers do all checks of a file that is no array. Of an uncompressed ENVI raster GDAL is then only asked
 * what its header says: reading band by band through GDAL would read each row of a BIP file once for every band. */
#define _XOPEN_SOURCE 700
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/trace.h"
#include "io/cube_impl.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void tess_cube_lock(void)
{
    pthread_mutex_lock(&lock);
}

void tess_cube_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static tess_status open_reader(const tess_cube *cube, tess_reader **out, tess_error *error)
{
    return cube->mask ? tess_reader_open_labels(cube->memory, cube->path, out, error)
                      : tess_reader_open_doubles(cube->memory, cube->path, TESS_AXES_AUTO, out, error);
}

static tess_status describe_reader(tess_cube *cube, tess_error *error)
{
    const tess_image_info *from = tess_reader_info(cube->reader);
    if (from->alpha && !cube->mask)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "band %d of %d is alpha, which is no spectral band; leave it out with gdal_translate -b",
            from->channels, from->channels);
    cube->info = (tess_cube_info){
        .count = 1,
        .height = from->height,
        .width = from->width,
        .bands = from->channels,
        .dtype = from->dtype,
        .scale = from->says & TESS_SAYS_SCALE ? from->scale : 1,
        .offset = from->says & TESS_SAYS_SCALE ? from->offset : 0,
        .has_nodata = from->has_nodata && !from->several_nodata,
        .nodata = from->nodata,
        .georeferenced = (from->says & (TESS_SAYS_TRANSFORM | TESS_SAYS_PROJECTION | TESS_SAYS_POINTS)) != 0,
        .has_transform = (from->says & TESS_SAYS_TRANSFORM) != 0,
        .block_rows = 1,
        .held_bytes = from->held_bytes,
    };
    if (cube->info.has_transform)
        memcpy(cube->info.transform, from->transform, sizeof cube->info.transform);
    cube->colours = from->channels - from->alpha;
    cube->real = from->dtype == TESS_F32 || from->dtype == TESS_F64;
    cube->array.sample_bytes = (int)tess_dtype_size(from->dtype);
    cube->info.masked =
        !cube->mask && (from->mask_band || from->several_nodata || from->says & TESS_SAYS_MASK);
    if (!cube->reader->format->any_order)
        cube->info.held_bytes += tess_block_granted(tess_cube_bytes(&cube->info, 1));
    return TESS_OK;
}

static tess_status open_raster(tess_cube *cube, const tess_read_format *format, tess_error *error)
{
    tess_cube_facts facts = {0};
    tess_status status = open_reader(cube, &cube->reader, error);
    if (status != TESS_OK && format == &tess_read_gdal) {
        const tess_status why = tess_gdal_cube_explain(cube->path, error);
        return why != TESS_OK ? tess_fail_prefix(error, why, cube->path) : status;
    }
    TESS_TRY(status);
    status = describe_reader(cube, error);
    if (status == TESS_OK && cube->reader->format == &tess_read_gdal) {
        status = tess_gdal_cube_facts(cube->reader->state, &facts, error);
        cube->wavelengths = facts.wavelengths;
        cube->info.wavelengths = facts.wavelengths;
        cube->info.several_scales = facts.several_scales;
        cube->info.bad_bands = facts.bad_bands;
        cube->info.masked = cube->info.masked || (facts.masked && !cube->mask);
        cube->info.block_rows = tess_max_i64(tess_min_i64(facts.block_rows, cube->info.height), 1);
    }
    if (cube->info.masked)
        cube->info.held_bytes += tess_block_granted((size_t)(cube->info.width * cube->info.bands));
    if (status == TESS_OK && facts.array.order && !cube->info.masked) {
        strcpy(cube->info.stored, facts.array.order);
        tess_reader_close(cube->reader);
        cube->reader = NULL;
        status = tess_cube_array_open(cube, facts.array.offset, facts.array.swapped, error);
    }
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, cube->path);
}

tess_status tess_cube_open_as(const char *path, const tess_cube_settings *settings, bool mask,
                              tess_cube **out, tess_error *error)
{
    *out = NULL;
    const tess_read_format *format = NULL;
    tess_status status = tess_choose_format(path, &format, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, path);
    tess_cube *cube = tess_small_alloc(1, sizeof *cube);
    if (!cube || !(cube->path = tess_small_strdup(path))) {
        tess_small_free(cube);
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open the file", path);
    }
    cube->memory = settings->memory;
    cube->stop = settings->stop;
    cube->mask = mask;
    cube->nodata_given = settings->nodata_given;
    cube->nodata = settings->nodata;
    cube->array.file = -1;
    if (format == &tess_read_npy) {
        status = tess_cube_npy(cube, settings->axes, error);
        if (status != TESS_OK)
            status = tess_fail_prefix(error, status, path);
    } else {
        tess_cube_lock();
        status = open_raster(cube, format, error);
        tess_cube_unlock();
    }
    if (status == TESS_OK)
        *out = cube;
    else
        tess_cube_close(cube);
    return status;
}

tess_status tess_cube_open(const char *path, const tess_cube_settings *settings, tess_cube **out,
                           tess_error *error)
{
    return tess_cube_open_as(path, settings, false, out, error);
}

const tess_cube_info *tess_cube_describe(const tess_cube *cube)
{
    return &cube->info;
}

const char *tess_cube_path(const tess_cube *cube)
{
    return cube->path;
}

size_t tess_cube_bytes(const tess_cube_info *info, int64_t rows)
{
    return (size_t)(rows * info->width * info->bands) * tess_dtype_size(info->dtype);
}

/* For a format that is decoded from the top: opens it again for a step back, and skips rows. */
static tess_status go_to(tess_cube *cube, int64_t row, tess_error *error)
{
    if (row < cube->reader->next_row) {
        tess_reader *again = NULL;
        TESS_TRY(open_reader(cube, &again, error));
        const tess_image_info *was = &cube->reader->info, *is = tess_reader_info(again);
        const bool same = was->height == is->height && was->width == is->width &&
                          was->channels == is->channels && was->dtype == is->dtype;
        tess_reader_close(cube->reader);
        cube->reader = again;
        if (!same)
            return tess_fail(error, TESS_IO_FAILED, "%s: was replaced by another file while it was read",
                             cube->path);
    }
    if (row > cube->reader->next_row && !cube->row.data)
        TESS_TRY(tess_block_alloc(cube->memory, &cube->row, TESS_MEM_HOST, tess_cube_bytes(&cube->info, 1),
                                  error));
    while (cube->reader->next_row < row) {
        TESS_TRY(tess_stop_check(cube->stop, error));
        TESS_TRY(tess_reader_rows(cube->reader, 1, cube->row.data, error));
    }
    return TESS_OK;
}

static tess_status read_rows(tess_cube *cube, int64_t first, int64_t rows, char *samples, tess_error *error)
{
    tess_reader *reader = cube->reader;
    if (!reader->format->any_order)
        TESS_TRY(go_to(cube, first, error));
    while (rows > 0) {
        const int64_t some = tess_min_i64(rows, cube->info.block_rows - first % cube->info.block_rows);
        TESS_TRY(tess_stop_check(cube->stop, error));
        if (cube->reader->format->any_order) {
            const tess_status status = reader->format->rows(reader->state, first, some, samples, error);
            if (status != TESS_OK)
                return tess_fail_prefix(error, status, cube->path);
        } else {
            TESS_TRY(tess_reader_rows(cube->reader, some, samples, error));
        }
        first += some;
        rows -= some;
        samples += tess_cube_bytes(&cube->info, some);
    }
    return TESS_OK;
}

tess_status tess_cube_read(tess_cube *cube, int64_t image, int64_t first_row, int64_t rows, void *samples,
                           tess_error *error)
{
    const tess_cube_info *info = &cube->info;
    tess_status status = TESS_OK;
    if (image < 0 || image >= info->count || first_row < 0 || rows < 0 || rows > info->height - first_row)
        return tess_fail(error, TESS_INTERNAL,
                         "%s: rows %lld to %lld of image %lld asked of %lld x %lld rows", cube->path,
                         (long long)first_row, (long long)(first_row + rows), (long long)image,
                         (long long)info->count, (long long)info->height);
    if (!cube->reader) {
        const double start = tess_trace_begin(cube->memory->trace);
        status = tess_cube_array_read(cube, image, first_row, rows, samples, error);
        tess_trace_end(cube->memory->trace, TESS_TRACE_READ, "read a cube", start);
        return status == TESS_OK || status == TESS_INTERRUPTED ? status
                                                               : tess_fail_prefix(error, status, cube->path);
    }
    tess_cube_lock();
    status = read_rows(cube, first_row, rows, samples, error);
    tess_cube_unlock();
    return status;
}

void tess_cube_close(tess_cube *cube)
{
    if (!cube)
        return;
    if (cube->reader) {
        tess_cube_lock();
        tess_reader_close(cube->reader);
        tess_cube_unlock();
    }
    if (cube->array.file >= 0)
        close(cube->array.file);
    tess_block_free(&cube->array.piece);
    tess_block_free(&cube->row);
    tess_block_free(&cube->valid);
    tess_small_free(cube->wavelengths);
    tess_small_free(cube->path);
    tess_small_free(cube);
}
