/* Notes on a problem file whose entries are possible, but more often a mistake. */
#include <math.h>
#include <stdio.h>

#include "job/common/note.h"
#include "job/reconstruct/problem/read.h"

/* Angles that span at most one turn in radians; scans of so few degrees are rare. */
enum { MOST_NAMED = 6 };          /* of the views that are left out */
static const double SHARP = 0.02; /* columns by which the centre may be off */

static bool look_like_radians(const tess_problem *p)
{
    static const double turn = 6.2832;
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < p->count; i++)
        low = fmin(low, p->angles[i]), high = fmax(high, p->angles[i]);
    return p->count >= 8 && high - low > 1.5 && high <= turn && low >= -turn;
}

/* Views half a turn apart see the same. */
static bool at_one_angle(const tess_problem *p)
{
    for (int64_t i = 1; i < p->count; i++)
        if (fabs(remainder(p->angles[i] - p->angles[0], 180)) > 1e-6)
            return false;
    return p->count > 1;
}

/* Whether the plane of the detector passes through the volume or in front of it, as seen from the source. */
static bool detector_in_front(const tess_problem *p, const double *view)
{
    const double *source = view, *detector = view + 3, *u = view + 6, *v = view + 9;
    const double normal[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
                              u[0] * v[1] - u[1] * v[0]};
    const double sides[3] = {(double)p->width, (double)p->height, (double)p->depth};
    double away = 0, place = 0, farthest = 0;
    for (int i = 0; i < 3; i++) {
        away += normal[i] * (detector[i] - source[i]);
        place += normal[i] * detector[i];
        farthest += 0.5 * fabs(normal[i]) * sides[i] * p->spacing;
    }
    return (away < 0 ? -place : place) < farthest;
}

static void doubt_radon(const tess_problem *p, const tess_common *common)
{
    if (look_like_radians(p))
        tess_note(common, TESS_NOTE_WARNING,
                  "%s: its angles are taken as degrees, but look like radians; multiply them by 180/pi if so",
                  p->name);
    if (at_one_angle(p))
        tess_note(common, TESS_NOTE_WARNING,
                  "%s: all %lld views are at one angle, %g degrees, from which no image can be found; check "
                  "\"angles\"",
                  p->name, (long long)p->count, p->angles[0]);
    if (!p->margin[0])
        return;
    const long long side = p->width + 2 * p->margin[0];
    char axis[96] = "";
    if (p->axis_given)
        snprintf(axis, sizeof axis, " with \"axis\": [%.10g, %.10g]", p->axis[0] + (double)p->margin[0],
                 p->axis[1] + (double)p->margin[0]);
    tess_note(
        common, TESS_NOTE_WARNING,
        "%s: columns outside the shadow of an image of %lld x %lld, or at its rim, hold up to %.0f %% of "
        "the largest; the image is computed with a side of %lld and cropped: \"size\": %lld%s shows all",
        p->measurement, (long long)p->width, (long long)p->width, 100 * p->outside, side, side, axis);
}

/* A pixel of the detector, in words. */
static void name_pixel(const tess_problem *p, int64_t at, char name[64])
{
    snprintf(name, 64, p->file_rows > 1 ? "column %lld of row %lld" : "column %lld",
             (long long)(at % p->file_columns), (long long)(at / p->file_columns));
}

static void doubt_pixels(const tess_problem *p, const tess_common *common)
{
    if (p->dead_count == 0)
        return;
    char place[64];
    name_pixel(p, p->dead[0].at, place);
    tess_note(
        common, TESS_NOTE_WARNING,
        "%s: %lld pixel(s) of the detector are dead, the first at %s: they have no light, do not change "
        "from view to view, or do not follow their neighbours; they are filled from these",
        p->measurement, (long long)p->dead_count, place);
}

