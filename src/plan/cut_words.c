/* Messages about a cut: the reason for it, and why one does not fit. */
#include <stdio.h>

#include "plan/cut_impl.h"
#include "plan/limit.h"

static const double MIB = 1 << 20;

/* The words that differ between images and volumes. */
typedef struct words {
    const char *what, *tiles, *pixels, *others;
    const char *instead_of_tile, *instead_of_halo; /* suggestions */
    int first_axis;                                /* the first axis in messages */
} words;

static const words image_words = {
    .what = "image",
    .tiles = "tiles",
    .pixels = "pixels",
    .others = "images and measurements",
    .instead_of_tile = "`tile` auto `batch` auto",
    .instead_of_halo = "a smaller `halo` or `batch`, or a smaller model",
    .first_axis = TESS_HEIGHT,
};
static const words volume_words = {
    .what = "volume",
    .tiles = "windows",
    .pixels = "voxels",
    .others = "volumes and views",
    .instead_of_tile = "`tile` auto",
    .instead_of_halo = "a smaller `halo`, or a smaller model",
    .first_axis = TESS_DEPTH,
};

static const words *words_for(const tess_cut_plan *plan)
{
    return plan->volume ? &volume_words : &image_words;
}

typedef struct size_text {
    char text[72];
} size_text;

/* "480 x 640", or with the depth first. */
static size_text sizes(const words *say, const int64_t size[TESS_SPATIAL])
{
    size_text all = {""};
    int length = 0;
    for (int i = say->first_axis; i < TESS_SPATIAL; i++)
        length += snprintf(all.text + length, sizeof all.text - (size_t)length, "%s%lld",
                           i > say->first_axis ? " x " : "", (long long)size[i]);
    return all;
}

void tess_cut_say_whole(const tess_cutter *c, tess_cut_plan *plan)
{
    snprintf(plan->reason, sizeof plan->reason, "the whole %s fits the limit of %.0f MiB",
             words_for(plan)->what, (double)c->request->limit / MIB);
}

void tess_cut_say_asked(const tess_cutter *c, tess_cut_plan *plan)
{
    const words *say = words_for(plan);
    int64_t asked[TESS_SPATIAL], used[TESS_SPATIAL];
    bool same = true, cut = false;
    if (c->request->tile[TESS_HEIGHT] == TESS_TILE_WHOLE) {
        snprintf(plan->reason, sizeof plan->reason, "the whole %s, as asked", say->what);
        return;
    }
    for (int i = say->first_axis; i < TESS_SPATIAL; i++) {
        used[i] = tess_axis_largest_tile(&plan->axis[i]);
        asked[i] = c->request->tile[i] ? c->request->tile[i] : used[i];
        same &= asked[i] == used[i];
        cut |= asked[i] != used[i] && plan->axis[i].tiles > 1;
    }
    if (same) {
        snprintf(plan->reason, sizeof plan->reason, "tile as asked");
        return;
    }
    int length = snprintf(plan->reason, sizeof plan->reason,
                          "tile %s asked, %s used: ", sizes(say, asked).text, sizes(say, used).text);
    char *rest = plan->reason + length;
    const size_t room = sizeof plan->reason - (size_t)length;
    if (!cut)
        snprintf(rest, room, "the %s is no larger", say->what);
    else if (plan->volume)
        snprintf(rest, room, "tiles are alike and lie on the network's grid of %s",
                 sizes(say, c->alignment).text);
    else /* the same for rows and columns */
        snprintf(rest, room, "tiles are alike and lie on the network's grid of %lld",
                 (long long)c->alignment[TESS_HEIGHT]);
}

void tess_cut_say_chosen(const tess_cutter *c, tess_cut_plan *plan)
{
    const words *say = words_for(plan);
    int64_t tiles[TESS_SPATIAL];
    double pixels = 1;
    for (int i = 0; i < TESS_SPATIAL; i++) {
        tiles[i] = plan->axis[i].tiles;
        pixels *= (double)c->padded[i];
    }
    snprintf(plan->reason, sizeof plan->reason, "%s %s fit the limit of %.0f MiB; halos cost %.0f %% more %s",
             sizes(say, tiles).text, say->tiles, (double)c->request->limit / MIB,
             100 * (tess_cut_pixels(plan, tess_axis_total_window) / pixels - 1), say->pixels);
}

tess_status tess_cut_refuse(const tess_cut_request *r, const tess_cut_plan *plan, tess_error *error)
{
    const words *say = words_for(plan);
    if (!tess_cut_host_fits(r, plan))
        return tess_fail(error, TESS_OVER_LIMIT,
                         "%.1fM of rows do not fit the %.1fM that the host can give; use a smaller `tile`",
                         (double)(plan->io_block + r->held_bytes) / MIB, (double)r->host_limit / MIB);
    tess_shortage shortage = {.asked = r->asked_limit,
                              .limit = r->limit,
                              .bytes = plan->bytes,
                              .others = r->others,
                              .others_name = say->others,
                              .reserve = tess_cut_reserve(r->separate_memory),
                              .needed = tess_cut_total(r, plan),
                              .advice = r->tile[TESS_HEIGHT] ? say->instead_of_tile : say->instead_of_halo};
    shortage.bytes.by[TESS_MEM_WEIGHTS] += r->other_weights;
    if (r->job_needs > shortage.needed)
        shortage.needed = r->job_needs;
    return tess_over_limit(&shortage, error);
}
