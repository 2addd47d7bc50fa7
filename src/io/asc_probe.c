/* asc_probe.c: reads the numbers of an ESRI ASCII grid. GDAL takes them for float32 if one has a point, so that
 * 123456.789 would become 123456.7891, and in a file whose nodata value is written -9999.0, 20000013 would become 20000012. */
#include "io/asc_probe.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORD = 64, EXACT = 17 };

/* The next word; false at the end of the file, or at a word that is no number nor name. */
static bool next_word(FILE *file, char word[WORD])
{
    int c = getc(file), length = 0;
    while (isspace(c))
        c = getc(file);
    for (; c != EOF && !isspace(c) && length < WORD - 1; c = getc(file))
        word[length++] = (char)c;
    word[length] = 0;
    return length > 0 && length < WORD - 1;
}

/* Decimal digits that count. */
static int digits_of(const char *word)
{
    int digits = 0;
    for (; *word && *word != 'e' && *word != 'E'; word++)
        digits += isdigit((unsigned char)*word) && (digits > 0 || *word != '0');
    return digits;
}

/* Up to six digits float32 holds any number of a usual size. */
static bool is_changed(const char *word)
{
    const int digits = digits_of(word);
    char *end, again[WORD];
    if (digits <= FLT_DIG)
        return false;
    const double value = strtod(word, &end);
    if (*end || !isfinite(value) || fabs(value) > FLT_MAX)
        return false;
    if (digits >= EXACT)
        return (double)(float)value != value;
    snprintf(again, sizeof again, "%.*e", digits - 1, (double)(float)value);
    return strtod(again, &end) != value;
}

bool tess_asc_needs_doubles(const char *path)
{
    FILE *file = fopen(path, "rb");
    char word[WORD], nodata[WORD] = "";
    bool changed = false;
    while (file && !changed && next_word(file, word)) {
        const bool name = isalpha((unsigned char)word[0]), is_nodata = strcasecmp(word, "NODATA_value") == 0;
        if (name && !next_word(file, word))
            break;
        if (is_nodata)
            memcpy(nodata, word, sizeof nodata);
        changed = !name && strcmp(word, nodata) != 0 && is_changed(word);
    }
    if (file)
        fclose(file);
    return changed;
}
