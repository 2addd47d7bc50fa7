/* detect_objects.h: anomalies that touch each other, also at corners, as one detection. Rows come from the top, and only the
 * runs of the row before are kept, so the memory does not depend on the height. */
#ifndef TESS_JOB_DETECT_OBJECTS_H
#define TESS_JOB_DETECT_OBJECTS_H

#include "base/status.h"

typedef struct tess_detection {
    int64_t image;
    int64_t pixels;
    double row, column;               /* the centre, from 0 */
    int64_t top, left, bottom, right; /* the last row and column included */
    double largest, sum;              /* of the scores */
    int64_t peak_row, peak_column;
} tess_detection;

typedef struct tess_objects tess_objects; /* owned by the caller: tess_objects_free */

tess_objects *tess_objects_create(int64_t width); /* of the widest image; NULL: no memory */
void tess_objects_free(tess_objects *objects);
void tess_objects_image(tess_objects *objects, int64_t image, int64_t width);
/* The next row: a pixel is marked if its score is not below the threshold. */
tess_status tess_objects_row(tess_objects *objects, const float *scores, double threshold,
                             tess_error *error) TESS_MUST_CHECK;
/* All detections, sorted by their largest score, the first one the highest. */
const tess_detection *tess_objects_sorted(tess_objects *objects, int64_t *count);
int64_t tess_objects_count(const tess_objects *objects);

#endif
