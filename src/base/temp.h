/* temp.h: files that are written under a temporary name and then take the place of their target.
 *
 * Each one lies in a folder of its own beside the target: the folder has a random name and is open to its
 * owner only. Nobody can foresee the name or put a link in its place, and libraries that open files by name,
 * or make side files next to them, may do so there. Being beside the target, the file is renamed within one
 * file system, in one step.
 *
 * Every live folder stands in one table of fixed size, so that a signal handler can remove what a dying
 * process would leave behind. */
#ifndef TESS_BASE_TEMP_H
#define TESS_BASE_TEMP_H

#include <stdio.h>

#include "base/status.h"

typedef struct tess_temp tess_temp; /* owned by the caller: tess_temp_remove */

/* An empty file for what will become `target`, which need not exist; its folder must. The messages do not
 * carry the target's name. */
tess_status tess_temp_create(const char *target, tess_temp **out, tess_error *error) TESS_MUST_CHECK;
/* The empty file's name. Names that begin with it are free for side files. */
const char *tess_temp_path(const tess_temp *temp);
/* The same file for writing, closed by the caller; NULL with errno when it cannot be opened. */
FILE *tess_temp_open(const tess_temp *temp);
/* The file becomes `target`, with the permissions of the file that it replaces, or those of any new file. */
tess_status tess_temp_commit(tess_temp *temp, const char *target, tess_error *error) TESS_MUST_CHECK;
/* The same for a side file: `from` becomes `target`. */
tess_status tess_temp_place(const char *from, const char *target, tess_error *error) TESS_MUST_CHECK;
/* Removes the folder with all that is left in it. NULL is allowed. */
void tess_temp_remove(tess_temp *temp);

/* Removes the files of every live tess_temp of this process. Async-signal-safe: for handlers of signals that
 * end the process. A file that is still open for writing loses its name and is never committed. */
void tess_temp_remove_all(void);

/* "cannot be written", with the system's reason `why` (an errno) and what would help. */
tess_status tess_temp_fail(int why, tess_error *error);

#endif
