/* The metadata that a writer takes from the file that is restored. */
#include <string.h>

#include "io/writer_impl.h"

/* A PNG that was read as such gives gamma and primaries to another by itself; other formats get a profile, if they have a
 * place for one. */
static tess_status describe_colours(tess_writer *writer, const tess_reader *like, tess_error *error)
{
    const tess_write_format *format = writer->format;
    tess_extras *extras = &writer->extras;
    if (format == &tess_write_png && like->format == &tess_read_png)
        extras->gamma = 0, extras->has_primaries = false;
    if (!tess_extras_needs_profile(extras, &writer->info) || !format->holds_exif ||
        !format->holds_exif(writer->target, extras))
        return TESS_OK;
    const bool made = tess_extras_make_profile(extras, &writer->info);
    return made || !extras->no_memory ? TESS_OK
                                      : tess_fail(error, TESS_NO_MEMORY, "no memory for a colour profile");
}

/* A packet must not point at a rest that the result does not have. */
static void forget_more_xmp(tess_writer *writer)
{
    const tess_write_format *format = writer->format;
    const unsigned held = format->holds ? format->holds(writer->target, &writer->info) : 0;
    for (int i = 0; i < writer->extras.note_count; i++)
        if (strcmp(writer->extras.notes[i].kind, "\xe1") == 0 && !(held & TESS_SAYS_MORE_XMP)) {
            tess_xmp_forget_more(&writer->extras.xmp);
            return;
        }
}

tess_status tess_writer_take_extras(tess_writer *writer, const tess_reader *like, tess_error *error)
{
    const tess_write_format *format = writer->format;
    const bool place = writer->info.only_place;
    if (!place)
        TESS_TRY(tess_extras_load(like->path, &writer->extras, error));
    if (format->unheld)
        writer->extras.unheld = format->unheld(
            writer->target, like->format == format->like_format ? like->state : NULL, &writer->info);
    if (place)
        return TESS_OK;
    TESS_TRY(describe_colours(writer, like, error));
    forget_more_xmp(writer);
    tess_lost_name(writer->format, writer->target, &writer->info, &writer->extras, writer->lost,
                   sizeof writer->lost);
    return TESS_OK;
}

const char *tess_writer_lost(const tess_writer *writer)
{
    return writer->lost[0] ? writer->lost : NULL;
}
