/* test_data_dem.c: samples of elevation maps are what their draws say: the noise can be taken away again and leaves what the smooth
 * fill misses; pixels without a value never count; a sample depends on (seed, step, index) alone; those of one crop are in different
 * positions. */
#define _XOPEN_SOURCE 700
#include "counter.h"
#include "folder.h"
#include "model/diffusion.h"
#include "tensor/terrain/conditions.h"
#include "train/data_dem.h"

#include <unistd.h>

enum { CROP = 32, PIXELS = CROP * CROP, LEVELS = 8, SIDE = 90 };

typedef struct arrays {
    float input[PIXELS * (TESS_CONDITIONS + 1)], level[LEVELS], noise[PIXELS], weight[PIXELS];
} arrays;

/* An ENVI raster with a corner that is void (-9999) and a level sea. */
static void make_map(const char *name, double steep, bool corner)
{
    char header[64];
    static float z[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) {
        const double x = i % SIDE, y = i / SIDE;
        z[i] = (float)(100 + steep * (9 * sin(x / 7) * cos(y / 5) + 3 * sin(x * y / 60)));
        if (corner && x < 40 && y < 40)
            z[i] = -9999;
    }
    FILE *file = fopen(in_folder(name), "wb");
    CHECK(file && fwrite(z, sizeof *z, SIDE * SIDE, file) == SIDE * SIDE);
    fclose(file);
    snprintf(header, sizeof header, "%.*s.hdr", (int)strlen(name) - 4, name);
    file = fopen(in_folder(header), "w");
    fprintf(file,
            "ENVI\nsamples = %d\nlines = %d\nbands = 1\nheader offset = 0\nfile type = ENVI Standard\n"
            "data type = 4\ninterleave = bil\nbyte order = 0\ndata ignore value = -9999\n",
            SIDE, SIDE);
    fclose(file);
}

static int64_t repeats = 1; /* of all that are opened */

static tess_status open_source(size_t budget, int64_t crop, double scale, tess_source **out,
                               tess_error *error)
{
    const char *paths[] = {folder};
    const tess_dem_settings settings = {
        .images = {.paths = paths, .path_count = 1, .budget = budget, .memory = &test_counter},
        .crop = crop,
        .scales = 2,
        .scale = {1, scale},
        .share = {0.5, 0.5},
        .levels = LEVELS,
        .repeats = repeats};
    return tess_dem_open(&settings, out, error);
}

static void draw_one(tess_source *source, const tess_sample *sample, const tess_dem_fixed *fixed, arrays *to)
{
    tess_error error = {{0}};
    void *list[TESS_DATA_ARRAYS] = {to->input, to->level, to->noise, to->weight};
    CHECK_MSG(tess_dem_draw(source, sample, fixed, list, &error) == TESS_OK, "%s", error.text);
}

/* Of one sample: values and weights fit together. Returns the mean square of y. */
static double check_sample(const arrays *a, double gamma)
{
    float level[LEVELS];
    double square = 0, count = 0;
    tess_diffusion_level(gamma, LEVELS, level);
    CHECK(memcmp(level, a->level, sizeof level) == 0);
    float weight = 0;
    for (int i = 0; i < PIXELS; i++) {
        const float *c = a->input + i * (TESS_CONDITIONS + 1);
        CHECK(isfinite(c[0]) && isfinite(c[1]) && isfinite(c[3]) && isfinite(a->noise[i]));
        if (c[2] == -1) {
            CHECK(c[3] == 0 && a->weight[i] == 0);
            continue;
        }
        const double y = ((double)c[3] - sqrt(1 - gamma) * (double)a->noise[i]) / sqrt(gamma);
        CHECK_MSG(fabs(y) < 1.001, "y is %g", y);
        if (a->weight[i] > 0) {
            square += y * y, count++;
            CHECK(weight == 0 || a->weight[i] == weight);
            weight = a->weight[i];
        } else {
            CHECK(fabs(y) < 1e-3); /* nothing is known here */
        }
    }
    CHECK(count > 0 && fabs(weight - 1 / sqrt(count)) < 1e-6);
    return square / count;
}

