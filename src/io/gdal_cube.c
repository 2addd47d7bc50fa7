/* gdal_cube.c: what GDAL knows of a cube beyond an image: wavelengths, scales and blocks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/cube_impl.h"
#include "io/gdal_envi.h"
#include "io/gdal_void.h"

/* GDAL offers the wavelength in the domain IMAGERY since 3.10, always in micrometres. */
static const char *wavelength_of(GDALDatasetH dataset, int number, const char **unit)
{
    GDALRasterBandH band = tess_gdal.GDALGetRasterBand(dataset, number);
    const char *text = tess_gdal.GDALGetMetadataItem(band, "wavelength", NULL);
    const char *named = tess_gdal.GDALGetMetadataItem(band, "wavelength_units", NULL);
    *unit = named ? named
                  : tess_gdal_envi_field(
                        dataset, "wavelength_units"); /* GDAL gives bands only the units that it knows */
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
    const int listed = items_of(tess_gdal_envi_field(dataset, "wavelength"));
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

/* How many bands the header's list of bad bands (bbl) marks with 0; none, if the list is not one of all bands. */
static int count_bad(GDALDatasetH dataset, int bands)
{
    const char *list = tess_gdal_envi_field(dataset, "bbl");
    int bad = 0;
    if (items_of(list) != bands)
        return 0;
    for (const char *at = list; at; at = strchr(at + 1, ',')) {
        char *end = NULL;
        bad += strtod(at + 1, &end) == 0 && end != at + 1;
    }
    return bad;
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

tess_status tess_gdal_cube_facts(void *reader_state, tess_cube_facts *facts, tess_error *error)
{
    GDALDatasetH dataset = tess_gdal_reader_dataset(reader_state);
    const int bands = tess_gdal.GDALGetRasterCount(dataset);
    int block_width = 0, block_height = 0;
    *facts = (tess_cube_facts){0};
    tess_gdal.GDALGetBlockSize(tess_gdal.GDALGetRasterBand(dataset, 1), &block_width, &block_height);
    facts->block_rows = block_height;
    facts->several_scales = scales_differ(dataset, bands);
    facts->masked = tess_gdal_has_mask(dataset);
    facts->bad_bands = count_bad(dataset, bands);
    tess_status status = tess_gdal_envi_array(dataset, &facts->array, error);
    if (status == TESS_OK)
        status = find_wavelengths(dataset, bands, facts, error);
    tess_gdal.CPLErrorReset();
    return status;
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
