/* gdal_cube.c: what GDAL knows of a cube beyond an image: wavelengths, and where an ENVI raster has its samples.
 *
 * GDAL has parsed the ENVI header and shows its fields as metadata of the domain "ENVI", so there is no second parser. */
#define _XOPEN_SOURCE 700
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "io/cube_impl.h"
#include "io/gdal_api.h"

static const char *field(GDALDatasetH dataset, const char *name)
{
    const char *text = tess_gdal.GDALGetMetadataItem(dataset, name, "ENVI");
    return text ? text : "";
}

/* GDAL offers the wavelength in the domain IMAGERY since 3.10, always in micrometres. */
static const char *wavelength_of(GDALDatasetH dataset, int number, const char **unit)
{
    GDALRasterBandH band = tess_gdal.GDALGetRasterBand(dataset, number);
    const char *text = tess_gdal.GDALGetMetadataItem(band, "wavelength", NULL);
    const char *named = tess_gdal.GDALGetMetadataItem(band, "wavelength_units", NULL);
    *unit = named ? named
                  : field(dataset, "wavelength_units"); /* GDAL gives bands only the units that it knows */
    if (text && text[0])
        return text;
    *unit = "um";
    return tess_gdal.GDALGetMetadataItem(band, "CENTRAL_WAVELENGTH_UM", "IMAGERY");
}

static bool read_number(const char *text, double *value)
{
    char *end = NULL;
    *value = strtod(text, &end);
    return end != text && end[strspn(end, " \t\r\n")] == '\0';
}

/* How many items a list "{1, 2, 3}" has; 0: it is none. */
static int items_of(const char *list)
{
    int items = list[0] == '{' && list[strspn(list, "{} \t\r\n")] ? 1 : 0;
    for (const char *at = list; items > 0 && *at; at++)
        items += *at == ',';
    return items;
}

static tess_status find_wavelengths(GDALDatasetH dataset, int bands, tess_cube_facts *facts,
                                    tess_error *error)
{
    const int listed = items_of(field(dataset, "wavelength"));
    if (listed > 0 && listed != bands)
        return tess_fail(error, TESS_BAD_INPUT,
                         "its header lists %d wavelengths for %d bands; correct or remove the list", listed,
                         bands);
    double *values = tess_small_alloc((size_t)bands, sizeof *values);
    if (!values)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    const char *unit = "", *first = "";
    bool known = true;
    for (int b = 0; known && b < bands; b++) {
        const char *text = wavelength_of(dataset, b + 1, &unit);
        first = b == 0 ? unit : first;
        known = text && read_number(text, &values[b]) && strcasecmp(first, unit) == 0;
    }
    if (known && tess_wavelengths_to_nm(values, bands, first))
        facts->wavelengths = values;
    else
        tess_small_free(values);
    return TESS_OK;
}

static bool scales_differ(GDALDatasetH dataset, int bands)
{
    double first[2] = {1, 0};
    for (int b = 1; b <= bands; b++) {
        GDALRasterBandH band = tess_gdal.GDALGetRasterBand(dataset, b);
        int given = FALSE;
        double now[2];
        now[0] = tess_gdal.GDALGetRasterScale(band, &given);
        now[0] = given ? now[0] : 1;
        now[1] = tess_gdal.GDALGetRasterOffset(band, &given);
        now[1] = given ? now[1] : 0;
        if (b > 1 && memcmp(first, now, sizeof now) != 0)
            return true;
        memcpy(first, now, sizeof now);
    }
    return false;
}

static bool is_envi(GDALDatasetH dataset)
{
    return strcmp(tess_gdal.GDALGetDescription(tess_gdal.GDALGetDatasetDriver(dataset)), "ENVI") == 0;
}

