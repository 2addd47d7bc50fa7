/* beside.h: where the files of this installation are: beside the file that contains this code (the program or the
 * shared library), or beside the program. No path is compiled in, so that an installation can be moved. */
#ifndef TESS_BASE_BESIDE_H
#define TESS_BASE_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the folder of the code's own file (index 0, if it is not the program) and of the program; false after the
 * last. Links are followed, so that a link to the program finds the files too. */
bool tess_beside(int index, char *folder, size_t size);

#endif
