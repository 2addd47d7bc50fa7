/* hfa_probe.h: where an Erdas Imagine file (.img) keeps its samples (private to this room). */
#ifndef TESS_IO_HFA_PROBE_H
#define TESS_IO_HFA_PROBE_H

#include <stdbool.h>

/* Returns false for an Erdas Imagine file that names a sample file outside its folder, or whose tree cannot be
 * followed; true for every other file. */
bool tess_hfa_stays_in_folder(const char *path);

#endif
