/* problem_read.h: the parts of a problem that its kinds and its file fill in; for the files problem*.c. */
#ifndef TESS_JOB_PROBLEM_READ_H
#define TESS_JOB_PROBLEM_READ_H

#include "base/json.h"
#include "io/image.h"
#include "job/reconstruct/problem.h"

tess_status tess_problem_read(const char *path, tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
/* The part of it that volumes have: views along vectors; and that of sinograms. */
tess_status tess_problem_read_volume(const char *path, const tess_json *json, tess_problem *problem,
                                     tess_error *error) TESS_MUST_CHECK;
tess_status tess_problem_read_radon(const char *path, const tess_json *json, tess_problem *problem,
                                    tess_error *error) TESS_MUST_CHECK;
/* "angles" as a list of degrees, with their number; `forms` completes the message where it is none. */
tess_status tess_problem_read_angles(const char *path, const tess_json *json, const char *forms,
                                     tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
/* The name under `key`, as seen from here: it is relative to the JSON file. */
tess_status tess_problem_sibling(const char *path, const tess_json *json, const char *key, char **out,
                                 tess_error *error) TESS_MUST_CHECK;
/* Of the flat and dark fields, while views are read. */
size_t tess_problem_field_bytes(const tess_problem *problem);
/* The part of it that blurs have: kernels, or angles and a sigma, and the boundary. `info` is of the measurement. */
tess_status tess_problem_read_blur(const char *path, const tess_json *json, tess_problem *problem,
                                   const tess_image_info *info, tess_error *error) TESS_MUST_CHECK;
/* "kernel" or "kernels", if they are there, and with them the number of blurs. */
tess_status tess_problem_read_kernels(const char *path, const tess_json *json, tess_problem *problem,
                                      tess_error *error) TESS_MUST_CHECK;
/* The name of a file beside the problem file; NULL: no memory. */
char *tess_problem_beside(const char *path, const char *name);
void tess_problem_clear_blur(tess_problem *problem);
/* The operator of blurs; `sketch`, if not NULL: only its sizes and costs. */
tess_status tess_problem_blur(const tess_problem *problem, tess_device *device, tess_operator *sketch,
                              tess_operator **op, tess_error *error) TESS_MUST_CHECK;
/* `count` angles from 0 to 180 degrees, the last one included or not; NULL: no
 * memory. */
double *tess_angles(int64_t count, bool last_included);

#endif
