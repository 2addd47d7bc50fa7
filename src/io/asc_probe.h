/* asc_probe.h: whether the numbers of an ESRI ASCII grid fit float32 (private to this room). */
#ifndef TESS_IO_ASC_PROBE_H
#define TESS_IO_ASC_PROBE_H

#include <stdbool.h>

/* True if float32 would change a digit of a number of the file, other than its nodata value. */
bool tess_asc_needs_doubles(const char *path);

#endif
