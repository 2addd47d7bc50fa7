#include "base/json_numbers.h"

#include <stdbool.h>
#include <string.h>

#include "base/json_door.h"

enum { FEWEST_DIGITS = 12, LONGEST_REAL = 32 };

static double real_of(const char *text, size_t length)
{
    json_t *value = tess_json_load(text, length, NULL);
    const double real = json_real_value(value);
    json_decref(value);
    return real;
}

/* Writes a number, given with 17 digits, with as few as give the same number: 0.1, not 0.10000000000000001. jansson reads
 * and writes it, because strtod and printf depend on the locale. Returns its length. */
static size_t shorten_real(const char *text, size_t length, char *out)
{
    json_t *value = tess_json_load(text, length, NULL);
    size_t used = length;
    memcpy(out, text, length);
    for (size_t digits = FEWEST_DIGITS; value && digits < TESS_JSON_DIGITS; digits++) {
        char trial[LONGEST_REAL];
        const size_t bytes =
            json_dumpb(value, trial, sizeof trial, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        if (bytes == 0 || bytes > length || real_of(trial, bytes) != json_real_value(value))
            continue;
        memcpy(out, trial, used = bytes);
        break;
    }
    json_decref(value);
    return used;
}

void tess_json_shorten(char *text)
{
    char *to = text;
    for (const char *at = text; *at;) {
        size_t length = 1;
        if (*at == '"') {
            while (at[length] && at[length] != '"')
                length += at[length] == '\\' ? 2 : 1;
            length++;
        } else if (*at == '-' || (*at >= '0' && *at <= '9')) {
            length = strspn(at, "-+.eE0123456789");
        }
        char real[LONGEST_REAL];
        const bool point = memchr(at, '.', length) || memchr(at, 'e', length) || memchr(at, 'E', length);
        const bool is_real = *at != '"' && length > 1 && length <= sizeof real && point;
        const size_t kept = is_real ? shorten_real(at, length, real) : length;
        memmove(to, is_real ? real : at, kept);
        to += kept;
        at += length;
    }
    *to = '\0';
}
