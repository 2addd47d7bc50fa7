/* json_door.h: jansson's memory, and reading with it so that no failed allocation harms. For json.c and json_numbers.c
 * only. */
#ifndef TESS_BASE_JSON_DOOR_H
#define TESS_BASE_JSON_DOOR_H

#include <jansson.h>
#include <stdbool.h>

/* Makes jansson allocate through base/mem.h, so the tests that make the n-th allocation fail cover it too. */
void tess_json_use_door(void);

/* Whether an allocation failed on this thread since the last reset. jansson's parser reports some failed allocations as
 * syntax errors, and its writer continues after one with a piece of text missing. */
bool tess_json_refused(void);
void tess_json_refused_reset(void);

/* Reads a text. Returns NULL if it is not valid or an allocation failed. */
json_t *tess_json_load(const char *text, size_t length, json_error_t *where);

#endif
