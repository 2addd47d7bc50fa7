/* json.h: JSON values: records are built with it, headers and caches are read with it.
 *
 * Building needs one check at the end. A setter takes the address of its container; when it fails (no memory,
 * or a NULL child, which is how a child's own failure shows) it frees the container and leaves NULL there,
 * and setters on NULL do nothing but free what they were given. So NULL climbs to the record, and nothing
 * leaks on the way.
 *
 * A child belongs to its container from the moment it is set or appended: fill it first, hand it over then.
 * What a getter returns is borrowed and lives as long as the value it came from. */
#ifndef TESS_BASE_JSON_H
#define TESS_BASE_JSON_H

#include "base/status.h"

typedef struct tess_json tess_json; /* a root is owned by who made or parsed it: tess_json_free */

tess_json *tess_json_object(void);
tess_json *tess_json_array(void);
tess_json *tess_json_string(const char *text); /* NULL gives null; bytes that are not UTF-8 become U+FFFD */
tess_json *tess_json_int(int64_t value);
tess_json *tess_json_double(double value); /* NaN and infinities, which JSON lacks, become null */
tess_json *tess_json_bool(bool value);
tess_json *tess_json_null(void);
void tess_json_free(tess_json *value);

void tess_json_set(tess_json **object, const char *key, tess_json *value); /* takes `value` */
void tess_json_set_string(tess_json **object, const char *key, const char *text);
void tess_json_set_int(tess_json **object, const char *key, int64_t value);
void tess_json_set_double(tess_json **object, const char *key, double value);
void tess_json_set_bool(tess_json **object, const char *key, bool value);

void tess_json_append(tess_json **array, tess_json *value); /* takes `value` */
void tess_json_append_string(tess_json **array, const char *text);
void tess_json_append_int(tess_json **array, int64_t value);
void tess_json_append_double(tess_json **array, double value);

/* One line, or indented by two for people. NULL when `value` is NULL or memory is out; release with
 * tess_small_free. */
char *tess_json_dump(const tess_json *value, bool indented);

/* `length` bytes of text, no terminator needed. Duplicate keys are an error. The message says where, not
 * which file. */
tess_status tess_json_parse(const char *text, size_t length, tess_json **out,
                            tess_error *error) TESS_MUST_CHECK;

bool tess_json_is_object(const tess_json *value);
bool tess_json_is_array(const tess_json *value);
bool tess_json_is_string(const tess_json *value);
bool tess_json_is_int(const tess_json *value);
bool tess_json_is_number(const tess_json *value);
bool tess_json_is_bool(const tess_json *value);

/* Of the wrong kind, or NULL: the fallback. An int is also a double; a double is no int. */
const char *tess_json_as_string(const tess_json *value, const char *fallback);
int64_t tess_json_as_int(const tess_json *value, int64_t fallback);
double tess_json_as_double(const tess_json *value, double fallback);
bool tess_json_as_bool(const tess_json *value, bool fallback);

/* Entries of an object; NULL or the fallback when there is none, or `object` is none. */
const tess_json *tess_json_get(const tess_json *object, const char *key);
const char *tess_json_get_string(const tess_json *object, const char *key, const char *fallback);
int64_t tess_json_get_int(const tess_json *object, const char *key, int64_t fallback);
double tess_json_get_double(const tess_json *object, const char *key, double fallback);
bool tess_json_get_bool(const tess_json *object, const char *key, bool fallback);
/* Keys in the order of the text: NULL gives the first, a key that this returned gives the next, NULL ends. */
const char *tess_json_next_key(const tess_json *object, const char *key);

/* Elements of an array, or entries of an object; 0 for anything else. */
int64_t tess_json_length(const tess_json *value);
const tess_json *tess_json_at(const tess_json *array, int64_t index);

/* What a name must be to stand in a JSON text unchanged. */
bool tess_utf8_valid(const char *text, size_t length);

#endif
