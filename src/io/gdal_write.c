/* gdal_write.c: writing through GDAL: TIFF, JPEG, ENVI rasters, BMP.
 *
 * The suffix chooses the driver (gdal_drivers.c). Rows are passed to GDAL as they arrive; gdal_files.c handles
 * the files after the last row. GDAL reports a full disk late, and in its last message, not in a return value.
 * So the message is checked after each step, and the size of an uncompressed file is checked after closing. */
#define _XOPEN_SOURCE 700
#include "io/gdal_drivers.h"
#include "io/gdal_files.h"
#include "io/gdal_metadata.h"
#include "io/gdal_void.h"
#include "io/side_void.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"

typedef struct gdal_writer {
    tess_memory *memory;
    GDALDatasetH dataset;
    GDALDatasetH
        mask; /* the image that was read, opened again for its mask, or NAME.msk; NULL: no mask to write */
    bool mask_file;
    tess_image_info info;
    GDALDataType type;
    size_t row_bytes;
    int64_t cache, counted;
    bool started;
    bool whole_rows;     /* blocks are one row high: no block is incomplete between calls */
    tess_extras *extras; /* not owned */
    tess_gdal_files files;
} gdal_writer;

/* The option ALPHA marks the first sample after the colours of PHOTOMETRIC. Alpha after other samples is marked
 * once the bands exist. */
static const char *alpha_option(const tess_image_info *info, const char *photometric)
{
    const int colours = strcmp(photometric, "RGB") == 0 ? 3 : strcmp(photometric, "CMYK") == 0 ? 4 : 1;
    if (!info->alpha || info->channels != colours + 1)
        return "NO";
    return info->premultiplied ? "PREMULTIPLIED" : "YES";
}

/* A TIFF with samples of one bit stays one. */
static bool is_bilevel(const tess_image_info *info)
{
    return info->dtype == TESS_U8 && info->full_scale == 1;
}

/* The least size of an uncompressed file. */
static int64_t least_bytes(const gdal_writer *writer)
{
    const int64_t bytes = (int64_t)writer->row_bytes * writer->info.height;
    return is_bilevel(&writer->info) ? bytes / 8 : bytes;
}

static char **driver_options(const gdal_writer *writer, const char *photometric)
{
    const tess_image_info *info = &writer->info;
    const char *name = writer->files.staging ? "GTiff" : writer->files.driver->name;
    char **options = NULL;
    if (strcmp(name, "GTiff") == 0) {
        options = tess_gdal.CSLSetNameValue(options, "INTERLEAVE", "PIXEL");
        options = tess_gdal.CSLSetNameValue(options, "BIGTIFF", "IF_SAFER");
        options = tess_gdal.CSLSetNameValue(options, "PHOTOMETRIC", photometric);
        options = tess_gdal.CSLSetNameValue(options, "ALPHA", alpha_option(info, photometric));
        if (is_bilevel(info))
            options = tess_gdal.CSLSetNameValue(options, "NBITS", "1");
    } else if (strcmp(name, "ENVI") == 0) {
        options = tess_gdal.CSLSetNameValue(options, "INTERLEAVE", writer->files.driver->interleave);
        options = tess_gdal.CSLSetNameValue(options, "SUFFIX", "ADD");
    }
    return options;
}

static void close_dataset(gdal_writer *writer)
{
    if (writer->dataset)
        tess_gdal.GDALClose(writer->dataset);
    if (writer->mask)
        tess_gdal.GDALClose(writer->mask);
    writer->dataset = writer->mask = NULL;
}

static void close_writer(void *state)
{
    gdal_writer *writer = state;
    close_dataset(writer);
    if (writer->started)
        tess_gdal_cache_share(writer->memory, -writer->cache, -writer->counted);
    tess_gdal_files_free(&writer->files);
    tess_small_free(writer);
}

/* Opens the image again, because another thread may be using the reader's dataset when the mask is copied at
 * the end. An image that is read without GDAL has its mask in a file. */
