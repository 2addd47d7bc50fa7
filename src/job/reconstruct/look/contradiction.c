#include "job/reconstruct/look/contradiction.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/reconstruct/look/crossed.h"
#include "job/reconstruct/look/noise.h"

/* Of what explains a difference: right blurs of photographs reach 1.4, with grain three pixels wide whose level is given 1.9; kernels in the wrong
 * order 3 to 30, a shift by one pixel 1.4 to 7. */
static const double CONTRADICTS = 2;
/* In pixels: a shift by less is no fault. */
static const double ALIGNED = 0.13;
/* Of the range: the least noise that is compared with, since measured kernels and the light of several frames are not exact. */
static const double LEAST_JUDGED = 0.002;

enum {
    PARTNERS = 4,   /* before and behind a blur, with which it is compared: up to nine blurs, all others */
    LEAST_GRID = 3, /* places down and across, however long that takes */
    LEAST_VALUES = 512, /* fewer say nothing about a pair */
    FLAT = 5,           /* one of so many places has little texture */
    MOST_NAMED = 4
};
static const double MOST_WORK = 4e9;

/* Two blurs that are compared. */
typedef struct two_blurs {
    int64_t blurs[2];
    tess_difference difference;
    double times; /* what noise explains */
    bool contradict;
} two_blurs;

typedef struct comparing {
    const tess_problem *p;
    const tess_recipe *recipe;
    tess_crossed crossed;
    int64_t count, places;
    two_blurs *pairs;
    double *noise; /* of each blur at each place, then of each blur */
} comparing;

size_t tess_problem_contradiction_bytes(const tess_problem *p)
{
    const bool judged = p->physics == TESS_PHYSICS_BLUR && !p->synthetic && !p->as_published && p->count > 1;
    return judged ? tess_crossed_bytes(p) : 0;
}

static tess_status list_pairs(comparing *c, tess_error *error)
{
    const int64_t blurs = c->p->count, most = tess_min_i64(PARTNERS, blurs / 2);
    const size_t places = TESS_CROSSED_GRID * TESS_CROSSED_GRID;
    c->pairs = tess_small_alloc((size_t)(blurs * most), sizeof *c->pairs);
    c->noise = tess_small_alloc((size_t)blurs * places, sizeof *c->noise);
    if (!c->pairs || !c->noise)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to compare the blurs");
    for (int64_t i = 0; i < blurs; i++)
        for (int64_t ahead = 1; ahead <= most; ahead++)
            if (2 * ahead < blurs ||
                i < ahead) /* the last ones of an even number are the same from both ends */
                c->pairs[c->count++] = (two_blurs){.blurs = {i, (i + ahead) % blurs}};
    return TESS_OK;
}

static void choose_places(comparing *c)
{
    double work = 0;
    int64_t most = TESS_CROSSED_GRID;
    for (int64_t k = 0; k < c->count; k++)
        work += tess_crossed_work(&c->crossed, c->pairs[k].blurs[0], c->pairs[k].blurs[1]);
    while (most > LEAST_GRID && (double)(most * most) * work > MOST_WORK)
        most--;
    tess_crossed_choose(&c->crossed, most);
    c->places = c->crossed.grid[0] * c->crossed.grid[1];
}

