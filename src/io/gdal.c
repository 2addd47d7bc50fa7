/* gdal.c: what a file that GDAL reads holds: TIFF, JPEG, raw rasters and other local formats (gdal_open.c). The memory held is known:
 * the strip of gdal_read.c, the share of the cache, the library's block buffers, and the coefficients of a progressive JPEG. */
#define _XOPEN_SOURCE 700
#include "io/gdal_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "io/gdal_envi.h"
#include "io/gdal_metadata.h"
#include "io/gdal_reader.h"
#include "io/jp2_probe.h"
#include "io/jpeg_probe.h"
#include "io/pages.h"

static const struct {
    GDALDataType gdal;
    tess_dtype dtype;
    GDALDataType buffer;
    double full_scale;
} kinds[] = {
    {GDT_Byte, TESS_U8, GDT_Byte, 255},
    {GDT_UInt16, TESS_U16, GDT_UInt16, 65535},
    {GDT_Int16, TESS_I16, GDT_Int16, 32767},
    {GDT_UInt32, TESS_U32, GDT_UInt32, 4294967295.0},
    {GDT_Int32, TESS_I32, GDT_Int32, 2147483647},
    {GDT_Float32, TESS_F32, GDT_Float32, 1},
    {GDT_Float64, TESS_F32, GDT_Float32, 1},
    {GDT_Float64, TESS_F64, GDT_Float64, 1}, /* to keep doubles */
};

static const char *structure_of(GDALMajorObjectH object, const char *item)
{
    const char *value = tess_gdal.GDALGetMetadataItem(object, item, "IMAGE_STRUCTURE");
    return value ? value : "";
}

/* GDAL shows most TIFFs of one bit as a palette of black and white. */
static bool is_bilevel(GDALRasterBandH band)
{
    GDALColorTableH table = tess_gdal.GDALGetRasterColorTable(band);
    if (strcmp(structure_of(band, "NBITS"), "1") != 0)
        return false;
    for (int i = 0; table && i < tess_gdal.GDALGetColorEntryCount(table); i++) {
        const GDALColorEntry *entry = tess_gdal.GDALGetColorEntry(table, i);
        const short gray = i ? 255 : 0;
        if (entry && (entry->c1 != gray || entry->c2 != gray || entry->c3 != gray))
            return false;
    }
    return true;
}

/* A palette that contains only grays (BMP always has one) does not count. */
static bool has_palette(GDALRasterBandH band)
{
    GDALColorTableH table = tess_gdal.GDALGetRasterColorTable(band);
    if (!table)
        return false;
    int count = tess_gdal.GDALGetColorEntryCount(table);
    for (int i = 0; i < count; i++) {
        const GDALColorEntry *entry = tess_gdal.GDALGetColorEntry(table, i);
        if (entry && (entry->c1 != i || entry->c2 != i || entry->c3 != i))
            return true;
    }
    return count < 256;
}

/* GDAL shows the reversed grays of such a TIFF as a palette. They are read as they are stored. */
static bool white_is_zero(GDALDatasetH dataset)
{
    return strcmp(structure_of(dataset, "MINISWHITE"), "YES") == 0;
}

static tess_status check_bands(const tess_gdal_reader *reader, GDALDataType type, bool labels,
                               tess_error *error)
{
    for (int b = 1; b <= reader->channels; b++) {
        GDALRasterBandH band = tess_gdal.GDALGetRasterBand(reader->dataset, b);
        if (tess_gdal.GDALGetRasterDataType(band) != type)
            return tess_fail(error, TESS_UNSUPPORTED,
                             "bands 1 and %d have different types; save them with one type", b);
        if (!labels && has_palette(band) && !white_is_zero(reader->dataset) && !is_bilevel(band))
            return tess_fail(error, TESS_UNSUPPORTED,
                             "has a palette; expand it first: gdal_translate -expand rgb IN OUT.tif");
        if (b < reader->channels && tess_gdal.GDALGetRasterColorInterpretation(band) == GCI_AlphaBand)
            return tess_fail(
                error, TESS_UNSUPPORTED,
                "band %d of %d is alpha, which is only read as the last band; put it there with "
                "gdal_translate -b, or mark it as no alpha: gdal_edit.py -colorinterp_%d undefined",
                b, reader->channels, b);
        const char *bits = structure_of(band, "NBITS");
        const bool sign = strcmp(structure_of(band, "PIXELTYPE"), "SIGNEDBYTE") == 0;
        if (sign)
            return tess_fail(
                error, TESS_UNSUPPORTED,
                "has samples of int8, of which gdal_translate may make unsigned ones; save them as "
                "int16, in NumPy: band.view('int8').astype('int16')");
        if (!labels && strlen(bits) == 1 && bits[0] < '8' && bits[0] != '1')
            return tess_fail(
                error, TESS_UNSUPPORTED,
                "has samples of %c bit(s), from 0 to %d; scale them to 8 bits: gdal_translate -ot Byte "
                "-scale 0 %d 0 255 -co NBITS=8 IN OUT.tif",
                bits[0], (1 << (bits[0] - '0')) - 1, (1 << (bits[0] - '0')) - 1);
    }
    return TESS_OK;
}

