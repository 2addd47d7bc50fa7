/* Draws a crop of an elevation map and cuts a void into it. Words by counter from (seed, step, index, attempt) choose map, scale,
 * place, position and kind; a crop that is of no use is drawn again with the next attempt. */
#include <math.h>

#include "base/checked.h"
#include "base/stop.h"
#include "tensor/terrain/conditions.h"
#include "tensor/terrain/void_maker.h"
#include "train/data_dem_impl.h"

enum { ATTEMPTS = 256 };
static const double MOST_OWN = 0.1, MOST_LEVEL = 0.5; /* of a crop: without a value; at its least height */
static const double UPSIDE_DOWN = 0.1, GUIDED = 0.1;

typedef struct choice {
    int64_t map, factor, y, x;
    int turn;
    bool upside_down, guided;
} choice;

static int64_t below(uint32_t word, int64_t count)
{
    return (int64_t)((uint64_t)word * (uint64_t)count >> 32);
}

static double share(uint32_t word)
{
    return (double)word * 0x1p-32;
}

static int64_t choose_factor(const tess_dem *dem, const tess_images_file *map, double part)
{
    double sum = 0;
    int64_t last = 1;
    for (int i = 0; i < dem->settings.scales; i++)
        sum += tess_dem_usable(dem, map, i) ? dem->settings.share[i] : 0;
    for (int i = 0; i < dem->settings.scales; i++) {
        if (!tess_dem_usable(dem, map, i))
            continue;
        last = dem->factor[i];
        if ((part -= dem->settings.share[i] / sum) < 0)
            break;
    }
    return last;
}

static void choose(const tess_dem *dem, const tess_sample *sample, uint32_t attempt,
                   const tess_dem_fixed *fixed, choice *c)
{
    const uint64_t seed = tess_data_seed(sample->seed, TESS_DATA_CHOICE);
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t words[8];
    for (uint32_t block = 0; block < 2; block++) {
        const uint32_t counter[4] = {block, attempt, (uint32_t)sample->index, (uint32_t)sample->step};
        tess_philox(counter, key, words + 4 * block);
    }
    *c = (choice){.map = fixed ? fixed->map : below(words[0], tess_images_count(dem->maps)), .factor = 1};
    const tess_images_file *map = tess_images_at(dem->maps, c->map);
    if (!fixed) {
        c->factor = choose_factor(dem, map, share(words[1]));
        c->turn = (int)below(words[4], 8);
        c->upside_down = share(words[5]) < UPSIDE_DOWN;
        c->guided = share(words[6]) < GUIDED && dem->settings.crop % TESS_CONDITIONS_COARSE == 0;
    }
    c->y = below(words[2], map->height - dem->settings.crop * c->factor + 1);
    c->x = below(words[3], map->width - dem->settings.crop * c->factor + 1);
}

/* Means of factor x factor pixels, relative to the first valid one, so that floats hold them well; NaN if one of them is. */
static void reduce(const float *square, int64_t stride, int64_t crop, const choice *c, float *to)
{
    const int64_t k = c->factor, side = crop * k;
    const double sign = c->upside_down ? -1 : 1, part = 1 / (double)(k * k);
    double base = 0;
    for (int64_t i = 0; i < side * side; i++) {
        const float value = square[i / side * stride + i % side];
        if (isfinite(value)) {
            base = (double)value;
            break;
        }
    }
    for (int64_t y = 0; y < crop; y++)
        for (int64_t x = 0; x < crop; x++) {
            double sum = 0;
            for (int64_t j = 0; j < k; j++)
                for (int64_t i = 0; i < k; i++)
                    sum += (double)square[(y * k + j) * stride + x * k + i];
            *to++ = (float)(sign * (sum * part - base));
        }
}

/* Finds the pixels without a value, and says whether the crop is of use. */
static bool look(const float *crop, int64_t pixels, uint8_t *own)
{
    int64_t voids = 0, level = 0;
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < pixels; i++) {
        own[i] = !isfinite(crop[i]);
        voids += own[i];
        if (!own[i])
            least = fminf(least, crop[i]), most = fmaxf(most, crop[i]);
    }
    int64_t highest = 0; /* the sea of a map that is upside down */
    for (int64_t i = 0; i < pixels; i++) {
        level += !own[i] && crop[i] <= least;
        highest += !own[i] && crop[i] >= most;
    }
    level = tess_max_i64(level, highest);
    return (double)voids <= MOST_OWN * (double)pixels && (double)level <= MOST_LEVEL * (double)pixels;
}

