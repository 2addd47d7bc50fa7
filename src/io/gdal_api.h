/* gdal_api.h: GDAL's functions as a table, filled from the library at run time (private to gdal*.c).
 *
 * GDAL is never linked: the program starts, and reads PNG and NPY, on machines without it, and uses its 30 MiB
 * of resident memory only when a file needs it. gdal.h is included only for its types, so that the compiler
 * checks each call. */
#ifndef TESS_IO_GDAL_API_H
#define TESS_IO_GDAL_API_H

#if __has_include(<gdal.h>)
#include <cpl_conv.h>
#include <cpl_minixml.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>
#include <gdal_alg.h>
#include <gdal_vrt.h>
#include <gdalwarper.h>
#include <ogr_srs_api.h>
#else /* Debian's folder, for files compiled without GDAL's include folder */
#include <gdal/cpl_conv.h>
#include <gdal/cpl_minixml.h>
#include <gdal/cpl_string.h>
#include <gdal/cpl_vsi.h>
#include <gdal/gdal.h>
#include <gdal/gdal_alg.h>
#include <gdal/gdal_vrt.h>
#include <gdal/gdalwarper.h>
#include <gdal/ogr_srs_api.h>
#endif

#include "io/format.h"

#define TESS_GDAL_FUNCTIONS(X)                                                                               \
    X(CPLSetConfigOption)                                                                                    \
    X(CPLSetThreadLocalConfigOption)                                                                         \
    X(CPLSetErrorHandler)                                                                                    \
    X(CPLErrorReset)                                                                                         \
    X(CPLGetLastErrorMsg)                                                                                    \
    X(CPLGetLastErrorType)                                                                                   \
    X(CSLSetNameValue)                                                                                       \
    X(CSLDestroy)                                                                                            \
    X(VSIUnlink)                                                                                             \
    X(GDALRegisterDriver)                                                                                    \
    X(GDALDeregisterDriver)                                                                                  \
    X(GDALSetCacheMax64)                                                                                     \
    X(GDALGetDriverByName)                                                                                   \
    X(GDALOpenEx)                                                                                            \
    X(GDALCreate)                                                                                            \
    X(GDALValidateCreationOptions)                                                                           \
    X(GDALCreateCopy)                                                                                        \
    X(GDALFlushCache)                                                                                        \
    X(GDALFlushRasterCache)                                                                                  \
    X(GDALClose)                                                                                             \
    X(GDALDatasetRasterIOEx)                                                                                 \
    X(GDALGetRasterXSize)                                                                                    \
    X(GDALGetRasterYSize)                                                                                    \
    X(GDALGetRasterCount)                                                                                    \
    X(GDALGetRasterBand)                                                                                     \
    X(GDALGetRasterDataType)                                                                                 \
    X(GDALGetDataTypeSizeBytes)                                                                              \
    X(GDALGetDataTypeName)                                                                                   \
    X(GDALGetBlockSize)                                                                                      \
    X(GDALGetRasterColorInterpretation)                                                                      \
    X(GDALSetRasterColorInterpretation)                                                                      \
    X(GDALGetRasterColorTable)                                                                               \
    X(GDALGetColorEntryCount)                                                                                \
    X(GDALGetColorEntry)                                                                                     \
    X(GDALGetRasterNoDataValue)                                                                              \
    X(GDALSetRasterNoDataValue)                                                                              \
    X(GDALGetMaskBand)                                                                                       \
    X(GDALGetMaskFlags)                                                                                      \
    X(GDALCreateDatasetMaskBand)                                                                             \
    X(GDALRasterIO)                                                                                          \
    X(GDALGetGeoTransform)                                                                                   \
    X(GDALSetGeoTransform)                                                                                   \
    X(GDALGetProjectionRef)                                                                                  \
    X(GDALGetSpatialRef)                                                                                     \
    X(GDALSetSpatialRef)                                                                                     \
    X(GDALGetGCPSpatialRef)                                                                                  \
    X(GDALSetGCPs2)                                                                                          \
    X(GDALGetGCPCount)                                                                                       \
    X(GDALGetGCPs)                                                                                           \
    X(GDALGetRasterScale)                                                                                    \
    X(GDALSetRasterScale)                                                                                    \
    X(GDALGetRasterOffset)                                                                                   \
    X(GDALSetRasterOffset)                                                                                   \
    X(GDALGetRasterUnitType)                                                                                 \
    X(GDALSetRasterUnitType)                                                                                 \
    X(GDALGetRasterCategoryNames)                                                                            \
    X(GDALSetRasterCategoryNames)                                                                            \
    X(GDALGetDatasetDriver)                                                                                  \
    X(GDALGetDescription)                                                                                    \
    X(GDALSetDescription)                                                                                    \
    X(GDALGetMetadataDomainList)                                                                             \
    X(GDALGetMetadata)                                                                                       \
    X(GDALSetMetadata)                                                                                       \
    X(GDALGetMetadataItem)                                                                                   \
    X(GDALSetMetadataItem)                                                                                   \
    X(CSLFetchNameValue)                                                                                     \
    X(CSLAddString)                                                                                          \
    X(CSLFindString)                                                                                         \
    X(CPLParseXMLString)                                                                                     \
    X(CPLGetXMLNode)                                                                                         \
    X(CPLGetXMLValue)                                                                                        \
    X(CPLDestroyXMLNode)                                                                                     \
    X(GDALGetOverviewCount)                                                                                  \
    X(GDALGetOverview)                                                                                       \
    X(GDALGetRasterBandYSize)                                                                                \
    X(GDALGetRasterBandXSize)                                                                                \
    X(GDALRegenerateOverviews)                                                                               \
    X(GDALCreateGenImgProjTransformer2)                                                                      \
    X(GDALSetGenImgProjTransformerDstGeoTransform)                                                           \
    X(GDALDestroyGenImgProjTransformer)                                                                      \
    X(GDALGenImgProjTransform)                                                                               \
    X(GDALCreateApproxTransformer)                                                                           \
    X(GDALDestroyApproxTransformer)                                                                          \
    X(GDALApproxTransform)                                                                                   \
    X(GDALCreateWarpOptions)                                                                                 \
    X(GDALDestroyWarpOptions)                                                                                \
    X(GDALWarpInitSrcNoDataReal)                                                                             \
    X(GDALWarpInitDstNoDataReal)                                                                             \
    X(GDALCreateWarpOperation)                                                                               \
    X(GDALDestroyWarpOperation)                                                                              \
    X(GDALWarpRegionToBuffer)                                                                                \
    X(VRTCreate)                                                                                             \
    X(VRTAddBand)                                                                                            \
    X(VRTAddFuncSource)                                                                                      \
    X(VRTAddSimpleSource)                                                                                    \
    X(OSRSetPROJEnableNetwork)                                                                               \
    X(CPLCalloc)