/* Sets the order of axes; leaves it NULL if GDAL must read the file. GDAL takes an unknown order for BSQ. */
static tess_status find_array(GDALDatasetH dataset, tess_cube_facts *facts, tess_error *error)
{
    static const struct {
        const char *interleave, *order;
    } orders[] = {{"bsq", "CHW"}, {"bil", "HCW"}, {"bip", "HWC"}};
    const bool big = strtol(field(dataset, "byte_order"), NULL, 10) != 0;
    const char *interleave = field(dataset, "interleave");
    if (!is_envi(dataset) || strtol(field(dataset, "file_compression"), NULL, 10) != 0)
        return TESS_OK;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (strncasecmp(interleave, orders[i].interleave, 3) == 0)
            facts->order = orders[i].order;
    if (!facts->order && interleave[0])
        return tess_fail(error, TESS_BAD_INPUT, "its header says interleave %.40s; expected bsq, bil or bip",
                         interleave);
    facts->offset = strtoll(field(dataset, "header_offset"), NULL, 10);
    facts->swapped = big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return TESS_OK;
}

tess_status tess_gdal_cube_facts(void *reader_state, tess_cube_facts *facts, tess_error *error)
{
    GDALDatasetH dataset = tess_gdal_reader_dataset(reader_state);
    const int bands = tess_gdal.GDALGetRasterCount(dataset);
    int block_width = 0, block_height = 0;
    *facts = (tess_cube_facts){0};
    tess_gdal.GDALGetBlockSize(tess_gdal.GDALGetRasterBand(dataset, 1), &block_width, &block_height);
    facts->block_rows = block_height;
    facts->several_scales = scales_differ(dataset, bands);
    tess_status status = find_array(dataset, facts, error);
    if (status == TESS_OK)
        status = find_wavelengths(dataset, bands, facts, error);
    tess_gdal.CPLErrorReset();
    return status;
}

tess_status tess_gdal_envi_size(GDALDatasetH dataset, const char *path, tess_error *error)
{
    const int height = tess_gdal.GDALGetRasterYSize(dataset), width = tess_gdal.GDALGetRasterXSize(dataset),
              bands = tess_gdal.GDALGetRasterCount(dataset);
    tess_cube_facts facts = {0};
    struct stat about;
    if (bands < 1 || !is_envi(dataset))
        return TESS_OK;
    const GDALDataType type = tess_gdal.GDALGetRasterDataType(tess_gdal.GDALGetRasterBand(dataset, 1));
    TESS_TRY(find_array(dataset, &facts, error));
    int64_t bytes = tess_gdal.GDALGetDataTypeSizeBytes(type);
    if (!facts.order || stat(path, &about) != 0 || !tess_mul_i64(bytes, height, &bytes) ||
        !tess_mul_i64(bytes, width, &bytes) || !tess_mul_i64(bytes, bands, &bytes) ||
        !tess_add_i64(bytes, facts.offset, &bytes) || bytes == about.st_size ||
        (bytes < about.st_size && (bands == 1 || strcmp(facts.order, "CHW") != 0)))
        return TESS_OK;
    return tess_fail(
        error, TESS_BAD_INPUT,
        "its header says %d x %d x %d samples of %s after %lld bytes, which are %lld bytes, but the file "
        "has %lld; correct the header or copy the file again",
        height, width, bands, tess_gdal.GDALGetDataTypeName(type), (long long)facts.offset, (long long)bytes,
        (long long)about.st_size);
}

tess_status tess_gdal_cube_explain(const char *path, tess_error *error)
{
    static const char option[] = "RAW_CHECK_FILE_SIZE";
    GDALDatasetH dataset = NULL;
    tess_status status = TESS_OK;
    if (tess_gdal_load(NULL) != TESS_OK)
        return TESS_OK;
    tess_gdal.CPLSetThreadLocalConfigOption(option, "NO");
    if (tess_gdal_open(path, 0, &dataset, NULL) == TESS_OK)
        status = tess_gdal_envi_size(dataset, path, error);
    if (dataset)
        tess_gdal.GDALClose(dataset);
    tess_gdal.CPLSetThreadLocalConfigOption(option, NULL);
    tess_gdal.CPLErrorReset();
    return status;
}
