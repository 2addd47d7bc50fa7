/* json.c: JSON values through jansson, which no file outside of json*.c uses. A tess_json is a json_t behind an opaque
 * name, so wrapping costs nothing. */
#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/json_door.h"
#include "base/json_numbers.h"
#include "base/mem.h"

static const double MOST_EXACT = 9007199254740992.0; /* 2^53: doubles beyond it are all whole */

static tess_json *wrap(json_t *value)
{
    return (tess_json *)value;
}

static json_t *unwrap(const tess_json *value)
{
    return (json_t *)(uintptr_t)value; /* jansson's getters take non-const in places; they do not write */
}

/* Returns the length of the UTF-8 sequence at `text`, or 0 if it is invalid: overlong forms, surrogates and
 * values above U+10FFFF are refused. */
static size_t utf8_sequence(const unsigned char *text, size_t length)
{
    unsigned char lead = text[0];
    if (lead < 0x80)
        return 1;
    size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || length < bytes)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    unsigned char second = text[1];
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
        (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f))
        return 0;
    return bytes;
}

bool tess_utf8_valid(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t at = 0, step; at < length; at += step)
        if ((step = utf8_sequence(bytes + at, length - at)) == 0)
            return false;
    return true;
}

/* Replaces invalid UTF-8: a file name may hold any bytes, but a record must not. */
static json_t *repaired_string(const char *text, size_t length)
{
    char *repaired = tess_small_alloc(length + 1, 3);
    if (!repaired)
        return NULL;
    size_t out = 0;
    for (size_t at = 0; at < length;) {
        size_t step = utf8_sequence((const unsigned char *)text + at, length - at);
        memcpy(repaired + out, step ? text + at : "\xef\xbf\xbd", step ? step : 3);
        out += step ? step : 3;
        at += step ? step : 1;
    }
    json_t *value = json_stringn(repaired, out);
    tess_small_free(repaired);
    return value;
}

tess_json *tess_json_object(void)
{
    tess_json_use_door();
    return wrap(json_object());
}

tess_json *tess_json_array(void)
{
    tess_json_use_door();
    return wrap(json_array());
}

tess_json *tess_json_string(const char *text)
{
    tess_json_use_door();
    if (!text)
        return wrap(json_null());
    size_t length = strlen(text);
    return wrap(tess_utf8_valid(text, length) ? json_stringn(text, length) : repaired_string(text, length));
}

tess_json *tess_json_int(int64_t value)
{
    tess_json_use_door();
    return wrap(json_integer(value));
}

tess_json *tess_json_double(double value)
{
    tess_json_use_door();
    return wrap(isfinite(value) ? json_real(value) : json_null());
}

tess_json *tess_json_bool(bool value)
{
    return wrap(json_boolean(value));
}

tess_json *tess_json_null(void)
{
    return wrap(json_null());
}

void tess_json_free(tess_json *value)
{
    json_decref(unwrap(value));
}

/* The only place where a failure turns the container into NULL. */
static void settle(tess_json **container, bool done)
{
    if (done)
        return;
    tess_json_free(*container);
    *container = NULL;
}

void tess_json_set(tess_json **object, const char *key, tess_json *value)
{
    /* jansson frees `value` even when it fails, and it fails when either argument is NULL. */
    settle(object, json_object_set_new(unwrap(*object), key, unwrap(value)) == 0);
}

void tess_json_set_string(tess_json **object, const char *key, const char *text)
{
    tess_json_set(object, key, tess_json_string(text));
}

void tess_json_set_int(tess_json **object, const char *key, int64_t value)
{
    tess_json_set(object, key, tess_json_int(value));
}

void tess_json_set_double(tess_json **object, const char *key, double value)
{
    tess_json_set(object, key, tess_json_double(value));
}

void tess_json_set_bool(tess_json **object, const char *key, bool value)
{
    tess_json_set(object, key, tess_json_bool(value));
}

void tess_json_append(tess_json **array, tess_json *value)
{
    settle(array, json_array_append_new(unwrap(*array), unwrap(value)) == 0);
}

void tess_json_append_string(tess_json **array, const char *text)
{
    tess_json_append(array, tess_json_string(text));
}

void tess_json_append_int(tess_json **array, int64_t value)
{
    tess_json_append(array, tess_json_int(value));
}

void tess_json_append_double(tess_json **array, double value)
{
    tess_json_append(array, tess_json_double(value));
}