/* Flags the void and the crop's own; returns how many pixels of the void have a value. */
static int64_t make_void(const tess_sample *sample, uint32_t attempt, const choice *c, int64_t crop,
                         tess_dem_room *room)
{
    tess_void_request request;
    tess_void_request_init(&request, crop, crop);
    request.seed = tess_data_seed(sample->seed, TESS_DATA_VOID) + (uint64_t)attempt * 0x9e3779b97f4a7c15u;
    request.step = (uint32_t)sample->step;
    request.index = (uint32_t)sample->index;
    if (c->guided) { /* wider than anything that the smooth fill can bridge */
        const float side = (float)crop;
        request.smallest = 0.6f * side;
        request.median = side;
        request.largest = 2 * side;
        request.at_edge = request.most = 1;
    }
    tess_void_make(&request, room->flags, room->scratch);
    int64_t count = 0;
    for (int64_t i = 0; i < crop * crop; i++) {
        count += room->flags[i] && !room->own[i];
        room->flags[i] |= room->own[i];
    }
    return count;
}

/* Where pixel `at` lies between pixels of the crop reduced by COARSE. */
static int64_t coarse_place(int64_t at, int64_t size, float *part)
{
    const double to = ((double)at + 0.5) / TESS_CONDITIONS_COARSE - 0.5,
                 inside = fmin(fmax(to, 0), (double)(size - 1));
    const int64_t first = tess_min_i64((int64_t)inside, tess_max_i64(0, size - 2));
    *part = size > 1 ? (float)(inside - (double)first) : 0;
    return first;
}

/* The crop reduced and enlarged, as the result of a coarser level of `fill`. `small` has room for the reduced one. */
static void make_guess(const float *crop, int64_t side, float *small, float *guess)
{
    const int64_t size = side / TESS_CONDITIONS_COARSE, next = size > 1 ? 1 : 0;
    const float first = crop[0]; /* which reduce subtracts */
    const choice whole = {.factor = TESS_CONDITIONS_COARSE};
    reduce(crop, side, size, &whole, small);
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++) {
            float down, right;
            const float *above = small + coarse_place(y, size, &down) * size, *below = above + next * size;
            const int64_t at = coarse_place(x, size, &right);
            const float upper = above[at] + right * (above[at + next] - above[at]),
                        lower = below[at] + right * (below[at + next] - below[at]);
            guess[y * side + x] = first + upper + down * (lower - upper);
        }
}

tess_status tess_dem_draw_crop(tess_dem *dem, const tess_sample *sample, const tess_dem_fixed *fixed,
                               tess_dem_room *room, tess_dem_crop *out, tess_error *error)
{
    const int64_t crop = dem->settings.crop;
    choice c = {.map = 0};
    *out = (tess_dem_crop){0};
    for (uint32_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (tess_stop_wanted(sample->stop))
            return tess_fail(error, TESS_INTERRUPTED, "interrupted");
        choose(dem, sample, attempt, fixed, &c);
        const tess_rect rect = {c.y, c.x, crop * c.factor, crop * c.factor};
        tess_view view;
        TESS_TRY(tess_images_view(dem->maps, c.map, rect, room->images, sample->stop, &view, error));
        reduce(view.data, view.stride, crop, &c, room->crop);
        if (!look(room->crop, crop * crop, room->own))
            continue;
        *out = (tess_dem_crop){c.turn, c.guided, make_void(sample, attempt, &c, crop, room)};
        for (int64_t i = 0; i < crop * crop && out->guided; i++)
            out->guided = !room->own[i];
        if (out->guided)
            make_guess(room->crop, crop, room->square, room->guess);
        if (out->pixels > 0 && (out->guided || !c.guided))
            return TESS_OK;
    }
    return tess_fail(error, TESS_BAD_INPUT,
                     "%s%s: %d crops in a row are void or level; exclude such maps or use smaller crops",
                     fixed ? "" : "after others, ", tess_images_at(dem->maps, c.map)->path, ATTEMPTS);
}
