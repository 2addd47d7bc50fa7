/* cube_marks.h: what a job says of pixels without a value that no file declares (io/cube_marks.h). */
#ifndef TESS_JOB_CUBE_MARKS_H
#define TESS_JOB_CUBE_MARKS_H

#include "base/json.h"
#include "job/common/note.h"
#include "train/statistics/cubes.h"

/* Notes how many there are, and zeros that count as spectra; `keep` and `drop` say how to have it the other way. */
void tess_marks_note(const tess_common *common, const tess_pixel_cubes *cubes, const char *keep,
                     const char *drop);
/* {"pixels", "looked_at", "value"}; NULL: there are none. */
tess_json *tess_marks_record(const tess_pixel_cubes *cubes);

#endif
