/* parts.h: what every page contains: chart library, script and style. The build makes them of the files in page/ and of the
 * installed chart library (cmake/page.cmake), so that nothing of others is in this source tree. */
#ifndef TESS_REPORT_PARTS_H
#define TESS_REPORT_PARTS_H

#include <stddef.h>

typedef struct tess_page_part {
    const unsigned char *data;
    size_t bytes;       /* 0: it was not there when this was built */
    const char *sha256; /* of the data, as base64: the page allows these scripts and no other */
} tess_page_part;

extern const tess_page_part tess_page_chart, tess_page_script, tess_page_style;

#endif
