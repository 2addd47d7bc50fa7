/* lines.h: the records of a file, one after the other.
 *
 * A file has one JSON object a line, or is one JSON text over several lines: an object, or an array of objects. Files come
 * from other versions, other programs and strangers: a line has a largest length, NaN and infinities, which Python writes
 * and JSON lacks, are read as null, and what is wrong is reported with its line. */
#ifndef TESS_REPORT_LINES_H
#define TESS_REPORT_LINES_H

#include "base/json.h"
#include "base/stop.h"

enum { TESS_LINE_MOST = 16 << 20 }; /* bytes of a line, and of a JSON text over several lines */

typedef struct tess_line_facts {
    int64_t lines;       /* that are not empty */
    int64_t not_numbers; /* NaN and infinities, read as null */
    bool cut_short; /* the last line has no end and is no JSON: its writer was stopped, or still writes */
} tess_line_facts;

typedef struct tess_line_visitor {
    /* False: the record of this line (from 0, empty ones not counted) is not needed, and not read. */
    bool (*wants)(void *user, int64_t index);
    /* Takes the object, which it frees; `line` is counted from 1. */
    tess_status (*take)(void *user, int64_t index, int64_t line, tess_json *record, tess_error *error);
    void *user;
} tess_line_visitor;

/* Messages contain the path. */
tess_status tess_lines_read(const char *path, const tess_line_visitor *visitor, tess_stop *stop,
                            tess_line_facts *facts, tess_error *error) TESS_MUST_CHECK;

#endif
