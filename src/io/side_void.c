/* side_void.c: GDAL programs keep the nodata value of a PNG in NAME.png.aux.xml, and its mask in NAME.png.msk, a TIFF
 * of the same size with one band, or one for each channel, in which 0 marks void samples. PNG files are read without
 * GDAL; only the mask needs it. */
#define _XOPEN_SOURCE 700
#include "io/side_void.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "io/pam.h"

bool tess_side_mask(const char *path, char name[PATH_MAX])
{
    struct stat about;
    return snprintf(name, PATH_MAX, "%s.msk", path) < PATH_MAX && stat(name, &about) == 0;
}

static tess_status open_mask(tess_side_void *v, tess_error *error)
{
    tess_reader_close(v->mask);
    v->mask = NULL;
    v->next = 0;
    return tess_reader_open_labels(v->memory, v->mask_path, &v->mask, error); /* of one bit as well */
}

static tess_status take_mask(tess_side_void *v, const char *name, tess_image_info *info, tess_error *error)
{
    if (!(v->mask_path = tess_small_strdup(name)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    tess_status status = open_mask(v, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, "its mask");
    const tess_image_info *mask = tess_reader_info(v->mask);
    if (mask->height != info->height || mask->width != info->width || mask->dtype != TESS_U8 ||
        (mask->channels != 1 && mask->channels != info->channels))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "its mask %s is %lld x %lld with %d band(s) of %s, not %lld x %lld with 1 or %d of uint8; "
            "remove it if it belongs to another image",
            name, (long long)mask->height, (long long)mask->width, mask->channels,
            tess_dtype_word(mask->dtype), (long long)info->height, (long long)info->width, info->channels);
    info->mask_band = mask->channels == 1;
    info->says |= TESS_SAYS_MASK;
    const size_t row = (size_t)(mask->width * mask->channels);
    info->held_bytes += mask->held_bytes + tess_block_granted(row);
    return TESS_OK;
}

tess_status tess_side_void_open(tess_side_void *v, tess_memory *memory, const char *path,
                                tess_image_info *info, tess_error *error)
{
    char name[PATH_MAX];
    *v = (tess_side_void){.memory = memory,
                          .nodata = tess_small_alloc((size_t)info->channels, sizeof *v->nodata)};
    if (!v->nodata)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    TESS_TRY(tess_pam_nodata(path, info->channels, v->nodata, error));
    TESS_TRY(tess_pam_meaning(path, info, error));
    if (tess_nodata_describe(v->nodata, info)) {
        info->says |= TESS_SAYS_NODATA;
    } else {
        tess_small_free(v->nodata);
        v->nodata = NULL;
    }
    if (tess_side_mask(path, name))
        TESS_TRY(take_mask(v, name, info, error));
    info->masked = v->nodata || v->mask;
    v->info = *info;
    return TESS_OK;
}

static tess_status mask_row(tess_side_void *v, int64_t y, unsigned char *valid, tess_error *error)
{
    const int bands = tess_reader_info(v->mask)->channels, channels = v->info.channels;
    unsigned char *row = v->row.data;
    if (!row) {
        TESS_TRY(tess_block_alloc(v->memory, &v->row, TESS_MEM_HOST, (size_t)(v->info.width * bands), error));
        row = v->row.data;
    }
    if (y < v->next)
        TESS_TRY(open_mask(v, error));
    for (; v->next <= y; v->next++)
        TESS_TRY(tess_reader_rows(v->mask, 1, row, error));
    for (int64_t x = 0; x < v->info.width; x++)
        for (int c = 0; c < channels; c++)
            valid[x * channels + c] = row[bands == 1 ? x : x * bands + c] != 0;
    return TESS_OK;
}

tess_status tess_side_void_rows(tess_side_void *v, int64_t first, int64_t count, const void *rows,
                                unsigned char *valid, tess_error *error)
{
    const int64_t samples = v->info.width * v->info.channels;
    memset(valid, 1, (size_t)(count * samples));
    for (int64_t y = 0; v->mask && y < count; y++)
        TESS_TRY(mask_row(v, first + y, valid + y * samples, error));
    if (v->nodata)
        tess_nodata_mark(v->nodata, &v->info, rows, count * v->info.width, valid);
    return TESS_OK;
}

void tess_side_void_close(tess_side_void *v)
{
    tess_reader_close(v->mask);
    tess_small_free(v->mask_path);
    tess_small_free(v->nodata);
    tess_block_free(&v->row);
    *v = (tess_side_void){0};
}