char *tess_json_dump(const tess_json *value, bool indented)
{
    size_t layout = indented ? JSON_INDENT(2) : JSON_COMPACT;
    if (!value)
        return NULL;
    tess_json_refused_reset();
    char *text = json_dumps(unwrap(value), layout | JSON_ENCODE_ANY | JSON_REAL_PRECISION(TESS_JSON_DIGITS));
    if (text && !tess_json_refused())
        tess_json_shorten(text);
    if (!tess_json_refused())
        return text;
    tess_small_free(text);
    return NULL;
}

tess_status tess_json_parse(const char *text, size_t length, tess_json **out, tess_error *error)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* which some editors put before a text */
    const size_t skipped = length >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    text += skipped;
    length -= skipped;
    tess_json_use_door();
    json_error_t where;
    tess_json_refused_reset();
    *out = wrap(tess_json_load(text, length, &where));
    if (*out)
        return TESS_OK;
    if (tess_json_refused())
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a JSON text of %zu bytes", length);
    return tess_fail(error, TESS_BAD_INPUT, "not valid JSON: line %d, column %d: %s", where.line,
                     where.column, where.text);
}

bool tess_json_is_object(const tess_json *value)
{
    return json_is_object(unwrap(value));
}

bool tess_json_is_array(const tess_json *value)
{
    return json_is_array(unwrap(value));
}

bool tess_json_is_string(const tess_json *value)
{
    return json_is_string(unwrap(value));
}

bool tess_json_is_int(const tess_json *value)
{
    return json_is_integer(unwrap(value));
}

bool tess_json_is_whole(const tess_json *value)
{
    const double real = json_is_real(unwrap(value)) ? json_real_value(unwrap(value)) : 0.5;
    return tess_json_is_int(value) || (fabs(real) <= MOST_EXACT && real == floor(real));
}

bool tess_json_is_number(const tess_json *value)
{
    return json_is_number(unwrap(value));
}

bool tess_json_is_bool(const tess_json *value)
{
    return json_is_boolean(unwrap(value));
}

const char *tess_json_as_string(const tess_json *value, const char *fallback)
{
    return tess_json_is_string(value) ? json_string_value(unwrap(value)) : fallback;
}

int64_t tess_json_as_int(const tess_json *value, int64_t fallback)
{
    return tess_json_is_int(value) ? json_integer_value(unwrap(value)) : fallback;
}

int64_t tess_json_as_whole(const tess_json *value, int64_t fallback)
{
    return tess_json_is_int(value)     ? json_integer_value(unwrap(value))
           : tess_json_is_whole(value) ? (int64_t)json_real_value(unwrap(value))
                                       : fallback;
}

double tess_json_as_double(const tess_json *value, double fallback)
{
    return tess_json_is_number(value) ? json_number_value(unwrap(value)) : fallback;
}

bool tess_json_as_bool(const tess_json *value, bool fallback)
{
    return tess_json_is_bool(value) ? json_is_true(unwrap(value)) : fallback;
}

const tess_json *tess_json_get(const tess_json *object, const char *key)
{
    return wrap(json_object_get(unwrap(object), key));
}

const char *tess_json_get_string(const tess_json *object, const char *key, const char *fallback)
{
    return tess_json_as_string(tess_json_get(object, key), fallback);
}

int64_t tess_json_get_int(const tess_json *object, const char *key, int64_t fallback)
{
    return tess_json_as_int(tess_json_get(object, key), fallback);
}

double tess_json_get_double(const tess_json *object, const char *key, double fallback)
{
    return tess_json_as_double(tess_json_get(object, key), fallback);
}

bool tess_json_get_bool(const tess_json *object, const char *key, bool fallback)
{
    return tess_json_as_bool(tess_json_get(object, key), fallback);
}

const char *tess_json_next_key(const tess_json *object, const char *key)
{
    json_t *o = unwrap(object);
    void *entry = key ? json_object_iter_next(o, json_object_key_to_iter(key)) : json_object_iter(o);
    return json_object_iter_key(entry);
}

int64_t tess_json_length(const tess_json *value)
{
    return (int64_t)(tess_json_is_object(value) ? json_object_size(unwrap(value))
                                                : json_array_size(unwrap(value)));
}

const tess_json *tess_json_at(const tess_json *array, int64_t index)
{
    return index < 0 ? NULL : wrap(json_array_get(unwrap(array), (size_t)index));
}
