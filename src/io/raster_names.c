#define _POSIX_C_SOURCE 200809L
/* Whether a file is part of a raster: the raster itself, a file beside it, or a source of a VRT. */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "io/image.h"
#include "io/raster.h"
#include "io/vrt_check.h"

static _Thread_local const char *sought; /* tess_vrt_check passes no pointer on */

static tess_status differs(const char *path, tess_error *error)
{
    return tess_image_same_target(sought, path) ? tess_fail(error, TESS_BAD_OPTION, "is a source") : TESS_OK;
}

bool tess_raster_names(const char *raster, const char *path)
{
    const size_t length = strlen(raster);
    if (tess_image_same_target(path, raster))
        return true;
    if (length < 4 || strcasecmp(raster + length - 4, ".vrt") != 0)
        return false;
    char *text = NULL;
    tess_error ignored;
    sought = path;
    const tess_status status = tess_vrt_check(raster, differs, &text, &ignored);
    tess_small_free(text);
    return status != TESS_OK;
}
