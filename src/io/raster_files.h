/* raster_files.h: copies of a raster's files, byte for byte (private to this room). */
#ifndef TESS_IO_RASTER_FILES_H
#define TESS_IO_RASTER_FILES_H

#include "base/stop.h"

/* Copies `from`, which had `bytes` bytes when it was opened, to the existing or new file `to`. Holes stay holes.
 * Fails when the file has another size by now. */
tess_status tess_raster_copy_file(const char *from, const char *to, int64_t bytes, tess_stop *stop,
                                  tess_error *error) TESS_MUST_CHECK;
/* Copies the files beside `raster` that GDAL reads with it to names that begin with `temp`: overviews, mask,
 * description (without statistics), world file, rational polynomials. */
tess_status tess_raster_copy_sides(const char *raster, const char *temp, tess_stop *stop,
                                   tess_error *error) TESS_MUST_CHECK;
/* Copies only the description (.aux.xml), if there is one. */
tess_status tess_raster_copy_description(const char *raster, const char *temp, bool *copied,
                                         tess_error *error) TESS_MUST_CHECK;
/* Renames those that exist to their names beside `target`, and removes overviews, mask and description of a
 * file that `target` replaces. `only_description`: for a converted raster, which has the rest inside. */
tess_status tess_raster_place_sides(const char *temp, const char *target, bool only_description,
                                    tess_error *error) TESS_MUST_CHECK;
/* Free bytes of the disk that holds this file; -1: unknown. */
int64_t tess_raster_free_bytes(const char *path);

#endif
