/* file.h: opening files that a user named. */
#ifndef TESS_BASE_FILE_H
#define TESS_BASE_FILE_H

#include <stdio.h>

#include "base/status.h"

/* Opens a file for reading; the caller closes it. Never blocks: anything but a regular file (such as a pipe
 * without a writer) is refused. Messages do not contain the path. */
tess_status tess_file_open(const char *path, FILE **out, tess_error *error) TESS_MUST_CHECK;

#endif
