/* gdal_domains.c: the metadata domains in which a file or a band has items that a person or a program set.
 *
 * GDAL's list for a TIFF tries which of the library's own domains have items. For COLOR_PROFILE it then asks
 * libtiff for a transfer function, which has 2^bits entries for each colour by default: 24 GB for a photograph of
 * 32 bits a sample with primary colours and no profile. So the domains of a TIFF are read from the XML in which
 * GDAL keeps the items, and the list is asked only of bands and other files. */
#define _XOPEN_SOURCE 700
#include <stdio.h>
#include <string.h>

#include "io/gdal_metadata.h"
#include "io/tiff.h"

enum { ITEMS = 42112, MOST_ITEMS = 16 << 20 };

/* Other domains are GDAL's own, and are generated or carried over elsewhere. */
static bool is_own(GDALMajorObjectH object, const char *domain)
{
    static const char *const others[] = {"",
                                         "IMAGE_STRUCTURE",
                                         "SUBDATASETS",
                                         "DERIVED_SUBDATASETS",
                                         "RPC",
                                         "GEOLOCATION",
                                         "xml:XMP",
                                         "EXIF",
                                         "COLOR_PROFILE",
                                         "TIFF",
                                         "ENVI",
                                         "IMD",
                                         "LocationInfo",
                                         "ProxyOverviewRequest",
                                         "xml:ESRI",
                                         "xml:ISIS3"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(domain, others[i]) == 0)
            return false;
    char **items = tess_gdal.GDALGetMetadata(object, domain);
    return items && *items;
}

/* Adds the domains that the XML names. Those of bands are there too; is_own leaves them out. */
static char **domains_in(const char *xml, char **list)
{
    CPLXMLNode *root = tess_gdal.CPLParseXMLString(xml);
    for (CPLXMLNode *item = tess_gdal.CPLGetXMLNode(root, "=GDALMetadata") ? root->psChild : NULL; item;
         item = item->psNext) {
        const char *domain = item->eType == CXT_Element ? tess_gdal.CPLGetXMLValue(item, "domain", "") : "";
        if (domain[0] && tess_gdal.CSLFindString(list, domain) < 0)
            list = tess_gdal.CSLAddString(list, domain);
    }
    tess_gdal.CPLDestroyXMLNode(root);
    return list;
}

static char **domains_of_tiff(const char *path)
{
    static const uint16_t wanted[] = {ITEMS, 0};
    tess_tiff tiff;
    tess_tiff_directory d;
    bool no_memory = false;
    char **list = NULL;
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    if (tess_tiff_open_file(&tiff, file) &&
        tess_tiff_load(&tiff, wanted, false, MOST_ITEMS, &d, NULL, &no_memory)) {
        list = domains_in((const char *)d.tags[0].value.data, NULL); /* a zero follows the last byte */
        tess_tiff_free(&d);
    }
    fclose(file);
    return list;
}

char **tess_gdal_domains(GDALMajorObjectH object, const char *tiff)
{
    char **all = tiff ? domains_of_tiff(tiff) : tess_gdal.GDALGetMetadataDomainList(object), **own = NULL;
    for (char **at = all; at && *at; at++)
        if (is_own(object, *at))
            own = tess_gdal.CSLAddString(own, *at);
    tess_gdal.CSLDestroy(all);
    tess_gdal.CPLErrorReset();
    return own;
}
