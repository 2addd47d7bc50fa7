/* png_profile.c: a colour profile made of the gamma and primaries (gAMA, cHRM) of a PNG, for formats that have no other place
 * for them. Without it a picture of linear light would be shown half as bright.
 *
 * It is a display profile of version 2.1 with three primaries and a power law: ICC.1:1998-09. Primaries are adapted to
 * D50, as profiles want it, by the Bradford matrix. Numbers near those of sRGB need no profile, since that is what
 * programs assume. */
#include <math.h>
#include <string.h>

#include "io/extras.h"

enum { HEAD = 128, MOST_BYTES = 1024, MOST_TAGS = 9 };

static const double SRGB[8] = {0.3127, 0.3290, 0.64, 0.33, 0.30, 0.60, 0.15, 0.06};

static bool is_usual_gamma(const tess_extras *extras)
{
    return extras->gamma == 0 || fabs(extras->gamma * 2.2 - 1) < 0.05;
}

static bool are_usual_primaries(const tess_extras *extras)
{
    double most = 0;
    for (int i = 0; i < 8 && extras->has_primaries; i++)
        most = fmax(most, fabs(extras->primaries[i] - SRGB[i]));
    return most < 0.003;
}

bool tess_extras_needs_profile(const tess_extras *extras, const tess_image_info *info)
{
    const bool colour = info->channels - info->alpha >= 3;
    if (extras->icc.data || extras->has_codes || extras->srgb)
        return false;
    return !is_usual_gamma(extras) || (colour && !are_usual_primaries(extras));
}

/* --- colours --- */

typedef struct matrix {
    double at[3][3];
} matrix;

static void apply(const matrix *m, const double v[3], double out[3])
{
    for (int r = 0; r < 3; r++)
        out[r] = m->at[r][0] * v[0] + m->at[r][1] * v[1] + m->at[r][2] * v[2];
}

static matrix product(const matrix *a, const matrix *b)
{
    matrix m;
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            m.at[r][c] = a->at[r][0] * b->at[0][c] + a->at[r][1] * b->at[1][c] + a->at[r][2] * b->at[2][c];
    return m;
}

static bool invert(const matrix *m, matrix *out)
{
    double d = 0;
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++) {
            const int r1 = (r + 1) % 3, r2 = (r + 2) % 3, c1 = (c + 1) % 3, c2 = (c + 2) % 3;
            out->at[c][r] = m->at[r1][c1] * m->at[r2][c2] - m->at[r1][c2] * m->at[r2][c1];
        }
    for (int c = 0; c < 3; c++)
        d += m->at[0][c] * out->at[c][0];
    for (int i = 0; i < 9; i++)
        out->at[i / 3][i % 3] /= d;
    return fabs(d) > 1e-6;
}

static bool xyz_of(const double xy[2], double out[3])
{
    out[0] = xy[0] / xy[1];
    out[1] = 1;
    out[2] = (1 - xy[0] - xy[1]) / xy[1];
    return xy[1] > 1e-4;
}

/* XYZ of the primaries under D50, as columns. */
static bool find_columns(const double chroma[8], const double d50[3], matrix *columns)
{
    static const matrix bradford = {
        {{0.8951, 0.2664, -0.1614}, {-0.7502, 1.7135, 0.0367}, {0.0389, -0.0685, 1.0296}}};
    double white[3], share[3], from[3], to[3];
    matrix inverse, back, scaled = bradford;
    if (!xyz_of(chroma, white))
        return false;
    for (int c = 0; c < 3; c++) {
        double xyz[3];
        if (!xyz_of(chroma + 2 + 2 * c, xyz))
            return false;
        for (int r = 0; r < 3; r++)
            columns->at[r][c] = xyz[r];
    }
    if (!invert(columns, &inverse) || !invert(&bradford, &back))
        return false;
    apply(&inverse, white, share);
    apply(&bradford, white, from);
    apply(&bradford, d50, to);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++) {
            columns->at[r][c] *= share[c];
            scaled.at[r][c] *= to[r] / from[r];
        }
    const matrix adapt = product(&back, &scaled);
    *columns = product(&adapt, columns);
    for (int i = 0; i < 9; i++)
        if (!(fabs(columns->at[i / 3][i % 3]) < 8)) /* also NaN */
            return false;
    return true;
}

/* --- bytes --- */

typedef struct profile {
    unsigned char data[MOST_BYTES];
    size_t used;
    int tags;
} profile;

