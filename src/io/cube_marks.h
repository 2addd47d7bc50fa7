/* cube_marks.h: pixels of a cube without a value: those that its file marks, and those that nobody declared.
 *
 * Programs fill the collar of a turned scene, dropped lines and what lies outside of a swath with one number in all bands, and
 * often do not say so. A pixel is of a kind of mark if all its bands have the same sample, and that is one of the usual
 * marks of raster_void.h, 1e20 or beyond, or 0. In cubes of three bands or more, -9999 and the like are never spectra. A
 * spectrum of zeros may be a shadow, one of 65535 or 9999 a glint; such pixels are missing only in cubes of eight bands or more
 * where they are a hundredth of the scene or of its border, or a whole row or column, and there are others. Zeros also
 * stay where most samples are 0, as in counts of few photons.
 *
 * A file is looked at in blocks of rows, evenly spread, up to 64 MiB: all of most files, and of a larger one what takes a
 * fraction of a second. */
#ifndef TESS_IO_CUBE_MARKS_H
#define TESS_IO_CUBE_MARKS_H

#include "io/cube.h"

/* Looks at a cube, and says in *marks what there is; tess_cube_marks_settle says what is missing. */
tess_status tess_cube_look(tess_cube *cube, tess_cube_marks *marks, tess_error *error) TESS_MUST_CHECK;
/* Decides with what was seen in all files: a mark that is all there is, is none. */
void tess_cube_marks_settle(tess_cube_list *list);

#endif
