/* file.h: opening files that a user named. */
#ifndef TESS_BASE_FILE_H
#define TESS_BASE_FILE_H

#include <stdio.h>

#include "base/status.h"

/* For reading, closed by the caller. Never waits: what is not a regular file, a pipe without a writer say, is refused.
 * The messages do not carry the path. */
tess_status tess_file_open(const char *path, FILE **out, tess_error *error) TESS_MUST_CHECK;

#endif
