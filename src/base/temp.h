/* temp.h: files that are written under a temporary name and then replace their target.
 *
 * Each file lies in its own folder beside the target. The folder has a random name and only its owner may open
 * it, so nobody can predict the name or put a link in its place, and libraries that open files by name, or
 * create side files, can work there. Because the folder is beside the target, the rename stays within one file
 * system and is atomic.
 *
 * Every existing folder is listed in a table of fixed size, so that a signal handler can remove what a dying
 * process would leave behind. */
#ifndef TESS_BASE_TEMP_H
#define TESS_BASE_TEMP_H

#include <stdio.h>

#include "base/status.h"

typedef struct tess_temp tess_temp; /* owned by the caller: tess_temp_remove */

/* Creates an empty file that will become `target`. The target need not exist, but its folder must. Messages do
 * not contain the target's name. */
tess_status tess_temp_create(const char *target, tess_temp **out, tess_error *error) TESS_MUST_CHECK;
/* Path of the empty file. Side files may use any name that begins with it. */
const char *tess_temp_path(const tess_temp *temp);
/* Opens the same file for writing; the caller closes it. Returns NULL and sets errno on failure. */
FILE *tess_temp_open(const tess_temp *temp);
/* Renames the file to `target`. It gets the permissions of the file that it replaces, or those of a new file. */
tess_status tess_temp_commit(tess_temp *temp, const char *target, tess_error *error) TESS_MUST_CHECK;
/* The same for a side file: renames `from` to `target`. */
tess_status tess_temp_place(const char *from, const char *target, tess_error *error) TESS_MUST_CHECK;
/* Removes the folder and everything left in it. Accepts NULL. */
void tess_temp_remove(tess_temp *temp);

/* Removes the files of every existing tess_temp of this process. Async-signal-safe: for handlers of signals
 * that end the process. A file that is still open for writing loses its name and is never committed. */
void tess_temp_remove_all(void);

/* Reports "cannot be written" with the system's reason `why` (an errno) and what would help. */
tess_status tess_temp_fail(int why, tess_error *error);

#endif
