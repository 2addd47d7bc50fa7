#include "job/note.h"

#include <stdarg.h>
#include <stdio.h>

void tess_note(const tess_common *common, tess_note_level level, const char *format, ...)
{
    char text[512];
    if (!common->note)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    common->note(common->progress_user, level, text);
}
