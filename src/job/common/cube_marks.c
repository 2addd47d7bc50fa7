#include "job/common/cube_marks.h"

#include <stdio.h>

/* Of all files together. */
typedef struct marks_sum {
    int64_t pixels, looked; /* looked at in the files that have some */
    int64_t files, first;   /* first: a file */
    int64_t most;           /* pixels of the most frequent kind, */
    double value;           /* and their sample */
    bool several, part;     /* kinds; of a file only a part was looked at */
} marks_sum;

/* Zeros that are where no mark would be. */
static bool keeps(const tess_cube_marks *m, int kind)
{
    return kind == TESS_CUBE_ZERO && !m->missing[kind] && !m->sparse && m->count[kind] < m->looked;
}

static marks_sum sum_of(const tess_pixel_cubes *cubes, bool kept)
{
    marks_sum s = {0};
    for (int k = 0; k < TESS_CUBE_KINDS; k++) {
        int64_t count = 0;
        double value = 0;
        for (int64_t f = 0; f < cubes->list.count; f++) {
            const tess_cube_marks *m = &cubes->list.entries[f].marks;
            if (m->count[k] == 0 || !(kept ? keeps(m, k) : m->missing[k]))
                continue;
            count += m->count[k];
            value = m->value[k];
        }
        s.several = s.several || (count > 0 && s.pixels > 0);
        s.pixels += count;
        if (count > s.most)
            s.most = count, s.value = value;
    }
    for (int64_t f = cubes->list.count - 1; f >= 0; f--) {
        const tess_cube_marks *m = &cubes->list.entries[f].marks;
        bool some = false;
        for (int k = 0; k < TESS_CUBE_KINDS; k++)
            some = some || (m->count[k] > 0 && (kept ? keeps(m, k) : m->missing[k]));
        if (!some)
            continue;
        s.files++;
        s.first = f;
        s.looked += m->looked;
        s.part = s.part || m->part;
    }
    return s;
}

static void say(const tess_common *common, const tess_pixel_cubes *cubes, const marks_sum *s, const char *why,
                const char *what)
{
    char others[64] = "";
    if (s->files > 1)
        snprintf(others, sizeof others, " and %lld more file(s)", (long long)s->files - 1);
    tess_note(common, TESS_NOTE_WARNING, "%s%s: %lld of %lld pixels%s are %g%s in all bands, %s; %s",
              cubes->list.entries[s->first].path, others, (long long)s->pixels, (long long)s->looked,
              s->part ? " that were looked at" : "", s->value, s->several ? " or another usual mark" : "",
              why, what);
}

void tess_marks_note(const tess_common *common, const tess_pixel_cubes *cubes, const char *keep,
                     const char *drop)
{
    const marks_sum missing = sum_of(cubes, false), kept = sum_of(cubes, true);
    if (missing.pixels > 0)
        say(common, cubes, &missing, "which nothing declares as nodata: they are taken for missing data",
            keep);
    if (kept.pixels > 0 && cubes->list.bands >= TESS_CUBE_MANY_BANDS)
        say(common, cubes, &kept, "too few to be missing data, and count as spectra", drop);
}

tess_json *tess_marks_record(const tess_pixel_cubes *cubes)
{
    const marks_sum missing = sum_of(cubes, false);
    if (missing.pixels == 0)
        return NULL;
    tess_json *record = tess_json_object();
    tess_json_set_int(&record, "pixels", missing.pixels);
    tess_json_set_int(&record, "looked_at", missing.looked);
    tess_json_set_double(&record, "value", missing.value);
    return record;
}
