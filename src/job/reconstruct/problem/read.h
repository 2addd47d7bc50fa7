/* read.h: functions that fill in parts of a problem, shared by the files of this folder. */
#ifndef TESS_JOB_RECONSTRUCT_PROBLEM_READ_H
#define TESS_JOB_RECONSTRUCT_PROBLEM_READ_H

#include "base/json.h"
#include "io/image.h"
#include "job/reconstruct/problem/problem.h"

/* Operators by the entries that they know. */
typedef enum tess_problem_kind {
    TESS_PROBLEM_UNKNOWN = 0,
    TESS_PROBLEM_BLUR = 1,
    TESS_PROBLEM_RADON = 2,
    TESS_PROBLEM_VOLUME = 4
} tess_problem_kind;

/* Refuses entries that the operator does not know. */
tess_status tess_problem_check_keys(const char *path, const tess_json *json, tess_problem_kind kind,
                                    tess_error *error) TESS_MUST_CHECK;
tess_status tess_problem_read(const char *path, tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
/* Notes on entries that are possible, but more often a mistake; before the unit is chosen. */
void tess_problem_doubts(const tess_problem *problem, const tess_common *common);
/* Entries of volumes (views along vectors), and entries of sinograms. */
tess_status tess_problem_read_volume(const char *path, const tess_json *json, tess_problem *problem,
                                     tess_error *error) TESS_MUST_CHECK;
tess_status tess_problem_read_radon(const char *path, const tess_json *json, tess_problem *problem,
                                    tess_error *error) TESS_MUST_CHECK;
/* Reads "angles" as a list of degrees, and their number; `forms` completes the error message. */
tess_status tess_problem_read_angles(const char *path, const tess_json *json, const char *forms,
                                     tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
/* Reads "spacing", 1 by default; `of` is what has it. */
tess_status tess_problem_read_spacing(const char *path, const tess_json *json, const char *of,
                                      tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
/* Reads the file name under `key`, which is relative to the JSON file. */
tess_status tess_problem_sibling(const char *path, const tess_json *json, const char *key, char **out,
                                 tess_error *error) TESS_MUST_CHECK;
/* Bytes of the flat and dark fields while views are read. */
size_t tess_problem_field_bytes(const tess_problem *problem);
/* Entries of blurs: kernels, or angles and sigma, and the boundary. `info` describes the measurement. */
tess_status tess_problem_read_blur(const char *path, const tess_json *json, tess_problem *problem,
                                   const tess_image_info *info, tess_error *error) TESS_MUST_CHECK;
/* Reads "kernel" or "kernels", if present, and the number of blurs. */
tess_status tess_problem_read_kernels(const char *path, const tess_json *json, tess_problem *problem,
                                      tess_error *error) TESS_MUST_CHECK;
/* Path of a file in the folder of the problem file; NULL: no memory. */
char *tess_problem_beside(const char *path, const char *name);
void tess_problem_clear_blur(tess_problem *problem);
/* Creates the operator of blurs; if `sketch` is not NULL, computes only its sizes and costs. */
tess_status tess_problem_blur(const tess_problem *problem, tess_device *device, tess_operator *sketch,
                              tess_operator **op, tess_error *error) TESS_MUST_CHECK;
/* `count` angles from 0 to 180 degrees, the last one included or not; NULL: no
 * memory. */
double *tess_angles(int64_t count, bool last_included);

#endif
