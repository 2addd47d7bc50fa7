/* page.h: one HTML page that needs nothing else: style, chart library and script, and the records as JSON, from which the
 * script makes tables and charts. It computes nothing here: what a chart shows is decided where it can be looked at. */
#ifndef TESS_REPORT_PAGE_H
#define TESS_REPORT_PAGE_H

#include <stdio.h>

#include "report/pictures.h"
#include "report/store.h"
#include "report/timelines.h"

/* Fails if the chart library was not there when this was built; the message names the package. */
tess_status tess_page_check(tess_error *error) TESS_MUST_CHECK;
/* Writes a page; the timelines have their texts. Failures to write are found by ferror(). */
tess_status tess_page_write(FILE *to, const char *title, const tess_store *store,
                            const tess_pictures *pictures, const tess_timelines *timelines,
                            tess_error *error) TESS_MUST_CHECK;

#endif
