/* gdal_raster_way.c: which driver writes a result, whether the input's bytes can be updated in place, and with
 * which options a copy is made when they cannot.
 *
 * In place: GeoTIFF that stays GeoTIFF, and the same for ENVI and Erdas Imagine. Not in place: a COG, whose order of parts an
 * update breaks; lossy compression, which would change valid pixels of every touched block; a classic TIFF that
 * may grow beyond 4 GiB; creation options that ask for something else. */
#define _XOPEN_SOURCE 700
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/checked.h"
#include "io/gdal_drivers.h"
#include "io/gdal_raster_output.h"
#include "io/tiff.h"

static const struct {
    const char *suffix, *driver;
} suffixes[] = {{".tif", "GTiff"}, {".tiff", "GTiff"}, {".img", "ENVI"},    {".bsq", "ENVI"},
                {".bil", "ENVI"},  {".bip", "ENVI"},   {".asc", "AAIGrid"}, {".jp2", "JP2OpenJPEG"}};

static bool is(const char *one, const char *other)
{
    return strcmp(one, other) == 0;
}

static tess_status find_driver(const tess_raster *raster, const char *target, const char *format,
                               const char **driver, tess_error *error)
{
    static const char *const known[] = {"GTiff", "COG", "ENVI", "HFA", "AAIGrid", "JP2OpenJPEG"};
    for (size_t i = 0; format && i < sizeof known / sizeof *known; i++)
        if (strcasecmp(format, known[i]) == 0) {
            *driver = known[i];
            return TESS_OK;
        }
    if (format)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "`format` %s is not written; there are GTiff, COG, ENVI, AAIGrid, JP2OpenJPEG, and HFA "
            "for files of that format",
            format);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (tess_suffix_is(target, suffixes[i].suffix)) {
            const bool cog = is(tess_raster_structure(raster->dataset, "LAYOUT"), "COG"),
                       imagine = is(raster->info.driver, "HFA") && is(suffixes[i].suffix, ".img");
            *driver = imagine ? "HFA" : cog && is(suffixes[i].driver, "GTiff") ? "COG" : suffixes[i].driver;
            return TESS_OK;
        }
    return tess_fail(
        error, TESS_BAD_OPTION,
        "rasters are not written with this suffix; use .tif, .img, .bil, .asc or .jp2, or name the "
        "`format`");
}

static bool is_lossy(const tess_raster *raster)
{
    const char *how = tess_raster_structure(raster->dataset, "COMPRESSION"),
               *back = tess_raster_structure(raster->dataset, "COMPRESSION_REVERSIBILITY");
    return strstr(how, "JPEG") || ((is(how, "WEBP") || is(how, "JXL")) && !strstr(back, "LOSSLESS"));
}

static bool is_classic(const char *path)
{
    unsigned char head[4] = {0};
    FILE *file = fopen(path, "rb");
    const bool whole = file && fread(head, 1, sizeof head, file) == sizeof head;
    if (file)
        fclose(file);
    return whole && (head[2] == 42 || head[3] == 42);
}

/* Every block may be written once more, at the end of the file, when its compressed size grows. */
static bool may_overflow(const tess_raster *raster)
{
    const tess_raster_info *info = &raster->info;
    const int64_t size = raster->about.st_size,
                  image = info->height * info->width * info->bands * (int64_t)tess_dtype_size(info->dtype),
                  growth = tess_raster_structure(raster->dataset, "COMPRESSION")[0] ? image
                           : size < image                                           ? image - size
                                                                                    : 0;
    return is_classic(raster->path) && size + growth + growth / 2 > 4200000000;
}

/* True when parts of an Erdas Imagine raster are in files that it refers to by their names. */
static bool has_parts(const char *path)
{
    static const char *const parts[] = {".ige", ".rrd", ".rde"};
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    const int stem = dot && !(slash && dot < slash) ? (int)(dot - path) : (int)strlen(path);
    char name[PATH_MAX];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (snprintf(name, sizeof name, "%.*s%s", stem, path, parts[i]) < (int)sizeof name &&
            access(name, F_OK) == 0)
            return true;
    return false;
}

/* A pixel that becomes valid in a mask or alpha band becomes valid in all bands, which were not filled. */
static tess_status check_marks(const tess_raster_info *info, tess_error *error)
{
    if (info->marked < 2)
        return TESS_OK;
    char too[32] = "";
    if (info->alpha)
        snprintf(too, sizeof too, " -b %d", info->alpha);
    return tess_fail(
        error, TESS_BAD_INPUT,
        "cannot be written: %d bands share the input's %s, so the voids of the others would count as "
        "heights; copy band %d to a file of its own with gdal_translate -b %d%s",
        info->marked, info->alpha ? "alpha band" : "mask", info->band, info->band, too);
}

