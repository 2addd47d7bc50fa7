/* world.h: world files, which hold the transform of an image whose format cannot (private to this room). */
#ifndef TESS_IO_WORLD_H
#define TESS_IO_WORLD_H

#include "io/image.h"

/* Sets info->transform and its bit from the world file beside `raster`, if there is one. */
void tess_world_read(const char *raster, tess_image_info *info);
/* Removes the world files that belong to this raster alone (.pgw and .pngw of .png, not .wld). */
void tess_world_remove(const char *raster);
/* True when this target's format keeps the transform in a world file: PNG, JPEG and BMP. */
bool tess_world_used(const char *target);
/* Bits of tess_says, for tess_write_format.holds. */
unsigned tess_world_holds(const char *target, const tess_image_info *info);
/* Writes the world file as `temp` and renames it to the world file of `target`. */
tess_status tess_world_write(const double transform[6], const char *temp, const char *target,
                             tess_error *error) TESS_MUST_CHECK;
/* The same as dem-fill writes it, which others read half a pixel off: rotation terms exchanged, and the corner of
 * the upper left pixel instead of its centre. */
tess_status tess_world_write_corner(const double transform[6], const char *temp, const char *target,
                                    tess_error *error) TESS_MUST_CHECK;

#endif
