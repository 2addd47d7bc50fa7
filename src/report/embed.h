/* embed.h: text inside a page. What records say is never markup: text is escaped, and JSON inside <script> has no
 * character that could end the element or, to old browsers, the line. */
#ifndef TESS_REPORT_EMBED_H
#define TESS_REPORT_EMBED_H

#include <stddef.h>
#include <stdio.h>

/* Failures are found by ferror(). */
void tess_embed_json(FILE *to, const char *json, size_t length); /* <, >, & and U+2028, U+2029 as \uXXXX */
size_t tess_embed_json_bytes(const char *json, size_t length);   /* how many bytes that writes, at most */
void tess_embed_text(FILE *to, const char *text);                /* for elements and attributes in quotes */
void tess_embed_base64(FILE *to, const unsigned char *data, size_t length);

#endif
