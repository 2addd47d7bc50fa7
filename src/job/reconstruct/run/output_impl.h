/* output_impl.h: for run/output.c, which opens the files, and run/output_rows.c, which fills
 * them. */
#ifndef TESS_JOB_RECONSTRUCT_RUN_OUTPUT_IMPL_H
#define TESS_JOB_RECONSTRUCT_RUN_OUTPUT_IMPL_H

#include "job/reconstruct/run/output.h"

bool tess_output_is_npy(const char *path);
/* Arrays and rasters store the values; a picture stores [0, range] in 8 bits. */
bool tess_output_holds_values(const char *path);

/* The rows of an output file. If ranks share the image, the one that owns a row takes it from its memory and sends it to
 * rank 0, which completes and writes it. */
typedef struct row_kind {
    int (*owner)(const tess_outputs *o, int64_t y); /* its rank */
    tess_status (*take)(const tess_outputs *o, tess_workspace *w, int64_t y, float *values,
                        tess_error *error);
    void (*complete)(const tess_outputs *o, float *values);
} tess_row_kind;
extern const tess_row_kind tess_result_rows, tess_measurement_rows, tess_side_rows;

/* Collective: writes all rows and commits the file. */
tess_status tess_output_rows(const tess_outputs *outputs, tess_workspace *workspace, tess_writer *writer,
                             const tess_image_info *info, const tess_row_kind *kind,
                             tess_error *error) TESS_MUST_CHECK;

#endif
