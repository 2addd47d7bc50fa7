/* target.h: which files writing to a name touches (private to this room). */
#ifndef TESS_IO_TARGET_H
#define TESS_IO_TARGET_H

#include "base/status.h"

/* The file that writing to `path` replaces: `path` itself, or what it links to, which need not exist. Folders,
 * devices, and links to a name of another format are refused. The caller frees *target. */
tess_status tess_target_resolve(const char *path, char **target, tess_error *error) TESS_MUST_CHECK;
/* The folder of `path`, which need not exist, with its slash ("." where it has none); returns the name in it. */
const char *tess_target_folder(const char *path, char *folder, size_t size);

/* An ENVI raster is described by a header, NAME.hdr or NAME.SUFFIX.hdr; GDAL prefers the second. The one to write
 * for this raster: the one that it has, else NAME.hdr, unless that is the header of another raster NAME.*. Fails
 * when both are. The caller frees *header. */
tess_status tess_envi_header(const char *target, char **header, tess_error *error) TESS_MUST_CHECK;
/* `path` is named as the header of `raster` would be. */
bool tess_envi_is_header(const char *path, const char *raster);

/* `path` is named as a file that GDAL reads beside `raster`: a mask, a description, overviews, a world file. */
bool tess_is_side_file(const char *path, const char *raster);
/* After `target` took the place of another file: removes the overviews of that one, and its mask and description
 * unless `own` says that `target` was made from it. Links, folders and `keep` (NULL: none) stay. */
void tess_remove_stale_sides(const char *target, bool own, const char *keep);

#endif
