/* same_files.h: sums that show whether ranks see the same files. Folders of the same name on other hosts may hold other files, and ranks that
 * read them would make a result that belongs to none of them. */
#ifndef TESS_JOB_SAME_FILES_H
#define TESS_JOB_SAME_FILES_H

#include "base/status.h"
#include "train/checksum.h"

/* Adds the size of a file and some of its bytes, spread over the file: large files are not read whole. A path that cannot be read, or
 * NULL, adds that. */
void tess_same_file(tess_xxh64 *sum, const char *path);
/* The same for one of many: of more than 64 files, only as many are opened. */
void tess_same_file_of(tess_xxh64 *sum, const char *path, int64_t index, int64_t count);
/* The same for a model: a bundled one, a weight file, or "random:…", which has no file; NULL: the bundled ones. */
void tess_same_model(tess_xxh64 *sum, const char *name);

#endif