static void put(profile *p, size_t at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p->data[at + (size_t)i] = (unsigned char)(value >> (24 - 8 * i));
}

/* Names the bytes from `start` to the end of the profile. */
static void name_tag(profile *p, const char *name, size_t start)
{
    const size_t entry = HEAD + 4 + 12 * (size_t)p->tags++;
    memcpy(p->data + entry, name, 4);
    put(p, entry + 4, (uint32_t)start);
    put(p, entry + 8, (uint32_t)(p->used - start));
}

static void end_tag(profile *p, const char *name, size_t start)
{
    name_tag(p, name, start);
    p->used = (p->used + 3) / 4 * 4;
}

static void add_words(profile *p, const char *name, const char *kind, const char *words)
{
    const size_t start = p->used, bytes = strlen(words) + 1;
    const bool described = strcmp(kind, "desc") == 0; /* with a length, and empty texts in other alphabets */
    memcpy(p->data + start, kind, 4);
    if (described)
        put(p, start + 8, (uint32_t)bytes);
    memcpy(p->data + start + (described ? 12 : 8), words, bytes);
    p->used += (described ? 90 : 8) + bytes;
    end_tag(p, name, start);
}

static void add_xyz(profile *p, const char *name, double x, double y, double z)
{
    const size_t start = p->used;
    const double xyz[3] = {x, y, z};
    memcpy(p->data + start, "XYZ ", 4);
    for (size_t i = 0; i < 3; i++)
        put(p, start + 8 + 4 * i, (uint32_t)(int32_t)lrint(xyz[i] * 65536));
    p->used += 20;
    end_tag(p, name, start);
}

/* A power law, which several tags share. */
static void add_curve(profile *p, const char *const *names, int count, double power)
{
    const size_t start = p->used;
    memcpy(p->data + start, "curv", 4);
    put(p, start + 8, 1);
    put(p, start + 12, (uint32_t)lrint(power * 256) << 16);
    p->used += 14;
    for (int i = 0; i < count; i++)
        name_tag(p, names[i], start);
    p->used = (p->used + 3) / 4 * 4;
}

static void add_head(profile *p, bool colour)
{
    memcpy(p->data + 8, "\2\x10\0\0mntr", 8);
    memcpy(p->data + 16, colour ? "RGB XYZ " : "GRAYXYZ ", 8);
    memcpy(p->data + 24,
           "\x07\xd0\0\1\0\1\0\0\0\0\0\0"
           "acsp",
           16); /* made on the first of January 2000 */
    put(p, 68, 0xf6d6);
    put(p, 72, 0x10000);
    put(p, 76, 0xd32d);
    p->used = HEAD + 4 + 12 * MOST_TAGS;
}

bool tess_extras_make_profile(tess_extras *extras, const tess_image_info *info)
{
    static const char *const curves[] = {"rTRC", "gTRC", "bTRC"}, *const gray[] = {"kTRC"},
                             *const primaries[] = {"rXYZ", "gXYZ", "bXYZ"};
    static const double d50[3] = {0.9642, 1, 0.8249};
    const bool colour = info->channels - info->alpha >= 3;
    const double power = extras->gamma > 0 ? 1 / extras->gamma : 2.2;
    matrix m;
    profile p = {.used = 0};
    if (!(power >= 0.1 && power <= 16) ||
        (colour && !find_columns(extras->has_primaries ? extras->primaries : SRGB, d50, &m)))
        return false;
    add_head(&p, colour);
    add_words(&p, "desc", "desc", "Gamma and primaries of a PNG");
    add_words(&p, "cprt", "text", "No copyright");
    add_xyz(&p, "wtpt", d50[0], d50[1], d50[2]);
    for (int c = 0; c < 3 && colour; c++)
        add_xyz(&p, primaries[c], m.at[0][c], m.at[1][c], m.at[2][c]);
    add_curve(&p, colour ? curves : gray, colour ? 3 : 1, power);
    put(&p, 0, (uint32_t)p.used);
    put(&p, HEAD, (uint32_t)p.tags);
    extras->icc.data = tess_small_alloc(p.used + 1, 1);
    extras->no_memory = extras->no_memory || !extras->icc.data;
    if (!extras->icc.data)
        return false;
    memcpy(extras->icc.data, p.data, p.used);
    extras->icc.bytes = p.used;
    extras->bytes += p.used;
    snprintf(extras->icc_name, sizeof extras->icc_name, "Gamma and primaries");
    return true;
}
