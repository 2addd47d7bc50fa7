/* tiff_private.c: data of a TIFF that only its own program understands: Photoshop's layers, and what ImageJ keeps with an
 * image (regions, overlays, labels, colour tables).
 *
 * It is not carried over, because it describes the old pixels (layers) or its layout is not documented; but a user who
 * replaces a file must learn that it is lost. */
#include <stdio.h>

#include "io/tiff.h"

enum { LAYERS = 37724, IMAGEJ = 50839, MOST_TAGS = 1 << 20 };

void tess_extras_find_private(const tess_tiff *tiff, tess_extras *out)
{
    tess_tiff_directory d;
    if (!tess_tiff_load(tiff, NULL, tiff->big_endian, MOST_TAGS, &d, NULL, &out->no_memory))
        return;
    for (int i = 0; i < d.count; i++) /* both are bytes, of type 1 or 7 */
        if (d.tags[i].id == LAYERS)
            out->layers = d.tags[i].count;
        else if (d.tags[i].id == IMAGEJ)
            out->imagej = d.tags[i].count;
    tess_tiff_free(&d);
}

void tess_private_words(const tess_extras *extras, char *to, size_t size)
{
    char layers[24], imagej[24];
    tess_extras_size(extras->layers, layers, sizeof layers);
    tess_extras_size(extras->imagej, imagej, sizeof imagej);
    int used = 0;
    to[0] = 0;
    if (extras->layers)
        used = snprintf(to, size, "Photoshop layers (%s)", layers);
    if (extras->imagej && used >= 0 && (size_t)used < size)
        snprintf(to + used, size - (size_t)used, "%sImageJ data, such as regions and labels (%s)",
                 used ? ", " : "", imagej);
}
