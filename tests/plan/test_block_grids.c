/* test_block_grids.c: into which grid of blocks an image is divided: strips where they fit, blocks where strips would be too thin or
 * leave ranks without work, and the grid that is asked for. The parts cover the image once. */
#define _POSIX_C_SOURCE 200809L
#include "plan/ranks/blocks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/model.h"
#include "plan/machine.h"
#include "plan/ranks/scaling.h"
#include "plan/ranks/sketch.h"
#include "support.h"

static tess_error error;
static tess_rates *rates;
static tess_blocks_image image;

/* Each pixel belongs to one part; parts begin at multiples of the alignment, and have neighbours where they should. */
static void check_parts(const tess_blocks *b)
{
    const int64_t across = b->columns.count;
    int64_t pixels = 0;
    for (int64_t r = 0; r < tess_blocks_count(b); r++) {
        const tess_blocks_part p = tess_blocks_part_of(b, r);
        const tess_blocks_part right = p.right ? tess_blocks_part_of(b, r + 1) : p,
                               below = p.below ? tess_blocks_part_of(b, r + across) : p;
        CHECK(p.row % tess_bound_alignment(image.bound) == 0 &&
              p.column % tess_bound_alignment(image.bound) == 0);
        CHECK(p.rows <= tess_blocks_most_rows(b) && p.columns <= tess_blocks_most_columns(b));
        CHECK(!p.right || (right.column == p.column + p.columns && right.row == p.row && right.left));
        CHECK(!p.below || (below.row == p.row + p.rows && below.column == p.column && below.above));
        CHECK((p.column + p.columns == image.width) == !p.right &&
              (p.row + p.rows == image.height) == !p.below);
        pixels += p.rows * p.columns;
    }
    CHECK(pixels == image.height * image.width);
}

static tess_blocks choose(int64_t height, int64_t width, int64_t ranks, const tess_links *links)
{
    tess_blocks b = {{0}, {0}};
    image.height = height;
    image.width = width;
    image.ranks = ranks;
    CHECK_MSG(tess_blocks_choose(&image, rates, links, &b, &error) == TESS_OK, "%s", error.text);
    check_parts(&b);
    return b;
}

/* DRUNet's parts have 8 rows and columns or more, on a device without blocks. */
static void check_choices(void)
{
    const tess_links links = tess_blurs_links(64),
                     quick = {.per_node = 64, .inside = {0, 1e15, 1e15}, .outside = {0, 1e15, 1, 1}};
    static const struct {
        int64_t height, width, ranks, down, across; /* across 0: any number, but with work for all ranks */
        bool quick;
    } rows[] = {
        {512, 512, 1, 1, 1},     {512, 512, 4, 4, 1},      {512, 512, 7, 7, 1},
        {4096, 64, 16, 16, 1},   {8, 640, 5, 1, 5}, /* one strip */
        {16, 4096, 6, 0, 0},     {64, 4096, 16, 0, 0},     {64, 64, 64, 8, 8, true},
        {24, 24, 9, 3, 3, true}, {24, 24, 20, 3, 3, true}, /* some ranks have nothing to do */
        {24, 24, 9, 3, 1}, /* eight messages of 5 us take longer than the pixels */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tess_blocks b =
            choose(rows[i].height, rows[i].width, rows[i].ranks, rows[i].quick ? &quick : &links);
        const bool good = rows[i].across ? b.rows.count == rows[i].down && b.columns.count == rows[i].across
                                         : tess_blocks_count(&b) == rows[i].ranks && b.columns.count > 1;
        CHECK_MSG(good, "%lld x %lld on %lld: %lld x %lld", (long long)rows[i].height,
                  (long long)rows[i].width, (long long)rows[i].ranks, (long long)b.rows.count,
                  (long long)b.columns.count);
    }
    /* Links that are so slow that bytes decide: four strips of a square exchange twice as many as four blocks. */
    tess_links slow = links;
    slow.inside.rate = 1e3;
    slow.inside.latency = 0;
    const tess_blocks b = choose(512, 512, 16, &slow);
    CHECK_MSG(b.rows.count == 4 && b.columns.count == 4, "%lld x %lld", (long long)b.rows.count,
              (long long)b.columns.count);
    /* Or in which messages do. */
    slow.inside.rate = 1e15;
    slow.inside.latency = 10;
    CHECK(choose(64, 4096, 8, &slow).rows.count == 8);
}