static tess_status look(comparing *c, tess_error *error)
{
    tess_crossed *crossed = &c->crossed;
    for (int64_t at = 0; at < c->places; at++) {
        TESS_TRY(tess_share_agree(c->p->share, tess_stop_check(&crossed->w->engine->stop, error), error));
        TESS_TRY(tess_crossed_take(crossed, at, error));
        for (int64_t i = 0; i < c->p->count; i++)
            c->noise[i * c->places + at] = tess_crossed_noise(crossed, i);
        for (int64_t k = 0; k < c->count; k++)
            tess_crossed_add(crossed, c->pairs[k].blurs[0], c->pairs[k].blurs[1], &c->pairs[k].difference);
    }
    return TESS_OK;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The level of blur `i`. One that is given may be in another unit, or that of another blur, so what its pixels show counts as well. */
static double noise_of(comparing *c, int64_t i)
{
    double *seen = c->noise + i * c->places;
    int64_t known = 0;
    for (int64_t at = 0; at < c->places; at++)
        if (seen[at] >= 0)
            seen[known++] = seen[at];
    qsort(seen, (size_t)known, sizeof *seen, by_value);
    const double shown = known > 0 ? seen[known / FLAT] : 0,
                 stated = c->recipe->noise / tess_problem_weight(c->p, i);
    return fmax(fmax(shown, stated), LEAST_JUDGED * c->p->high);
}

/* Whether two blurs differ by more than the noise of both, and a slight shift, explain. */
static void judge(comparing *c, two_blurs *pair)
{
    const int64_t i = pair->blurs[0], j = pair->blurs[1];
    const tess_difference *d = &pair->difference;
    const double noise = d->count * (pow(c->noise[i], 2) * c->crossed.taps[j].squares +
                                     pow(c->noise[j], 2) * c->crossed.taps[i].squares);
    if (d->count < LEAST_VALUES)
        return;
    pair->times = sqrt(d->square / noise);
    pair->contradict = d->square > CONTRADICTS * CONTRADICTS * (noise + ALIGNED * ALIGNED * d->slope);
}

static void compare(comparing *c)
{
    for (int64_t i = 0; i < c->p->count; i++)
        c->noise[i] = noise_of(c, i);
    for (int64_t k = 0; k < c->count; k++)
        judge(c, &c->pairs[k]);
}

/* What the others say about a blur. */
typedef struct doubt {
    bool wrong;
    int64_t others; /* that it contradicts, without those that are wrong */
    double sum;     /* of how many times they differ */
} doubt;

/* The blur that contradicts most others; among several the one that differs most. -1: none contradicts another. */
static int64_t worst_of(const comparing *c, doubt *doubts)
{
    int64_t worst = -1;
    for (int64_t i = 0; i < c->p->count; i++)
        doubts[i] = (doubt){.wrong = doubts[i].wrong};
    for (int64_t k = 0; k < c->count; k++) {
        doubt *const two[2] = {&doubts[c->pairs[k].blurs[0]], &doubts[c->pairs[k].blurs[1]]};
        const bool counts = c->pairs[k].contradict && !two[0]->wrong && !two[1]->wrong;
        for (int n = 0; n < 2 && counts; n++) {
            two[n]->others++;
            two[n]->sum += c->pairs[k].times;
        }
    }
    for (int64_t i = 0; i < c->p->count; i++) {
        const doubt *d = &doubts[i], *most = worst < 0 ? NULL : &doubts[worst];
        if (d->others > 0 &&
            (!most || d->others > most->others || (d->others == most->others && d->sum > most->sum)))
            worst = i;
    }
    return worst;
}

/* Leaves out one blur after another until the others agree. If no two are left that do, all are in doubt. */
static void find_wrong(const comparing *c, doubt *doubts)
{
    bool agree = false;
    for (int64_t i; (i = worst_of(c, doubts)) >= 0;)
        doubts[i].wrong = true;
    for (int64_t k = 0; k < c->count; k++) {
        const two_blurs *pair = &c->pairs[k];
        agree = agree || (pair->difference.count >= LEAST_VALUES && !doubts[pair->blurs[0]].wrong &&
                          !doubts[pair->blurs[1]].wrong);
    }
    for (int64_t k = 0; k < c->count && !agree; k++)
        if (c->pairs[k].contradict)
            doubts[c->pairs[k].blurs[0]].wrong = doubts[c->pairs[k].blurs[1]].wrong = true;
}

/* Keeps in the problem which blurs are wrong, if any is. */
static tess_status conclude(const comparing *c, tess_problem *p, tess_error *error)
{
    double times = 0;
    for (int64_t k = 0; k < c->count; k++)
        if (c->pairs[k].contradict)
            times = fmax(times, c->pairs[k].times);
    if (!(times > 0))
        return TESS_OK;
    doubt *doubts = tess_small_alloc((size_t)p->count, sizeof *doubts);
    p->contradicts = tess_small_alloc((size_t)p->count, sizeof *p->contradicts);
    const bool got = doubts && p->contradicts;
    if (got)
        find_wrong(c, doubts);
    for (int64_t i = 0; got && i < p->count; i++)
        p->contradicts[i] = doubts[i].wrong;
    tess_small_free(doubts);
    if (!got)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to compare the blurs");
    p->contradiction = times;
    return TESS_OK;
}

static int64_t wrong_blurs(const tess_problem *p)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < p->count; i++)
        wrong += p->contradicts[i];
    return wrong;
}

/* Appends to a text, as far as there is room. */
static void append(char *text, size_t size, const char *more)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", more);
}

/* Names the blurs that are wrong, with the files of their kernels. */
static void name_wrong(const tess_problem *p, char *text, size_t size)
{
    const int64_t wrong = wrong_blurs(p);
    int64_t named = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < p->count && named < MOST_NAMED; i++) {
        char one[160];
        if (!p->contradicts[i])
            continue;
        const char *file = p->kernel_files ? strrchr(p->kernel_files[i], '/') : NULL;
        file = p->kernel_files ? (file ? file + 1 : p->kernel_files[i]) : NULL;
        named++;
        snprintf(one, sizeof one, "%s%lld%s%.100s%s",
                 named == 1       ? ""
                 : named == wrong ? " and "
                                  : ", ",
                 (long long)i, file ? " (" : "", file ? file : "", file ? ")" : "");
        append(text, size, one);
    }
    if (named < wrong) {
        char rest[64];
        snprintf(rest, sizeof rest, " and %lld more", (long long)(wrong - named));
        append(text, size, rest);
    }
}

static void say(const tess_problem *p, const tess_common *common)
{
    char names[1024];
    const int64_t wrong = wrong_blurs(p);
    name_wrong(p, names, sizeof names);
    tess_note(common, TESS_NOTE_WARNING,
              "%s: %s %s, counted from 0, contradict%s %s: no picture explains them together; they differ by "
              "up to %.0f times their noise; check the order of \"%s\", whether all blurs show the same "
              "pixels (a shift), and the kernels themselves",
              p->measurement, wrong == 1 ? "blur" : "blurs", names, wrong == 1 ? "s" : "",
              wrong == p->count ? "each other" : "the others", p->contradiction,
              p->kernels ? "kernels" : "angles");
}

static tess_status find(comparing *c, tess_problem *p, tess_workspace *w, tess_error *error)
{
    TESS_TRY(tess_crossed_open(&c->crossed, p, w, error));
    TESS_TRY(tess_share_agree(p->share, list_pairs(c, error), error));
    choose_places(c);
    TESS_TRY(look(c, error));
    compare(c);
    return tess_share_agree(p->share, conclude(c, p, error), error);
}

tess_status tess_problem_find_contradictions(tess_problem *p, const tess_recipe *recipe, tess_workspace *w,
                                             const tess_common *common, tess_error *error)
{
    comparing c = {.p = p, .recipe = recipe};
    if (tess_problem_contradiction_bytes(p) == 0)
        return TESS_OK;
    const tess_status status = find(&c, p, w, error);
    tess_crossed_close(&c.crossed);
    tess_small_free(c.pairs);
    tess_small_free(c.noise);
    if (status == TESS_OK && p->contradiction > 0)
        say(p, common);
    return status;
}
