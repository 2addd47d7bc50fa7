/* Copies a value without what is too much of it: records that somebody else wrote may hold lists of a million elements. */
#include <string.h>

#include "base/mem.h"
#include "report/store.h"

static tess_json *shorter(const tess_json *value, int64_t most, size_t letters);

/* Ends between two characters of UTF-8. */
static tess_json *shorter_string(const char *text, size_t letters)
{
    if (strlen(text) <= letters)
        return tess_json_string(text);
    char *copy = tess_small_alloc(letters + 4, 1);
    if (!copy)
        return NULL;
    while (letters > 0 && ((unsigned char)text[letters] & 0xc0) == 0x80)
        letters--;
    memcpy(copy, text, letters);
    memcpy(copy + letters, "\xe2\x80\xa6", 4); /* ... */
    tess_json *result = tess_json_string(copy);
    tess_small_free(copy);
    return result;
}

static tess_json *shorter_array(const tess_json *value, int64_t most, size_t letters)
{
    const int64_t count = tess_json_length(value), kept = count < most ? count : most;
    tess_json *copy = tess_json_array();
    for (int64_t i = 0; i < kept; i++) {
        const int64_t from = kept < count && kept > 1 ? i * (count - 1) / (kept - 1) : i;
        tess_json_append(&copy, shorter(tess_json_at(value, from), most, letters));
    }
    return copy;
}

static tess_json *shorter_object(const tess_json *value, int64_t most, size_t letters)
{
    tess_json *copy = tess_json_object();
    int64_t kept = 0;
    for (const char *key = tess_json_next_key(value, NULL); key && kept < most;
         key = tess_json_next_key(value, key))
        if (strlen(key) <= letters) {
            tess_json_set(&copy, key, shorter(tess_json_get(value, key), most, letters));
            kept++;
        }
    return copy;
}

static tess_json *shorter(const tess_json *value, int64_t most, size_t letters)
{
    if (tess_json_is_object(value))
        return shorter_object(value, most, letters);
    if (tess_json_is_array(value))
        return shorter_array(value, most, letters);
    if (tess_json_is_string(value))
        return shorter_string(tess_json_as_string(value, ""), letters);
    if (tess_json_is_int(value))
        return tess_json_int(tess_json_as_int(value, 0));
    if (tess_json_is_number(value))
        return tess_json_double(tess_json_as_double(value, 0));
    return tess_json_is_bool(value) ? tess_json_bool(tess_json_as_bool(value, false)) : tess_json_null();
}

tess_json *tess_shorten(tess_json *record, int64_t most, size_t letters)
{
    tess_json *copy = shorter(record, most, letters);
    tess_json_free(record);
    return copy;
}
