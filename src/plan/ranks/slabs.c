#include "plan/ranks/slabs.h"

#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "physics/rays_bands.h"

enum { NUMBERS = 12 }; /* of a view: physics/rays.h */

/* Of one study. */
typedef struct traffic {
    const tess_rays_settings *settings;
    int ranks;
    tess_ray_nodes nodes;
    tess_shadow_rows *rows;   /* of each view, of each rank */
    double *inside, *between; /* bytes from each rank to each, in the two steps of a round */
} traffic;

static tess_status make_room(traffic *t, const tess_links *links, tess_error *error)
{
    const size_t pairs = (size_t)t->ranks * (size_t)t->ranks;
    TESS_TRY(tess_ray_nodes_plan(t->ranks, links->per_node, &t->nodes, error));
    t->rows = tess_small_alloc((size_t)(t->settings->views * t->ranks), sizeof *t->rows);
    t->inside = tess_small_alloc(pairs, sizeof *t->inside);
    t->between = tess_small_alloc(pairs, sizeof *t->between);
    return t->rows && t->inside && t->between
               ? TESS_OK
               : tess_fail(error, TESS_NO_MEMORY, "no memory for the traffic of %d ranks", t->ranks);
}

static void clear(traffic *t)
{
    tess_ray_nodes_clear(&t->nodes);
    tess_small_free(t->rows);
    tess_small_free(t->inside);
    tess_small_free(t->between);
}

/* Returns the rows of the widest shadow. */
static int64_t find_rows(traffic *t, const tess_strips *slabs)
{
    const tess_rays_settings *s = t->settings;
    int64_t widest = 0;
    for (int64_t i = 0; i < s->views * t->ranks; i++) {
        const int64_t rank = i % t->ranks;
        t->rows[i] = tess_rays_shadow(s, tess_strips_row(slabs, rank), tess_strips_rows(slabs, rank),
                                      s->vectors + i / t->ranks * NUMBERS);
        widest = tess_max_i64(widest, t->rows[i].end - t->rows[i].first);
    }
    return widest;
}

static double bytes_of(const traffic *t, tess_shadow_rows rows)
{
    return (double)(rows.end - rows.first) * (double)t->settings->columns * sizeof(float);
}

/* Every rank to its node's agent, and the agent to the owner. */
static void add_view(traffic *t, int64_t view, int owner)
{
    for (int n = 0; n < t->nodes.count; n++) {
        const int agent = tess_ray_nodes_agent(&t->nodes, n, owner);
        tess_shadow_rows node = {0, 0};
        for (int m = 0; m < tess_ray_nodes_members(&t->nodes, n); m++) {
            const int rank = tess_ray_nodes_member(&t->nodes, n, m);
            const tess_shadow_rows rows = t->rows[view * t->ranks + rank];
            t->inside[rank * t->ranks + agent] += bytes_of(t, rows);
            node = tess_shadow_union((const tess_shadow_rows[2]){node, rows}, 2);
        }
        t->between[agent * t->ranks + owner] += bytes_of(t, node);
    }
}

static double round_seconds(traffic *t, const tess_links *links, int64_t first, int64_t most)
{
    const size_t bytes = (size_t)t->ranks * (size_t)t->ranks * sizeof *t->inside;
    memset(t->inside, 0, bytes);
    memset(t->between, 0, bytes);
    for (int owner = 0; owner < t->ranks; owner++) {
        const int64_t from = t->settings->views * owner / t->ranks + first,
                      end = t->settings->views * (owner + 1) / t->ranks;
        for (int64_t view = from; view < tess_min_i64(from + most, end); view++)
            add_view(t, view, owner);
    }
    return tess_links_all_to_all(links, t->ranks, t->inside) +
           tess_links_all_to_all(links, t->ranks, t->between);
}

static tess_status run(const tess_rays_settings *s, const tess_strips *slabs, const tess_links *links,
                       double *seconds, tess_error *error)
{
    traffic t = {.settings = s, .ranks = (int)slabs->count};
    const tess_status status = make_room(&t, links, error);
    if (status == TESS_OK) {
        const int64_t most = tess_bands_most(t.ranks, s->rows, s->columns, find_rows(&t, slabs)),
                      views = tess_ceil_div(s->views, t.ranks);
        for (int64_t first = 0; first < views; first += most)
            *seconds += round_seconds(&t, links, first, most);
    }
    clear(&t);
    return status;
}

tess_status tess_slabs_seconds(const tess_rays_settings *settings, const tess_strips *slabs,
                               const tess_links *links, double *seconds, tess_error *error)
{
    tess_rays_settings s = *settings;
    double *circle = NULL;
    *seconds = 0;
    if (slabs->count < 2)
        return TESS_OK;
    if (!s.vectors) {
        circle = tess_small_alloc((size_t)s.views, NUMBERS * sizeof *circle);
        if (!circle)
            return tess_fail(error, TESS_NO_MEMORY, "no memory for the views");
        tess_rays_circle(s.views, 2 * (double)s.width, (double)s.width, 1.5, circle);
        s.vectors = circle;
    }
    const tess_status status = run(&s, slabs, links, seconds, error);
    tess_small_free(circle);
    return status;
}
