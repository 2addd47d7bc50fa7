/* data_cubes.h: crops of hyperspectral cubes as the network of a pipeline reads them: the source of data that pipelines train on.
 *
 * Every epoch takes each image once, in an order of its own, or in that of the list; the crop is at a random place. So a sample
 * depends on the size of a batch, which all steps of such a run share. A pixel without a value gets that of the pixel before it.
 *
 * Whole images may be condensed (statistics/condense.h): then nothing is read for a sample.
 *
 * Arrays: the pixels behind the path; with `masks`, 1 for an anomaly and 0 elsewhere. */
#ifndef TESS_TRAIN_DATA_CUBES_H
#define TESS_TRAIN_DATA_CUBES_H

#include "model/spectral/path.h"
#include "train/data.h"
#include "train/statistics/condense.h"
#include "train/statistics/cubes.h"

enum { TESS_CUBES_PIXELS, TESS_CUBES_MASK }; /* the arrays */

typedef struct tess_cubes_settings {
    const tess_pixel_cubes *cubes; /* outlive the source, as does the path */
    const tess_path *path;         /* may be made after opening, before the first draw */
    int channels;                  /* that the path gives */
    int64_t crop, batch;
    bool masks, shuffle;
    const tess_block *condensed; /* NULL: crops are read. May be filled after opening too */
    tess_memory *memory;
} tess_cubes_settings;

/* True if every image is as large as a crop. */
bool tess_cubes_are_whole(const tess_pixel_cubes *cubes, int64_t crop);
/* Refuses by name: images that are smaller than a crop, and, with `masks`, a cube without a mask. */
tess_status tess_cubes_open(const tess_cubes_settings *settings, tess_source **out,
                            tess_error *error) TESS_MUST_CHECK;

#endif
