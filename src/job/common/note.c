#include "job/common/note.h"

#include <stdarg.h>
#include <stdio.h>

void tess_note(const tess_common *common, tess_note_level level, const char *format, ...)
{
    if (!common->note)
        return;
    char text[TESS_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tess_error line; /* keeps it on one line, even if a file name has line breaks */
    (void)tess_fail(&line, TESS_OK, "%s", text);
    common->note(common->progress_user, level, line.text);
}