static const char *driver_of(GDALDatasetH dataset)
{
    return tess_gdal.GDALGetDescription(tess_gdal.GDALGetDatasetDriver(dataset));
}

/* GDAL presents a TIFF of one compressed strip row by row,
 * but libtiff reads that strip as a whole; OpenJPEG decodes into 32-bit samples, and more for a part of a tile; libwebp decodes the whole
 * image. */
int64_t tess_gdal_decoder_bytes(GDALDatasetH dataset, const char *path, int64_t block, int64_t image)
{
    const char *driver = driver_of(dataset);
    if (strcmp(driver, "JPEG") == 0)
        return (int64_t)tess_jpeg_coefficients(path);
    if (strcmp(driver, "JP2OpenJPEG") == 0) {
        int width = 0, height = 0;
        tess_gdal.GDALGetBlockSize(tess_gdal.GDALGetRasterBand(dataset, 1), &width, &height);
        return tess_max_i64(4 * block, tess_jp2_decoder_bytes(path, (int64_t)width * height));
    }
    if (strcmp(driver, "WEBP") == 0)
        return image;
    struct stat about;
    GDALRasterBandH band = tess_gdal.GDALGetRasterBand(dataset, 1);
    const char *text = tess_gdal.GDALGetMetadataItem(band, "BLOCK_SIZE_0_0", "TIFF");
    int64_t strip = text ? strtoll(text, NULL, 10) : 0;
    if (strip > block && stat(path, &about) == 0)
        return tess_min_i64(strip, about.st_size);
    return 0;
}

/* Finds GDAL's block sizes and computes from them the memory that will be held. */
static tess_status measure(tess_gdal_reader *reader, const char *path, GDALDataType type,
                           tess_image_info *info, tess_error *error)
{
    int block_width = 0, block_height = 0;
    tess_gdal.GDALGetBlockSize(tess_gdal.GDALGetRasterBand(reader->dataset, 1), &block_width, &block_height);
    const bool pixels = strcmp(structure_of(reader->dataset, "INTERLEAVE"), "PIXEL") == 0;
    int64_t together = pixels ? tess_gdal.GDALGetRasterCount(reader->dataset) : 1;
    int64_t block = tess_gdal.GDALGetDataTypeSizeBytes(type), image = (int64_t)reader->sample_bytes;
    bool fits = block_width > 0 && block_height > 0 && tess_mul_i64(block, block_width, &block) &&
                tess_mul_i64(block, block_height, &block) && tess_mul_i64(block, together, &block) &&
                tess_mul_i64(image, reader->channels, &image) && tess_mul_i64(image, reader->width, &image) &&
                tess_mul_i64(image, reader->height, &image) && block < INT64_MAX / 16 &&
                image < INT64_MAX / 16;
    if (!fits)
        return tess_fail(error, TESS_BAD_INPUT, "promises an impossible size of %lld x %lld x %d",
                         (long long)reader->height, (long long)reader->width, reader->channels);
    reader->block_rows = tess_min_i64(block_height, reader->height);
    reader->row_bytes = (size_t)(image / reader->height);
    reader->cache = 2 * (block + 512 * together) + reader->empty.cache;
    reader->counted = tess_min_i64(reader->cache, 2 * image) + tess_min_i64(2 * block, 2 * image) +
                      tess_gdal_decoder_bytes(reader->dataset, path, block, image);
    info->held_bytes = (size_t)reader->counted + tess_gdal_void_held(&reader->empty);
    if (reader->block_rows > 1)
        info->held_bytes += tess_block_granted(reader->row_bytes * (size_t)reader->block_rows);
    return TESS_OK;
}

