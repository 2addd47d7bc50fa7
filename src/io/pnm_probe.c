/* pnm_probe.c: reads the header of a Netpbm file: "P5" or "P6", width, height and the maximum, as decimal numbers
 * between white space and comments. A sample means the fraction sample / maximum, but GDAL does not tell the
 * maximum. */
#include "io/pnm_probe.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>

/* Skips white space and comments; returns the first character behind them. */
static int skip(FILE *file)
{
    int c = getc(file);
    while (isspace(c) || c == '#') {
        if (c == '#')
            while (c != EOF && c != '\n')
                c = getc(file);
        c = getc(file);
    }
    return c;
}

static bool read_number(FILE *file, long *out)
{
    int c = skip(file);
    *out = 0;
    if (!isdigit(c))
        return false;
    for (; isdigit(c); c = getc(file))
        if ((*out = 10 * *out + (c - '0')) > 1000000000)
            return false;
    return isspace(c);
}

int tess_pnm_maximum(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    long width, height, most = 0;
    const bool pnm = getc(file) == 'P';
    const int kind = getc(file);
    const bool known = pnm && (kind == '5' || kind == '6') && read_number(file, &width) &&
                       read_number(file, &height) && read_number(file, &most);
    fclose(file);
    return known && most <= 65535 ? (int)most : 0;
}