static void prepare_mask(gdal_writer *writer, GDALDatasetH like, const char *like_path)
{
    char name[PATH_MAX];
    writer->mask_file = !like;
    if (like) {
        const char *driver[] = {tess_gdal.GDALGetDescription(tess_gdal.GDALGetDatasetDriver(like)), NULL};
        writer->mask = tess_gdal.GDALOpenEx(tess_gdal.GDALGetDescription(like),
                                            GDAL_OF_RASTER | GDAL_OF_READONLY, driver, NULL, NULL);
    } else if (!like_path || !tess_side_mask(like_path, name) ||
               tess_gdal_open(name, 0, &writer->mask, NULL) != TESS_OK) {
        writer->mask = NULL;
    }
    if (!writer->mask)
        return; /* an empty mask would make every sample void */
    tess_gdal.CPLSetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES"); /* no separate .msk file */
    if (tess_gdal.GDALCreateDatasetMaskBand(writer->dataset, GMF_PER_DATASET) != CE_None) {
        tess_gdal.GDALClose(writer->mask);
        writer->mask = NULL;
    }
    tess_gdal.CPLSetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", NULL);
}

/* What side files say (pam.c) is unknown to the dataset from which metadata is copied. */
static void keep_sides(gdal_writer *writer, GDALDatasetH like)
{
    const tess_image_info *info = &writer->info;
    const bool same = (!like || tess_gdal.GDALGetRasterCount(like) == info->channels) && !info->foreign;
    const bool scaled = info->says & TESS_SAYS_SCALE && isnormal(info->scale) && isfinite(info->offset);
    for (int b = 1; same && b <= info->channels; b++) {
        int given = FALSE, moved = FALSE;
        GDALRasterBandH band = tess_gdal.GDALGetRasterBand(writer->dataset, b);
        tess_gdal.GDALGetRasterNoDataValue(band, &given);
        if (!given && info->has_nodata)
            tess_gdal.GDALSetRasterNoDataValue(band, tess_gdal_written_nodata(info, info->nodata));
        tess_gdal.GDALGetRasterScale(band, &given);
        tess_gdal.GDALGetRasterOffset(band, &moved);
        if (given || moved || !scaled)
            continue;
        if (info->scale != 1)
            tess_gdal.GDALSetRasterScale(band, info->scale);
        if (info->offset != 0)
            tess_gdal.GDALSetRasterOffset(band, info->offset);
    }
    tess_gdal.CPLErrorReset();
}

static bool prepare(gdal_writer *writer, GDALDatasetH like, const char *name, const char *like_path)
{
    int block_width = 0, block_height = 0;
    tess_gdal_copy_metadata(like, writer->dataset, &writer->info, name, writer->extras);
    if (!writer->info.only_place)
        keep_sides(writer, like);
    if (strcmp(name, "ENVI") == 0)
        tess_gdal_describe_envi(like, writer->dataset, writer->files.target);
    if (tess_gdal_files_tiff(&writer->files) &&
        !tess_gdal_set_extras(writer->extras, &writer->info, writer->dataset))
        return false;
    if (tess_gdal_keeps_mask(writer->files.target, &writer->info))
        prepare_mask(writer, like, like_path);
    tess_gdal.GDALGetBlockSize(tess_gdal.GDALGetRasterBand(writer->dataset, 1), &block_width, &block_height);
    writer->whole_rows = block_height == 1;
    return true;
}

