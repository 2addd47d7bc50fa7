/* names.h: different strings, each with a number: names of spans, tracks and kinds of a trace. */
#ifndef TESS_REPORT_NAMES_H
#define TESS_REPORT_NAMES_H

#include "base/status.h"

/* All zero is empty. */
typedef struct tess_names {
    char **list; /* owned */
    int32_t count, room;
    int32_t *places; /* a hash table of numbers plus one; its size is a power of two */
    int32_t place_count;
} tess_names;

/* The number of a string, which is added if there are fewer than `most`; -1: there are not. */
tess_status tess_names_number(tess_names *names, const char *text, int32_t most, int32_t *number,
                              tess_error *error) TESS_MUST_CHECK;
void tess_names_clear(tess_names *names);

#endif
