/* numbers.h: reads a list of numbers from a file: an NPY array of any shape, or text in which commas, blanks
 * and newlines separate numbers and # begins a comment. */
#ifndef TESS_IO_NUMBERS_H
#define TESS_IO_NUMBERS_H

#include "base/status.h"

/* Reads at most `most` numbers. The caller frees *values with tess_small_free. */
tess_status tess_numbers_read(const char *path, int64_t most, double **values, int64_t *count,
                              tess_error *error) TESS_MUST_CHECK;

#endif
