/* output.h: writes the pictures and arrays of a reconstruction. */
#ifndef TESS_JOB_RECONSTRUCT_RUN_OUTPUT_H
#define TESS_JOB_RECONSTRUCT_RUN_OUTPUT_H

#include "io/image.h"
#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/run/workspace.h"

enum { TESS_GAP = 8 }; /* columns between pictures side by side */

typedef struct tess_outputs {
    const char *result, *side_by_side, *measurement; /* file names from the settings; NULL: not requested */
    const tess_problem *problem;
    tess_memory *memory;
    tess_reader *like; /* whose metadata the result gets; NULL: none */
    tess_writer *writer, *side_writer;
} tess_outputs;

/* Largest memory held at once by the writers of the outputs. */
typedef struct tess_outputs_held {
    size_t measurement, results;
} tess_outputs_held;

/* Checks whether the outputs can be written under their names. */
tess_status tess_outputs_check(const tess_outputs *outputs, tess_outputs_held *held,
                               tess_error *error) TESS_MUST_CHECK;
/* Opened before the work, so that a name that cannot be written fails at once and not after hours. */
tess_status tess_outputs_open(tess_outputs *outputs, tess_error *error) TESS_MUST_CHECK;
/* Notes on what the outputs, which are open, leave out. */
void tess_outputs_doubts(const tess_outputs *outputs, const tess_common *common);
tess_status tess_outputs_write(tess_outputs *outputs, tess_workspace *workspace,
                               tess_error *error) TESS_MUST_CHECK;
tess_status tess_outputs_save_measurement(const tess_outputs *outputs, tess_workspace *workspace,
                                          tess_error *error) TESS_MUST_CHECK;
void tess_outputs_close(tess_outputs *outputs);

#endif