static void test_samples(void)
{
    tess_source *source = NULL, *unkept = NULL;
    tess_error error = {{0}};
    arrays *a = calloc(2, sizeof *a), *b = a + 1;
    CHECK_MSG(open_source(1 << 20, CROP, 0.5, &source, &error) == TESS_OK, "%s", error.text);
    CHECK(open_source(0, CROP, 0.5, &unkept, &error) == TESS_OK);
    CHECK(source->items == 2 && tess_source_array(source, TESS_DATA_VECTOR) == TESS_DEM_LEVEL);
    CHECK(source->table->begin(source, 2, &error) == TESS_OK &&
          unkept->table->begin(unkept, 1, &error) == TESS_OK);
    double square = 0;
    int unlike = 0;
    for (int i = 0; i < 40; i++) {
        const tess_sample sample = {.seed = 3, .step = i / 4, .index = i % 4, .worker = i % 2},
                          other = {.seed = 3, .step = i / 4, .index = i % 4},
                          next = {.seed = 4, .step = i / 4, .index = i % 4};
        const double gamma = 0.5 + 0.01 * i;
        const tess_dem_fixed fixed = {i % 2, &gamma};
        draw_one(source, &sample, NULL, a);
        draw_one(unkept, &other, NULL, b);
        CHECK_MSG(memcmp(a, b, sizeof *a) == 0, "sample %d depends on worker or budget", i);
        draw_one(source, &next, NULL, b);
        unlike += memcmp(a, b, sizeof *a) != 0;
        draw_one(source, &sample, &fixed, a);
        square += check_sample(a, gamma) / 40;
    }
    CHECK(unlike == 40);
    CHECK_MSG(square > 1e-4 && square < 0.5, "the mean square of y is %g", square);
    source->table->close(source);
    unkept->table->close(unkept);
    free(a);
}

/* Whether channels 0 to 2 and the weights of b are those of a in another position: bits as of `turn`. */
static bool is_turned(const arrays *a, const arrays *b, int turn)
{
    for (int i = 0; i < PIXELS; i++) {
        const int y = turn & 4 ? i % CROP : i / CROP, x = turn & 4 ? i / CROP : i % CROP,
                  from = (turn & 1 ? CROP - 1 - y : y) * CROP + (turn & 2 ? CROP - 1 - x : x);
        const size_t size = TESS_CONDITIONS * sizeof(float), channels = TESS_CONDITIONS + 1;
        if (memcmp(a->input + (size_t)from * channels, b->input + (size_t)i * channels, size) != 0 ||
            a->weight[from] != b->weight[i])
            return false;
    }
    return true;
}

/* Samples of one crop: all in different positions, with noise and levels of their own, the same drawn together or alone. */
static void test_repeats(void)
{
    enum { MOST = TESS_DEM_POSITIONS, ITEM = TESS_CONDITIONS + 1 };
    tess_error error = {{0}};
    arrays *a = calloc(2 * MOST, sizeof *a);
    float *input = calloc(MOST * PIXELS * ITEM, 4), *level = calloc(MOST * LEVELS, 4),
          *noise = calloc(MOST * PIXELS, 4), *weight = calloc(MOST * PIXELS, 4);
    for (repeats = 2; repeats <= MOST; repeats *= 2) {
        tess_source *source = NULL;
        CHECK(open_source(1 << 20, CROP, 0.5, &source, &error) == TESS_OK && source->group == repeats &&
              source->table->begin(source, 1, &error) == TESS_OK);
        for (int64_t i = 0; i < 2 * repeats; i++)
            draw_one(source, &(tess_sample){.seed = 7, .step = 3, .index = i}, NULL, &a[i]);
        for (int64_t i = 0; i < repeats; i++) {
            int turns = 0;
            for (int turn = 0; turn < 8; turn++)
                turns += (i > 0 || turn > 0) && is_turned(&a[0], &a[i], turn);
            CHECK_MSG(turns == (i > 0), "%d of %d: %d positions", (int)i, (int)repeats, turns);
            for (int64_t k = 0; k < i; k++) {
                CHECK(!is_turned(&a[i], &a[k], 0));
                CHECK(memcmp(a[i].noise, a[k].noise, sizeof a->noise) != 0);
                CHECK(memcmp(a[i].level, a[k].level, sizeof a->level) != 0);
            }
            for (int turn = 0; turn < 8; turn++)
                CHECK(!is_turned(&a[i], &a[repeats], turn)); /* the next crop */
        }
        void *list[TESS_DATA_ARRAYS] = {input, level, noise, weight};
        const int64_t first = repeats / 2; /* a part of a group, as for small micro-batches */
        const tess_sample some = {.seed = 7, .step = 3, .index = first, .more = repeats - first - 1};
        CHECK(tess_dem_draw(source, &some, NULL, list, &error) == TESS_OK);
        for (int64_t i = 0; i <= some.more; i++) {
            const arrays *alone = &a[first + i];
            CHECK(memcmp(alone->input, input + i * PIXELS * ITEM, sizeof alone->input) == 0);
            CHECK(memcmp(alone->level, level + i * LEVELS, sizeof alone->level) == 0);
            CHECK(memcmp(alone->noise, noise + i * PIXELS, sizeof alone->noise) == 0);
            CHECK(memcmp(alone->weight, weight + i * PIXELS, sizeof alone->weight) == 0);
        }
        source->table->close(source);
    }
    repeats = 1;
    free(a), free(input), free(level), free(noise), free(weight);
}

