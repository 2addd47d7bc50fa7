#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Keeps the message on one line, whatever bytes a hostile file name contains. */
static void keep_one_line(char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 32 || *p == 127)
            *p = ' ';
}

tess_status tess_fail(tess_error *error, tess_status status, const char *format, ...)
{
    if (!error)
        return status;
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    keep_one_line(error->text);
    return status;
}

tess_status tess_fail_prefix(tess_error *error, tess_status status, const char *prefix)
{
    if (!error)
        return status;
    tess_error old = *error;
    old.text[TESS_ERROR_TEXT - 1] = '\0';
    return tess_fail(error, status, "%s: %s", prefix, old.text);
}
