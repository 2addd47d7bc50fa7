/* json_numbers.h: numbers of a JSON text with as many digits as they need. */
#ifndef TESS_BASE_JSON_NUMBERS_H
#define TESS_BASE_JSON_NUMBERS_H

enum { TESS_JSON_DIGITS = 17 }; /* enough for any double */

/* Shortens in place all numbers of a text that was written with TESS_JSON_DIGITS, without changing their values: 0.1 in
 * place of 0.10000000000000001. */
void tess_json_shorten(char *text);

#endif
