#include "job/common/together.h"

#include <stdio.h>
#include <string.h>

#include "job/common/note.h"

bool tess_together_equal(const void *samples, size_t size, size_t step, int64_t pixels,
                         const unsigned char *valid)
{
    const char *at = samples;
    for (size_t i = 0; i < (size_t)pixels * step; i += step)
        for (size_t c = 1; c < TESS_TOGETHER_COLOURS; c++)
            if ((valid && valid[i] != valid[i + c]) ||
                ((!valid || valid[i]) && memcmp(at + i * size, at + (i + c) * size, size) != 0))
                return false;
    return true;
}

bool tess_together_replace(const tess_together *seen, const char *file, bool named, const tess_common *common)
{
    char why[112];
    if (!(seen->equal || seen->shared || seen->unlike))
        return false;
    if (seen->equal)
        snprintf(why, sizeof why, "its three channels are equal");
    else if (seen->unlike)
        snprintf(why, sizeof why,
                 "its channels are not alike, as colours are (correlation of their structures %.2f)",
                 seen->alike);
    else
        snprintf(why, sizeof why, "its channels share their noise (correlation %.2f)", seen->correlation);
    if (named) {
        tess_note(common, TESS_NOTE_WARNING, "%s: %s%s; `model` drunet-gray-small denoises each by itself",
                  file, why,
                  seen->unlike ? ": a model for colours mixes them"
                               : ", of which a model for colours leaves most");
        return false;
    }
    tess_note(common, TESS_NOTE_WARNING,
              "%s: %s: each is denoised by itself, by the model for gray images; `model` drunet-color-small "
              "takes them together",
              file, why);
    return true;
}