/* What a format cannot hold, and GDAL would leave out or turn upside down without a word. */
static tess_status check_format(const tess_raster_info *info, const char *driver, bool converted,
                                tess_error *error)
{
    if (is(driver, "JP2OpenJPEG") && info->dtype != TESS_U8 && info->dtype != TESS_U16 &&
        info->dtype != TESS_I16)
        return tess_fail(error, TESS_BAD_OPTION, "JPEG 2000 does not hold %s here; write .tif",
                         tess_dtype_word(info->dtype));
    const bool tiff = is(driver, "GTiff") || is(driver, "COG"), jp2 = is(driver, "JP2OpenJPEG");
    if (converted && !tiff && (info->mask_band || (info->alpha && !jp2)))
        return tess_fail(error, TESS_BAD_OPTION,
                         "%s holds no %s, by which the input marks its voids; write .tif", driver,
                         info->alpha ? "alpha band" : "mask band");
    if (converted && (jp2 || is(driver, "AAIGrid")) && (info->scale != 1 || info->offset != 0))
        return tess_fail(error, TESS_BAD_OPTION,
                         "%s holds no scale and offset, which the input's heights need; write .tif", driver);
    if (is(driver, "AAIGrid") &&
        (!info->has_transform || info->transform[2] != 0 || info->transform[4] != 0 ||
         info->transform[1] <= 0 || info->transform[5] >= 0 || info->bands > 1))
        return tess_fail(
            error, TESS_BAD_OPTION,
            "an ASCII grid holds one band of a raster whose first row is the northernmost, without "
            "rotation; write .tif");
    return TESS_OK;
}

/* GDAL only warns of options that a format does not have, or of values that they do not take. */
static tess_status check_creation(const tess_raster_target *settings, const char *driver, tess_error *error)
{
    GDALDriverH handle = tess_gdal.GDALGetDriverByName(driver);
    for (const char *const *at = settings->creation; at && *at; at++) {
        char *one[] = {(char *)*at, NULL};
        tess_gdal.CPLErrorReset();
        if (tess_gdal.GDALValidateCreationOptions(handle, one))
            continue;
        const char *why = tess_gdal.CPLGetLastErrorMsg();
        const int length = (int)strlen(why) - (strlen(why) > 0 && why[strlen(why) - 1] == '.');
        return tess_fail(error, TESS_BAD_OPTION, "`creation` %s: %.*s; see the page of GDAL's driver %s", *at,
                         length, why, driver);
    }
    tess_gdal.CPLErrorReset();
    return TESS_OK;
}

tess_status tess_raster_way_find(const tess_raster *raster, const char *target,
                                 const tess_raster_target *settings, tess_raster_way *way, tess_error *error)
{
    const tess_raster_info *info = &raster->info;
    const bool tiff = is(info->driver, "GTiff"), options = settings->creation && settings->creation[0];
    *way = (tess_raster_way){0};
    TESS_TRY(find_driver(raster, target, settings->format, &way->driver, error));
    way->lossy = tiff && is_lossy(raster);
    way->big = tiff && may_overflow(raster);
    way->bytes = tiff && !way->lossy && !way->big;
    if (is(way->driver, "GTiff"))
        way->bytes = way->bytes && !options && !is(tess_raster_structure(raster->dataset, "LAYOUT"), "COG");
    else if (is(way->driver, info->driver) && !options &&
             (is(info->driver, "ENVI") || is(info->driver, "HFA")))
        way->bytes = true;
    else
        way->convert = true;
    TESS_TRY(check_marks(info, error));
    TESS_TRY(check_format(info, way->driver, way->convert, error));
    if (is(way->driver, "HFA") && (!way->bytes || way->convert || has_parts(raster->path)))
        return tess_fail(error, TESS_BAD_OPTION,
                         "Erdas Imagine is only written for an input of that format in one file; write .tif");
    if (!is(way->driver, "GTiff") && !tess_gdal_add_writer(way->driver))
        return tess_fail(error, TESS_UNSUPPORTED, "the installed GDAL has no %s driver; write .tif",
                         way->driver);
    return check_creation(settings, way->driver, error);
}

static char **set_number(char **options, const char *name, int64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)number);
    return tess_gdal.CSLSetNameValue(options, name, text);
}