/* The noise levels of a step cover the whole range. */
static void test_levels(void)
{
    tess_source *source = NULL;
    tess_error error = {{0}};
    arrays *a = calloc(1, sizeof *a);
    CHECK(open_source(1 << 20, CROP, 0.5, &source, &error) == TESS_OK &&
          source->table->begin(source, 1, &error) == TESS_OK);
    int tenths[10] = {0};
    for (int i = 0; i < 40; i++) {
        const tess_sample sample = {.seed = 9, .step = 5, .index = i};
        draw_one(source, &sample, NULL, a);
        const double gamma = atan2((double)a->level[LEVELS / 2], (double)a->level[0]);
        const double ratio = log(gamma / (1 - gamma)), place = (ratio + 10.03) / (9.21 + 10.03) * 10;
        CHECK_MSG(place > -0.1 && place < 10.2, "gamma %g", gamma);
        tenths[(int)fmin(fmax(place, 0), 9)]++;
    }
    for (int i = 0; i < 10; i++)
        CHECK_MSG(tenths[i] >= 2 && tenths[i] <= 6, "%d of 40 levels in tenth %d", tenths[i], i);
    source->table->close(source);
    free(a);
}

static void test_refusals(void)
{
    tess_source *source = NULL;
    tess_error error = {{0}};
    CHECK(open_source(0, CROP, 0.7, &source, &error) == TESS_BAD_OPTION && strstr(error.text, "0.7"));
    CHECK(open_source(0, 128, 0.5, &source, &error) == TESS_BAD_INPUT && strstr(error.text, "90 x 90"));
    make_map("sea.bil", 0, false);
    CHECK(open_source(0, CROP, 0.5, &source, &error) == TESS_OK &&
          source->table->begin(source, 1, &error) == TESS_OK);
    arrays *a = calloc(1, sizeof *a);
    void *list[TESS_DATA_ARRAYS] = {a->input, a->level, a->noise, a->weight};
    const tess_sample sample = {.seed = 1};
    const double gamma = 0.5;
    const tess_dem_fixed fixed = {2, &gamma};
    CHECK(tess_dem_draw(source, &sample, &fixed, list, &error) == TESS_BAD_INPUT &&
          strstr(error.text, "sea.bil"));
    source->table->close(source);
    free(a);
}

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    make_map("corner.bil", 1, true);
    make_map("hills.bil", 4, false);
    tess_source *source = NULL;
    tess_error error = {{0}};
    const tess_status status = open_source(0, CROP, 0.5, &source, &error);
    tess_source_close(source);
    if (status == TESS_OK) {
        test_samples();
        test_repeats();
        test_levels();
        test_refusals();
    }
    sweep_folder(true);
    rmdir(folder);
    if (status == TESS_UNSUPPORTED)
        return 77; /* no GDAL */
    CHECK_MSG(status == TESS_OK, "%s", error.text);
    return check_end();
}
