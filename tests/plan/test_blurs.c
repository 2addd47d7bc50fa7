/* test_blurs.c: how ranks share blurs with an unknown boundary, by what both ways cost: figures that can be told by hand, and the
 * choice for slow and fast links, wide and narrow kernels. */
#define _POSIX_C_SOURCE 200809L
#include "plan/ranks/blurs.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "physics/convolve.h"
#include "plan/machine.h"
#include "support.h"

static tess_rates *rates;

/* Four ranks of a node. */
static const tess_blurs blurs = {
    .height = 540, .width = 540, .channels = 3, .count = 4, .reach = 12, .rows = 135};

static tess_links links_of(double latency, double rate)
{
    return (tess_links){.per_node = 4, .inside = {latency, rate, rate}, .outside = {4 * latency, rate, 1, 1}};
}

static tess_blurs_way choose(tess_blurs b, tess_links links, int ranks)
{
    tess_blurs_cost costs[TESS_BLURS_WAYS];
    return tess_blurs_choose(&b, &links, rates, ranks, costs);
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* Of 4 blurs, images are transposed 2 (4 + 2) times, and kernels, which have a third of the channels, 4 times. */
static void check_costs(void)
{
    const tess_links links = links_of(1e-5, 1e9);
    const double image = 540.0 * 540 * 3 * sizeof(float), rows = 12.0 * 540 * 3 * sizeof(float),
                 transposes = 2 * (4 + 2) + 4.0 / 3, transpose = tess_links_transpose(&links, 4, image);
    tess_blurs_cost costs[TESS_BLURS_WAYS], alone[TESS_BLURS_WAYS];
    CHECK(tess_blurs_rows(&blurs) == tess_convolve_side(135 + 24, 0));
    (void)tess_blurs_choose(&blurs, &links, rates, 4, costs);
    const tess_blurs_cost *spectrum = &costs[TESS_BLURS_SPECTRUM], *halo = &costs[TESS_BLURS_HALO];
    CHECK(near(spectrum->communication, transposes * transpose));
    CHECK(near(spectrum->sent, transposes * image / 4 * 3 / 4));
    CHECK(near(halo->communication, 2 * transpose + 5 * tess_links_exchange(&links, 4, 0, rows)));
    CHECK(near(halo->sent, 2 * image / 4 * 3 / 4 + 5 * 2 * rows));
    CHECK(halo->computing > spectrum->computing && halo->computing < 1.5 * spectrum->computing);
    CHECK(tess_blurs_choose(&blurs, &links, rates, 1, alone) == TESS_BLURS_SPECTRUM);
    CHECK(near(alone[TESS_BLURS_SPECTRUM].communication + 1, 1) &&
          near(alone[TESS_BLURS_SPECTRUM].computing, 4 * spectrum->computing));
}

static void check_choices(void)
{
    const tess_links slow = links_of(1e-4, 1e8), fast = links_of(0, 1e15);
    tess_blurs wide = blurs, flat = blurs, folded = blurs;
    wide.reach = 200;
    wide.rows = 34;
    flat.reach = 0;
    folded.reach = 270;
    CHECK(choose(blurs, slow, 4) == TESS_BLURS_HALO && choose(blurs, fast, 4) == TESS_BLURS_SPECTRUM);
    CHECK(choose(wide, fast, 16) == TESS_BLURS_SPECTRUM && choose(folded, slow, 4) == TESS_BLURS_SPECTRUM);
    CHECK(choose(flat, slow, 4) == TESS_BLURS_HALO); /* rows of the neighbours are not needed */
    const tess_links usual = tess_blurs_links(2);
    CHECK(usual.per_node == 2 && usual.inside.rate > 0 && usual.outside.rate > 0 &&
          usual.outside.adapters > 0);
}

int main(void)
{
    char path[] = "/tmp/tessera-blurs-XXXXXX";
    tess_error error = {""};
    const int file = mkstemp(path);
    static const char text[] =
        "{\"kind\": \"cpu\", \"device\": \"d\", \"flops\": 1e11, \"bytes_per_second\": 1e10}";
    CHECK(file >= 0 && write(file, text, sizeof text - 1) == (ssize_t)sizeof text - 1 && close(file) == 0);
    const bool read = tess_machine_read(path, &rates, &error) == TESS_OK;
    CHECK_MSG(read, "%s", error.text);
    if (read) {
        check_costs();
        check_choices();
    }
    tess_rates_destroy(rates);
    remove(path);
    return check_end();
}
