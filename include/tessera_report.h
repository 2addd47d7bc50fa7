/* tessera_report.h: one HTML page from records and traces (the verb `report`); docs/report.md describes it. */
#ifndef TESSERA_REPORT_H
#define TESSERA_REPORT_H

#include "tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_report_settings {
    tess_common common;
    const char *const *inputs; /* files of records (JSON lines, or one JSON text) and traces */
    int input_count;
    const char *output;    /* the page, an .html file */
    const char *title;     /* NULL: a usual one */
    bool without_pictures; /* leave out the pictures of files that records name */
} tess_report_settings;

TESS_API void tess_report_settings_init(tess_report_settings *settings);
/* Writes the page: it is complete under its name, or not there. */
TESS_API tess_status tess_report(tess_context *context, const tess_report_settings *settings,
                                 char **record) TESS_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