static tess_status describe(tess_gdal_reader *reader, const char *path, tess_image_info *info,
                            tess_error *error)
{
    GDALDatasetH dataset = reader->dataset;
    reader->height = tess_gdal.GDALGetRasterYSize(dataset);
    reader->width = tess_gdal.GDALGetRasterXSize(dataset);
    reader->channels = tess_gdal.GDALGetRasterCount(dataset);
    if (reader->channels < 1 || reader->height < 1 || reader->width < 1)
        return tess_fail(error, TESS_BAD_INPUT, "holds no raster; name a file of one image");
    const char *space = structure_of(dataset, "SOURCE_COLOR_SPACE");
    const char *foreign = strcmp(space, "CMYK") == 0 || strcmp(space, "YCbCrK") == 0 ? "CMYK"
                          : strcmp(space, "CIELAB") == 0                             ? "CIELAB"
                                                                                     : NULL;
    if (foreign && reader->channels == 4) /* GDAL makes RGB of it and adds an alpha that says nothing */
        reader->channels = 3;
    GDALRasterBandH last = tess_gdal.GDALGetRasterBand(dataset, reader->channels);
    GDALDataType type = tess_gdal.GDALGetRasterDataType(tess_gdal.GDALGetRasterBand(dataset, 1));
    size_t k = 0, count = sizeof kinds / sizeof *kinds;
    while (k < count && (kinds[k].gdal != type ||
                         (type == GDT_Float64 && (kinds[k].dtype == TESS_F64) != (info->dtype == TESS_F64))))
        k++;
    if (k == count)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "has samples of type %s; convert it to Byte, UInt16, Int16, UInt32, Int32 or Float32",
            tess_gdal.GDALGetDataTypeName(type));
    TESS_TRY(check_bands(reader, type, info->labels, error));
    reader->type = kinds[k].buffer;
    reader->doubles = type == GDT_Float64 && kinds[k].dtype == TESS_F32;
    reader->sample_bytes = tess_dtype_size(kinds[k].dtype);
    *info = (tess_image_info){
        .height = reader->height,
        .width = reader->width,
        .channels = reader->channels,
        .alpha = reader->channels > 1 && tess_gdal.GDALGetRasterColorInterpretation(last) == GCI_AlphaBand,
        .dtype = kinds[k].dtype,
        .doubles = type == GDT_Float64,
        .full_scale = kinds[k].full_scale,
        .labels = info->labels,
    };
    info->foreign = foreign;
    tess_gdal_find_maximum(dataset, path, info);
    tess_gdal_find_rgb(dataset, info);
    TESS_TRY(tess_gdal_void_open(&reader->empty, dataset, info, error));
    tess_gdal_says(dataset, info);
    TESS_TRY(tess_pam_meaning(path, info, error));
    if (white_is_zero(dataset))
        info->says |= TESS_SAYS_WHITE;
    if (strcmp(driver_of(dataset), "JPEG") == 0 && tess_jpeg_full_chroma(path))
        info->says |= TESS_SAYS_CHROMA;
    if (strcmp(driver_of(dataset), "JPEG") == 0 && tess_jpeg_has_unclear_inks(path))
        info->says |= TESS_SAYS_INKS;
    return measure(reader, path, type, info, error);
}

static void close_reader(void *state)
{
    tess_gdal_reader *reader = state;
    if (reader->dataset)
        tess_gdal.GDALClose(reader->dataset);
    if (reader->started)
        tess_gdal_cache_share(reader->memory, -reader->cache, -reader->counted);
    tess_gdal_void_close(&reader->empty);
    tess_block_free(&reader->strip);
    tess_small_free(reader);
}

/* A georeferenced file makes GDAL load PROJ and its database (8 MiB). Load them now, before memory is measured. */
static tess_status load_for(const char *path, tess_error *error)
{
    TESS_TRY(tess_gdal_load(error));
    GDALDatasetH dataset = NULL;
    if (tess_gdal_open(path, 0, &dataset, NULL) == TESS_OK) { /* errors are reported when the file is read */
        tess_gdal_warm_georeference(dataset);
        tess_gdal.GDALClose(dataset);
    }
    tess_gdal.CPLErrorReset();
    return TESS_OK;
}

static tess_status open_reader(tess_memory *memory, const char *path, tess_image_info *info, void **state,
                               tess_error *error)
{
    TESS_TRY(tess_gdal_load(error));
    tess_gdal_reader *reader = tess_small_alloc(1, sizeof *reader);
    if (!reader)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    reader->memory = memory;
    tess_status status = tess_gdal_open(path, info->page, &reader->dataset, error);
    if (status == TESS_OK)
        status = tess_gdal_envi_size(reader->dataset, path, error);
    if (status == TESS_OK && !info->page && strcmp(driver_of(reader->dataset), "GTiff") == 0)
        status = tess_pages_check_one(path, error);
    if (status == TESS_OK && strcmp(driver_of(reader->dataset), "JPEG") == 0 && !tess_jpeg_has_end(path))
        status =
            tess_fail(error, TESS_BAD_INPUT,
                      "truncated, or damaged: it has no end marker (EOI) after its image; copy it again");
    if (status == TESS_OK)
        status = describe(reader, path, info, error);
    if (status == TESS_OK)
        *state = reader;
    else
        close_reader(reader);
    return status;
}

static tess_status valid_rows(void *state, int64_t first, int64_t count, const void *rows,
                              unsigned char *valid, tess_error *error)
{
    return tess_gdal_void_rows(&((tess_gdal_reader *)state)->empty, first, count, rows, valid, error);
}

GDALDatasetH tess_gdal_reader_dataset(void *reader_state)
{
    return ((tess_gdal_reader *)reader_state)->dataset;
}

const tess_read_format tess_read_gdal = {.name = "GDAL",
                                         .load = load_for,
                                         .open = open_reader,
                                         .rows = tess_gdal_read_rows,
                                         .valid = valid_rows,
                                         .close = close_reader,
                                         .any_order = true};