typedef struct tess_gdal_api {
#define X(name) __typeof__(name) *name;
    TESS_GDAL_FUNCTIONS(X)
#undef X
} tess_gdal_api;

extern tess_gdal_api tess_gdal; /* filled once tess_gdal_load has succeeded */

/* Opens the library once for the process, restricts it to one thread, a small cache and local files, and
 * registers the drivers below. */
tess_status tess_gdal_load(tess_error *error) TESS_MUST_CHECK;
/* The names of all drivers, terminated by NULL. */
extern const char *const tess_gdal_drivers[];
/* Registers the VRT driver; returns NULL when GDAL has none. The caller deregisters it. */
GDALDriverH tess_gdal_add_vrt(void);

/* Opens a file for reading, whatever its suffix. For a TIFF file, `page` is the offset of the directory to
 * open; 0: the first. Messages do not contain the file's name. */
tess_status tess_gdal_open(const char *path, uint64_t page, GDALDatasetH *out,
                           tess_error *error) TESS_MUST_CHECK;
enum { TESS_GDAL_ROOM = 48 << 20 }; /* bytes that GDAL may need to open a file or read from it */
/* Checks whether this process could allocate so many bytes now. */
tess_status tess_gdal_have_room(int64_t bytes, tess_error *error) TESS_MUST_CHECK;

/* GDAL has one block cache for all datasets. Each open dataset adds its share to the cache's limit, and
 * subtracts it when closed. `counted` is the memory that it holds because of that, counted in `memory` under
 * TESS_MEM_HOST. */
void tess_gdal_cache_share(tess_memory *memory, int64_t cache, int64_t counted);

/* Reports GDAL's last message as our error. */
tess_status tess_gdal_fail(tess_error *error, tess_status status, const char *what);
/* The same for a write. GDAL's message never gives the reason: most often the disk is full. */
tess_status tess_gdal_fail_write(tess_error *error);

/* Registers one more driver, for writing only (COG). Returns NULL when GDAL has none. */
GDALDriverH tess_gdal_add_writer(const char *name);
/* Bytes that the decoder holds besides decoded blocks of `block` bytes. */
int64_t tess_gdal_decoder_bytes(GDALDatasetH dataset, const char *path, int64_t block, int64_t image);

/* The dataset of a reader, from which a writer copies metadata. */
GDALDatasetH tess_gdal_reader_dataset(void *reader_state);

#endif