static tess_status create_writer(const tess_create *create, void **state, tess_error *error)
{
    TESS_TRY(tess_gdal_load(error));
    TESS_TRY(tess_gdal_have_room(TESS_GDAL_ROOM, error));
    gdal_writer *writer = tess_small_alloc(1, sizeof *writer);
    if (!writer)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    const tess_image_info *info = create->info;
    GDALDatasetH like = create->like ? tess_gdal_reader_dataset(create->like) : NULL;
    tess_status status = TESS_OK;
    char **options = NULL;
    writer->memory = create->memory;
    writer->info = *info;
    writer->extras = create->extras;
    writer->type = tess_gdal_type_of(info->dtype);
    writer->row_bytes = tess_gdal_row_bytes(info);
    tess_gdal_measure(create->target, info, &writer->cache, &writer->counted);
    if (!tess_gdal_files_name(&writer->files, create)) {
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
        goto cleanup;
    }
    const char *name = writer->files.staging ? "GTiff" : writer->files.driver->name;
    GDALDriverH maker = tess_gdal.GDALGetDriverByName(name);
    if (!maker || !tess_gdal.GDALGetDriverByName(writer->files.driver->name)) {
        status = tess_fail(error, TESS_UNSUPPORTED, "the installed GDAL has no %s driver; write .png or .npy",
                           writer->files.driver->name);
        goto cleanup;
    }
    const bool rgb = info->channels == 3 && tess_gdal_only_rgb(create->target); /* writer.c has put them so */
    GDALDatasetH colours = info->only_place ? NULL : like;
    options = driver_options(writer, rgb ? "RGB" : tess_gdal_photometric(colours, info, create->extras));
    tess_gdal.CPLErrorReset();
    writer->dataset =
        tess_gdal.GDALCreate(maker, writer->files.staging ? writer->files.staging : writer->files.temp,
                             (int)info->width, (int)info->height, info->channels, writer->type, options);
    if (!writer->dataset)
        status = tess_gdal_fail(error, TESS_IO_FAILED, "cannot be written");
    else if (!prepare(writer, like, name, create->like_path))
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for its colour profile");
cleanup:
    tess_gdal.CSLDestroy(options);
    if (status == TESS_OK)
        *state = writer;
    else
        close_writer(writer);
    return status;
}

static tess_status write_rows(void *state, int64_t first, int64_t count, const void *rows, tess_error *error)
{
    gdal_writer *writer = state;
    const tess_image_info *info = &writer->info;
    GSpacing sample = (GSpacing)tess_dtype_size(info->dtype);
    if (!writer->started)
        tess_gdal_cache_share(writer->memory, writer->cache, writer->counted);
    writer->started = true;
    tess_gdal.CPLErrorReset();
    /* GDAL only reads the buffer of a write, but its prototype is not const. */
    CPLErr result = tess_gdal.GDALDatasetRasterIOEx(
        writer->dataset, GF_Write, 0, (int)first, (int)info->width, (int)count, (void *)(uintptr_t)rows,
        (int)info->width, (int)count, writer->type, info->channels, NULL, sample * info->channels,
        (GSpacing)writer->row_bytes, sample, NULL);
    /* Flush finished blocks now: as dirty blocks in the cache they would slow down every read of another
     * dataset. */
    for (int b = 1; b <= info->channels && writer->whole_rows; b++)
        tess_gdal.GDALFlushRasterCache(tess_gdal.GDALGetRasterBand(writer->dataset, b));
    if (result == CE_None && tess_gdal.CPLGetLastErrorType() < CE_Failure)
        return TESS_OK;
    return tess_gdal_fail_write(error);
}

static tess_status finish(void *state, tess_error *error)
{
    gdal_writer *writer = state;
    tess_gdal.CPLErrorReset();
    if (writer->mask)
        TESS_TRY(tess_gdal_copy_mask(writer->mask_file ? tess_gdal.GDALGetRasterBand(writer->mask, 1)
                                                       : tess_gdal_mask_of(writer->mask, 1),
                                     writer->dataset, writer->memory, error));
    tess_gdal.GDALFlushCache(writer->dataset);
    if (tess_gdal.CPLGetLastErrorType() >= CE_Failure)
        return tess_gdal_fail_write(error);
    if (writer->files.staging)
        TESS_TRY(tess_gdal_files_to_jpeg(&writer->files, writer->dataset, error));
    close_dataset(writer);
    if (tess_gdal.CPLGetLastErrorType() >= CE_Failure)
        return tess_gdal_fail_write(error);
    struct stat about;
    if (stat(writer->files.temp, &about) != 0 ||
        (!writer->files.staging && about.st_size < least_bytes(writer)))
        return tess_fail(error, TESS_IO_FAILED, "cannot be written completely; is the disk full?");
    return tess_gdal_files_finish(&writer->files, writer->extras, &writer->info, error);
}

const tess_write_format tess_write_gdal = {
    .name = "GDAL",
    .like_format = &tess_read_gdal,
    .holds_exif = tess_gdal_holds_exif,
    .holds = tess_gdal_holds,
    .unheld = tess_gdal_unheld,
    .accepts = tess_gdal_accepts,
    .only_rgb = tess_gdal_only_rgb,
    .held_bytes = tess_gdal_held_bytes,
    .create = create_writer,
    .rows = write_rows,
    .finish = finish,
    .close = close_writer,
};