static char **add_given(char **options, const tess_raster_target *settings)
{
    for (const char *const *at = settings->creation; at && *at; at++) {
        char name[64];
        const char *equal = strchr(*at, '=');
        if (!equal || (size_t)(equal - *at) >= sizeof name)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(equal - *at), *at);
        options = tess_gdal.CSLSetNameValue(options, name, equal + 1);
    }
    return options;
}

/* The compression of a TIFF, if it is one that keeps pixels and GDAL can write. */
static const char *compression_of(const tess_raster *raster)
{
    static const char *const kept[] = {"LZW",      "DEFLATE", "ZSTD",         "LZMA",
                                       "PACKBITS", "LERC",    "LERC_DEFLATE", "LERC_ZSTD"};
    const char *own = tess_raster_structure(raster->dataset, "COMPRESSION");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (is(own, kept[i]))
            return kept[i];
    return own[0] ? "DEFLATE" : "NONE";
}

static bool can_predict(const char *compression)
{
    return is(compression, "LZW") || is(compression, "DEFLATE") || is(compression, "ZSTD");
}

char **tess_raster_work_options(const tess_raster *raster, const tess_raster_way *way,
                                const tess_raster_target *settings)
{
    const tess_raster_info *info = &raster->info;
    const bool tiff = is(info->driver, "GTiff"), tiled = !tiff || info->block_width < info->width;
    char **options = tess_gdal.CSLSetNameValue(NULL, "BIGTIFF", way->big ? "YES" : "IF_SAFER");
    options = tess_gdal.CSLSetNameValue(options, "TILED", tiled ? "YES" : "NO");
    if (tiff && !way->convert) {
        const char *how = compression_of(raster),
                   *predictor = tess_raster_structure(raster->dataset, "PREDICTOR");
        options = tess_gdal.CSLSetNameValue(options, "COMPRESS", how);
        if (can_predict(how) && predictor[0])
            options = tess_gdal.CSLSetNameValue(options, "PREDICTOR", predictor);
        if (tiled && info->block_width % 16 == 0 && info->block_height % 16 == 0)
            options = set_number(options, "BLOCKXSIZE", info->block_width);
        if (info->block_height % 16 == 0 || !tiled)
            options = set_number(options, "BLOCKYSIZE", info->block_height);
    }
    if (info->overviews > 0 && tiff)
        options = tess_gdal.CSLSetNameValue(options, "COPY_SRC_OVERVIEWS", "YES");
    return is(way->driver, "GTiff") ? add_given(options, settings) : options;
}

static char **cog_options(const tess_raster *raster)
{
    const tess_raster_info *info = &raster->info;
    const char *how = compression_of(raster);
    char **options = tess_gdal.CSLSetNameValue(NULL, "BIGTIFF", "IF_SAFER");
    options = tess_gdal.CSLSetNameValue(options, "COMPRESS", is(how, "PACKBITS") ? "LZW" : how);
    if (can_predict(how) && atoi(tess_raster_structure(raster->dataset, "PREDICTOR")) > 1)
        options = tess_gdal.CSLSetNameValue(options, "PREDICTOR", "YES");
    if (info->block_width == info->block_height && info->block_width % 16 == 0 && info->block_width >= 128)
        options = set_number(options, "BLOCKSIZE", info->block_width);
    return options;
}

char **tess_raster_result_options(const tess_raster *raster, const tess_raster_way *way, const char *target,
                                  const tess_raster_target *settings)
{
    char **options = NULL;
    if (is(way->driver, "COG")) {
        options = cog_options(raster);
        if (settings->resampling)
            options = tess_gdal.CSLSetNameValue(options, "OVERVIEW_RESAMPLING", settings->resampling);
    } else if (is(way->driver, "ENVI")) {
        const char *interleave = tess_gdal_driver_of(target)->interleave;
        options = tess_gdal.CSLSetNameValue(NULL, "SUFFIX", "ADD");
        options = tess_gdal.CSLSetNameValue(options, "INTERLEAVE", interleave ? interleave : "BSQ");
    } else if (is(way->driver, "JP2OpenJPEG")) {
        options = tess_gdal.CSLSetNameValue(NULL, "CODEC", "JP2"); /* else it goes by the suffix */
        options = tess_gdal.CSLSetNameValue(options, "QUALITY", "100");
        options = tess_gdal.CSLSetNameValue(options, "REVERSIBLE", "YES");
    }
    return add_given(options, settings);
}
