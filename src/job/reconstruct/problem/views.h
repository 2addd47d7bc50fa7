/* views.h: the measurements of a scan, view by view, from any layout: an array (views, columns) or (views, rows,
 * columns), the pages of a TIFF file, or a folder with an image for each view. Integers are not divided by their
 * type's maximum. */
#ifndef TESS_JOB_RECONSTRUCT_PROBLEM_VIEWS_H
#define TESS_JOB_RECONSTRUCT_PROBLEM_VIEWS_H

#include "job/reconstruct/problem/read.h"

typedef struct tess_views tess_views; /* owned by the caller: tess_views_close */

typedef struct tess_views_info {
    int64_t views, rows, columns;
    int64_t channels; /* of an array's file, for messages */
    bool array, flat; /* array: one file; flat: it has two axes */
    bool integers;
    size_t held;              /* bytes while they are read */
    const char *first, *last; /* files of a folder, until the views are closed; NULL: no folder */
} tess_views_info;

/* Reads the first view only; a later view of another size fails when it is read. Close it also if this fails. `stop` is
 * polled at each row that is read. */
tess_status tess_views_open(tess_memory *memory, tess_stop *stop, const char *path, tess_views **out,
                            tess_error *error) TESS_MUST_CHECK;
const tess_views_info *tess_views_about(const tess_views *views);
/* Reads the next view: all its rows, or only `row`. */
tess_status tess_views_next(tess_views *views, int64_t row, float *values, tess_error *error) TESS_MUST_CHECK;
/* Fails if 32-bit floats say too little about the values that were read. */
tess_status tess_views_check(const tess_views *views, tess_error *error) TESS_MUST_CHECK;
void tess_views_close(tess_views *views);

/* Sorts the names of a folder's files, at least one, in the order of the views. */
tess_status tess_view_names_sort(char **names, int64_t count, tess_error *error) TESS_MUST_CHECK;

/* Whether `path` is a file of the folder `views`, under any name. */
bool tess_views_same_file(const char *path, const char *views);

/* Finds the size of a problem's measurement; reads the entries "counts", "flat" and "dark". */
tess_status tess_problem_look_at_views(tess_problem *problem, tess_views_info *info,
                                       tess_error *error) TESS_MUST_CHECK;
tess_status tess_problem_read_counts(const char *path, const tess_json *json, tess_problem *problem,
                                     const tess_views_info *info, tess_error *error) TESS_MUST_CHECK;
/* Finds the value of one count: 1 for whole numbers; for other floats, if the first views show it. */
tess_status tess_problem_find_count_unit(tess_problem *problem, const tess_views_info *info,
                                         tess_error *error) TESS_MUST_CHECK;
/* Calls `fn` with each view of a problem, as line integrals in the units of the file; missing and infinite values are
 * counted, and refused at the end. `values` has room for one view; `fn` may change it. */
typedef tess_status (*tess_view_fn)(void *user, int64_t view, float *values, tess_error *error);
tess_status tess_problem_each_view(const tess_problem *problem, float *values, int64_t *starved,
                                   tess_view_fn fn, void *user, tess_error *error) TESS_MUST_CHECK;

#endif