static void check_asked(void)
{
    static const struct {
        const char *text, *says; /* NULL: it is good */
    } rows[] = {
        {"2x3", NULL},
        {"1x1", NULL},
        {"1x6", NULL},
        {"6x1", NULL},
        {"", "as 2x3"},
        {"2", "as 2x3"},
        {"2x", "as 2x3"},
        {"x3", "as 2x3"},
        {"2x3 ", "as 2x3"},
        {"-2x3", "as 2x3"},
        {"0x3", "as 2x3"},
        {"2x3x1", "as 2x3"},
        {"3x3", "needs 9 ranks, and 6 were started"},
        {"999999999x999999999", "were started"},
        {"5x1", "at most 4 x 12 blocks"},
    };
    tess_blocks b;
    image.ranks = 6;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bool low = rows[i].says && strstr(rows[i].says, "at most");
        image.height = low ? 32 : 64;
        image.width = 96;
        const tess_status status = tess_blocks_parse(&image, rows[i].text, &b, &error);
        CHECK_MSG((status == TESS_OK) == !rows[i].says, "%s: %s", rows[i].text, error.text);
        CHECK_MSG(!rows[i].says || strstr(error.text, rows[i].says), "%s: %s", rows[i].text, error.text);
        if (!rows[i].says)
            check_parts(&b);
    }
}

/* What is simulated for other machines takes the same grids: where strips would leave ranks without work, these share the bytes. */
static void check_simulated(void)
{
    const tess_scale_setup setup = {
        .bound = image.bound, .grid = {1, 8, 8}, .rates = rates, .links = tess_blurs_links(64), .avoid = 1};
    tess_scale_problem p = {
        .kind = TESS_SCALE_DENOISE, .depth = 1, .height = 512, .width = 512, .channels = 1};
    tess_scale_point one, many;
    CHECK_MSG(tess_scale_ours(&setup, &p, 4, &many, &error) == TESS_OK, "%s", error.text);
    CHECK(many.used == 4 && many.across == 0 && many.rows == 128);
    p.height = 16;
    p.width = 4096;
    CHECK(tess_scale_ours(&setup, &p, 1, &one, &error) == TESS_OK && one.across == 0);
    CHECK(tess_scale_ours(&setup, &p, 8, &many, &error) == TESS_OK);
    CHECK_MSG(many.used == 8 && many.across > 1 && many.columns < 4096 && many.seconds < 0.2 * one.seconds &&
                  many.bytes < 0.25 * one.bytes && many.sent > 0,
              "%d ranks, %lld across, %g of %g s, %g of %g bytes", many.used, (long long)many.across,
              many.seconds, one.seconds, many.bytes, one.bytes);
    p.kind = TESS_SCALE_DEBLUR; /* which ranks share by rows */
    p.channels = 3;
    CHECK(tess_scale_ours(&setup, &p, 8, &many, &error) == TESS_OK && many.used == 2 && many.across == 0);
}

int main(void)
{
    static const char text[] =
        "{\"kind\": \"cpu\", \"device\": \"d\", \"flops\": 1e11, \"bytes_per_second\": 1e10}";
    static const tess_model_shape shape = {
        .architecture = "drunet", .channels = 3, .width_count = 4, .widths = {16, 16, 32, 32}, .blocks = 1};
    char path[] = "/tmp/tessera-blocks-XXXXXX";
    const int file = mkstemp(path);
    CHECK(file >= 0 && write(file, text, sizeof text - 1) == (ssize_t)sizeof text - 1 && close(file) == 0);
    CHECK_MSG(tess_machine_read(path, &rates, &error) == TESS_OK, "%s", error.text);
    remove(path);
    tess_weights *weights = NULL;
    tess_model_net model;
    tess_bound *bound = NULL;
    tess_device device;
    tess_sketch_open(&device);
    CHECK(tess_model_new(&shape, &weights, &error) == TESS_OK);
    CHECK(tess_model_recognise(weights, &model, &error) == TESS_OK);
    CHECK_MSG(tess_bound_create(model.net, &device, TESS_F32, &bound, &error) == TESS_OK, "%s", error.text);
    image = (tess_blocks_image){.bound = bound, .grid = {1, 8, 8}};
    check_choices();
    check_asked();
    check_simulated();
    tess_bound_destroy(bound);
    tess_model_clear(&model);
    tess_weights_close(weights);
    tess_rates_destroy(rates);
    return check_end();
}
