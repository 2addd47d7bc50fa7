/* nearest.h: the known name that a mistyped one was probably meant to be. */
#ifndef TESS_JOB_NEAREST_H
#define TESS_JOB_NEAREST_H

#include <stddef.h>

/* Of `count` names the one with the least edit distance to `typed`; NULL: none is near. NULL names are passed over. */
const char *tess_nearest(const char *typed, const char *const *names, size_t count);

#endif
