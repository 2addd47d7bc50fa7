/* target.h: which files are affected by writing to a name (private to this room). */
#ifndef TESS_IO_TARGET_H
#define TESS_IO_TARGET_H

#include "base/status.h"

/* Finds the file that writing to `path` replaces: `path` itself, or the target of the link, which need not
 * exist. Folders, devices, and links to a name of another format are refused. The caller frees *target. */
tess_status tess_target_resolve(const char *path, char **target, tess_error *error) TESS_MUST_CHECK;
/* The folder of `path`, which need not exist, with its slash ("." if there is none). Returns the name within
 * it. */
const char *tess_target_folder(const char *path, char *folder, size_t size);

/* An ENVI raster is described by a header, NAME.hdr or NAME.SUFFIX.hdr; GDAL prefers the second. Finds the one
 * to write for this raster: its existing header, else NAME.hdr, unless that belongs to another raster NAME.*.
 * Fails when both belong to others. The caller frees *header. */
tess_status tess_envi_header(const char *target, char **header, tess_error *error) TESS_MUST_CHECK;
/* True when `path` is a name of a header of `raster`. */
bool tess_envi_is_header(const char *path, const char *raster);

/* True when `path` is the name of a file that GDAL reads beside `raster`: a mask, a description, overviews, a
 * world file. */
bool tess_is_side_file(const char *path, const char *raster);
/* Called after `target` replaced another file: removes the overviews of that file, and its mask and description
 * unless `own` says that `target` was made from it; also its world file, unless `placed` says that `target` has a
 * position. Links, folders and `keep` (may be NULL) are not removed. */
void tess_remove_stale_sides(const char *target, bool own, bool placed, const char *keep);

#endif