static void doubt_values(const tess_problem *p, const tess_common *common)
{
    if (p->zinger_count == 0)
        return;
    char place[64];
    name_pixel(p, p->zingers[0].at, place);
    tess_note(common, TESS_NOTE_WARNING,
              "%s: %lld value(s) are far from those beside them in column and view, the first in view %lld, "
              "%s (counted from 0), as where gamma rays hit the detector; they are filled from these",
              p->measurement, (long long)p->zinger_count, (long long)p->zingers[0].view, place);
}

static void doubt_views(const tess_problem *p, const tess_common *common)
{
    char list[64] = "";
    int used = 0;
    for (int64_t i = 0; i < p->lost_count && i < MOST_NAMED; i++)
        used +=
            snprintf(list + used, sizeof list - (size_t)used, i ? ", %lld" : "%lld", (long long)p->lost[i]);
    if (p->lost_count)
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: %lld of %lld views, %s%s (counted from 0), see nothing or no light, unlike those before "
            "and after; they are left out",
            p->measurement, (long long)p->lost_count, (long long)(p->count + p->lost_count), list,
            p->lost_count > MOST_NAMED ? ", ..." : "");
    if (p->blank_views)
        tess_note(common, TESS_NOTE_WARNING,
                  "%s: %lld of %lld views see nothing or no light, which are too many to be left out; if "
                  "they were not recorded, remove them and their angles or vectors, or the result is wrong",
                  p->measurement, (long long)p->blank_views, (long long)p->count);
}

static void doubt_entries(const tess_problem *p, const tess_common *common)
{
    if (p->transmission)
        tess_note(common, TESS_NOTE_WARNING,
                  "%s: its values are near 1 at both sides and less between, as the light that passes an "
                  "object, but are taken as line integrals; give \"flat\": 1 if they are transmission",
                  p->measurement);
    if ((p->centre_from == TESS_CENTRE_MASS || p->centre_from == TESS_CENTRE_SPECTRUM) &&
        p->centre_within > SHARP)
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: \"centre\" is %.2f only to within about %.2f columns (one standard error), because few or "
            "no views are half a turn apart; edges and thin parts are blurred if it is off: scan a full "
            "turn, "
            "or give the column",
            p->measurement, p->centre, p->centre_within);
    if (p->axis_off == 0)
        return;
    if (p->physics == TESS_PHYSICS_RADON)
        tess_note(common, TESS_NOTE_WARNING,
                  "%s: the axis is taken to be seen in the middle, at column %g, but the views show it near "
                  "%.*f; give \"centre\": \"auto\", or the column",
                  p->measurement, p->centre, fabs(p->axis_off) < 0.3 ? 2 : 1, p->centre + p->axis_off);
    else
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: the views show the axis %.1f columns to the %s of where %s has it; check the offset of "
            "the detector, which blurs the result if it is wrong",
            p->measurement, fabs(p->axis_off), p->axis_off < 0 ? "left" : "right", p->geometry);
}

void tess_problem_doubts(const tess_problem *p, const tess_common *common)
{
    int64_t in_front = 0;
    if (p->physics != TESS_PHYSICS_BLUR && p->low < 0)
        tess_note(common, TESS_NOTE_WARNING,
                  "%s: \"range\" begins with %g; the network was trained on images from 0 up, and blurs what "
                  "is below",
                  p->name, p->low);
    doubt_pixels(p, common);
    doubt_values(p, common);
    doubt_views(p, common);
    doubt_entries(p, common);
    if (p->physics == TESS_PHYSICS_RADON)
        doubt_radon(p, common);
    for (int64_t i = 0; p->physics == TESS_PHYSICS_CONE && !p->parallel && i < p->count; i++)
        in_front += detector_in_front(p, p->vectors + 12 * i);
    if (in_front)
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: in %lld of %lld views the detector lies in the volume, or between it and the source; its "
            "pixels are taken to see the whole ray through the volume",
            p->geometry, (long long)in_front, (long long)p->count);
    if (p->view_order[0])
        tess_note(common, TESS_NOTE_DETAIL, "%s: %s", p->measurement, p->view_order);
}
