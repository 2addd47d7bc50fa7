/* Values of options. Every error message is one line that names the option, what was given and what would be right. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

void *cli_field(const cli_option *option, void *target)
{
    return (char *)target + option->offset;
}

bool cli_refuse(const cli_option *option, const char *text, const char *expected)
{
    cli_complain("%s %s: expected %s", option->name, text, expected);
    return false;
}

bool cli_flag(const cli_option *option, const char *text, void *target)
{
    (void)text;
    *(bool *)cli_field(option, target) = true;
    return true;
}

bool cli_text(const cli_option *option, const char *text, void *target)
{
    *(const char **)cli_field(option, target) = text;
    return true;
}

bool cli_read_number(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end != text && *end == '/') {
        const char *below = end + 1;
        const double divisor = strtod(below, &end);
        if (end == below || divisor == 0)
            return false;
        *value /= divisor;
    }
    return end != text && *end == '\0' && isfinite(*value);
}

static bool number_between(const cli_option *option, const char *text, double least, double most,
                           const char *expected, void *target)
{
    double value;
    if (!cli_read_number(text, &value) || value < least || value > most)
        return cli_refuse(option, text, expected);
    *(double *)cli_field(option, target) = value;
    return true;
}

bool cli_from_0(const cli_option *option, const char *text, void *target)
{
    return number_between(option, text, 0, INFINITY, "a number of 0 or more, such as 0.098 or 25/255",
                          target);
}

bool cli_above_0(const cli_option *option, const char *text, void *target)
{
    return number_between(option, text, nextafter(0, 1), INFINITY, "a number above 0", target);
}

bool cli_share(const cli_option *option, const char *text, void *target)
{
    return number_between(option, text, 0, 1, "a number from 0 to 1", target);
}

bool cli_read_integer(const cli_option *option, const char *text, int64_t least, int64_t most, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (end != text && !*end && !errno && *value >= least && *value <= most)
        return true;
    char expected[96];
    snprintf(expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64, least, most);
    return cli_refuse(option, text, expected);
}

bool cli_integer(const cli_option *option, const char *text, void *target)
{
    return cli_read_integer(option, text, option->least, option->most, cli_field(option, target));
}

bool cli_small(const cli_option *option, const char *text, void *target)
{
    int64_t value;
    if (!cli_read_integer(option, text, option->least, option->most, &value))
        return false;
    *(int *)cli_field(option, target) = (int)value;
    return true;
}

bool cli_halo(const cli_option *option, const char *text, void *target)
{
    int64_t *halo = cli_field(option, target);
    if (strcmp(text, "auto") == 0)
        *halo = TESS_HALO_AUTO;
    else if (strcmp(text, "exact") == 0)
        *halo = TESS_HALO_EXACT;
    else if (!isdigit((unsigned char)text[0]))
        return cli_refuse(option, text, "auto, exact or a number of pixels");
    else
        return cli_read_integer(option, text, 0, 1 << 20, halo);
    return true;
}

bool cli_batch(const cli_option *option, const char *text, void *target)
{
    int64_t *batch = cli_field(option, target);
    *batch = 0;
    return strcmp(text, "auto") == 0 || cli_read_integer(option, text, 1, 4096, batch);
}

/* N, NxN or NxNxN. Returns how many numbers there are, 0 if the text has another form. */
static int read_sides(const char *text, int64_t sides[3])
{
    for (int count = 0; count < 3; text++) {
        char *end;
        if (!isdigit((unsigned char)*text))
            return 0;
        sides[count] = strtoll(text, &end, 10);
        if (sides[count] < 1 || sides[count] > 1 << 24)
            return 0;
        count++;
        if (*end == '\0')
            return count;
        if (*end != 'x')
            return 0;
        text = end;
    }
    return 0;
}

bool cli_read_tile(const cli_option *option, const char *text, int64_t *depth, int64_t *height,
                   int64_t *width)
{
    int64_t sides[3], ignored;
    const bool volumes = depth != NULL;
    depth = volumes ? depth : &ignored;
    const int count = read_sides(text, sides);
    *depth = 0;
    if (strcmp(text, "auto") == 0)
        *height = *width = 0;
    else if (strcmp(text, "whole") == 0)
        *height = *width = TESS_TILE_WHOLE;
    else if (count == 1) {
        *height = *width = sides[0];
        *depth = TESS_TILE_CUBE;
    } else if (count == 2) {
        *height = sides[0];
        *width = sides[1];
    } else if (count == 3 && volumes) {
        *depth = sides[0];
        *height = sides[1];
        *width = sides[2];
    } else
        return cli_refuse(option, text, volumes ? "auto, whole, N, HxW or DxHxW" : "auto, whole, N or HxW");
    return true;
}

/* A number and optionally a unit: K, M, G or T, also with i, B or iB, in either case; all are powers of 1024. */
bool cli_size(const cli_option *option, const char *text, void *target)
{
    static const char units[] = "kmgt";
    char *end, *at;
    const double value = strtod(text, &end);
    double bytes = value;
    for (at = end; *at == ' '; at++)
        ;
    const char *unit = *at ? strchr(units, tolower((unsigned char)*at)) : NULL;
    if (unit) {
        bytes = ldexp(value, 10 * (int)(unit - units + 1));
        at += tolower((unsigned char)at[1]) == 'i' ? 2 : 1;
    }
    at += tolower((unsigned char)*at) == 'b';
    if (end == text || *at || !(bytes > 0) || bytes > 1e18)
        return cli_refuse(option, text, "a size such as 300M, 512MiB or 2G");
    if (bytes < 1048576) {
        char hint[64] = "";
        if (value >= 1)
            snprintf(hint, sizeof hint, "; did you mean %.*sM?", (int)(end - text), text);
        cli_complain("%s %s: %.0f bytes are less than 1 MiB%s", option->name, text, bytes, hint);
        return false;
    }
    *(uint64_t *)cli_field(option, target) = (uint64_t)bytes;
    return true;
}
