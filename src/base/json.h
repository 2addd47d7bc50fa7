/* json.h: JSON values, for building records and for reading headers and caches.
 *
 * Building a record needs one check at the end. A setter takes the address of its container. When it fails (no
 * memory, or a NULL child, which means that building the child failed) it frees the container and sets it to
 * NULL. A setter on NULL only frees its arguments. So a failure makes the whole record NULL, and nothing leaks.
 *
 * A container owns a child from the moment it is set or appended: fill the child first, then add it. A getter
 * returns a borrowed pointer, valid as long as the value it came from. */
#ifndef TESS_BASE_JSON_H
#define TESS_BASE_JSON_H

#include "base/status.h"

typedef struct tess_json tess_json; /* whoever makes or parses a root owns it: tess_json_free */

tess_json *tess_json_object(void);
tess_json *tess_json_array(void);
tess_json *tess_json_string(const char *text); /* NULL gives null; bytes that are not UTF-8 become U+FFFD */
tess_json *tess_json_int(int64_t value);
tess_json *tess_json_double(double value); /* NaN and infinities, which JSON lacks, become null */
tess_json *tess_json_bool(bool value);
tess_json *tess_json_null(void);
void tess_json_free(tess_json *value);

void tess_json_set(tess_json **object, const char *key, tess_json *value); /* takes ownership of `value` */
void tess_json_set_string(tess_json **object, const char *key, const char *text);
void tess_json_set_int(tess_json **object, const char *key, int64_t value);
void tess_json_set_double(tess_json **object, const char *key, double value);
void tess_json_set_bool(tess_json **object, const char *key, bool value);

void tess_json_append(tess_json **array, tess_json *value); /* takes ownership of `value` */
void tess_json_append_string(tess_json **array, const char *text);
void tess_json_append_int(tess_json **array, int64_t value);
void tess_json_append_double(tess_json **array, double value);

/* Writes one line, or indents by two for people to read. Returns NULL when `value` is NULL or there is no
 * memory; free the text with tess_small_free. */
char *tess_json_dump(const tess_json *value, bool indented);

/* Parses `length` bytes of text, which needs no terminator. Duplicate keys are an error. The message gives the
 * position, not the file. */
tess_status tess_json_parse(const char *text, size_t length, tess_json **out,
                            tess_error *error) TESS_MUST_CHECK;

bool tess_json_is_object(const tess_json *value);
bool tess_json_is_array(const tess_json *value);
bool tess_json_is_string(const tess_json *value);
bool tess_json_is_int(const tess_json *value);
bool tess_json_is_whole(const tess_json *value); /* an int, or 128.0, as people and other programs write it */
bool tess_json_is_number(const tess_json *value);
bool tess_json_is_bool(const tess_json *value);

/* These return the fallback when `value` is NULL or of another type. An int can be read as a double, but not
 * the reverse. */
const char *tess_json_as_string(const tess_json *value, const char *fallback);
int64_t tess_json_as_int(const tess_json *value, int64_t fallback);
int64_t tess_json_as_whole(const tess_json *value, int64_t fallback);
double tess_json_as_double(const tess_json *value, double fallback);
bool tess_json_as_bool(const tess_json *value, bool fallback);

/* These read an entry of an object. They return NULL or the fallback when it is missing or `object` is not an
 * object. */
const tess_json *tess_json_get(const tess_json *object, const char *key);
const char *tess_json_get_string(const tess_json *object, const char *key, const char *fallback);
int64_t tess_json_get_int(const tess_json *object, const char *key, int64_t fallback);
double tess_json_get_double(const tess_json *object, const char *key, double fallback);
bool tess_json_get_bool(const tess_json *object, const char *key, bool fallback);
/* Iterates over the keys in the order of the text: NULL gives the first key, a returned key gives the next one.
 * Returns NULL at the end. */
const char *tess_json_next_key(const tess_json *object, const char *key);

/* Number of elements of an array or entries of an object; 0 for anything else. */
int64_t tess_json_length(const tess_json *value);
const tess_json *tess_json_at(const tess_json *array, int64_t index);

/* True when a JSON text can hold the string unchanged. */
bool tess_utf8_valid(const char *text, size_t length);

#endif
