#include "plan/ranks/blurs.h"

#include <math.h>

#include "base/checked.h"
#include "physics/convolve.h"

int64_t tess_blurs_rows(const tess_blurs *b)
{
    return tess_convolve_side(b->rows + 2 * b->reach, 0);
}

/* Seconds of so many transforms of one channel, as operators count them. */
static double seconds_of(const tess_rates *rates, double transforms, double pixels, double share)
{
    bool known = true; /* not reported: no rate of an operator is exact */
    const tess_device_facts *facts = tess_rates_facts(rates);
    const double flops = transforms * 2.5 * pixels * log2(pixels + 1) * share,
                 bytes = transforms * 8 * sizeof(float) * pixels * share;
    return (flops / facts->flops + bytes / facts->bytes) * tess_rates_operator(rates, "blur", &known);
}

/* Rows for both neighbours, or for as many ranks as have them: the slowest pair counts. */
static double exchange(const tess_blurs *b, const tess_links *links, int ranks, double bytes)
{
    double most = 0;
    if (b->reach == 0)
        return 0;
    for (int r = 0; r + 1 < ranks; r++)
        most = fmax(most, tess_links_exchange(links, ranks, r, bytes));
    const double far = (double)tess_ceil_div(b->reach, b->rows),
                 latency = ranks > links->per_node ? links->outside.latency : links->inside.latency;
    return most + (far - 1) * latency;
}

tess_blurs_way tess_blurs_choose(const tess_blurs *b, const tess_links *links, const tess_rates *rates,
                                 int ranks, tess_blurs_cost costs[TESS_BLURS_WAYS])
{
    const double channels = (double)b->channels, pixels = (double)b->height * (double)b->width,
                 image = pixels * channels * sizeof(float), share = 1 / (double)ranks,
                 row = (double)b->width * channels * sizeof(float), count = (double)b->count,
                 blurring = count * (2 * channels + 1) + 2 * channels, dividing = 2 * channels;
    const double transpose = tess_links_transpose(links, ranks, image), sent = image * share * (1 - share);
    costs[TESS_BLURS_SPECTRUM] =
        (tess_blurs_cost){.computing = seconds_of(rates, blurring + dividing, pixels, share),
                          .communication = (blurring + dividing) / channels * transpose,
                          .sent = (blurring + dividing) / channels * sent};
    const double rows = (double)b->reach * row, sides = ranks > 2 ? 2 : ranks - 1;
    costs[TESS_BLURS_HALO] = (tess_blurs_cost){
        .computing = seconds_of(rates, blurring, (double)(tess_blurs_rows(b) * b->width), 1) +
                     seconds_of(rates, dividing, pixels, share),
        .communication = dividing / channels * transpose + (count + 1) * exchange(b, links, ranks, rows),
        .sent = dividing / channels * sent + (count + 1) * sides * rows};
    const tess_blurs_cost *spectrum = &costs[TESS_BLURS_SPECTRUM], *halo = &costs[TESS_BLURS_HALO];
    return ranks > 1 && 2 * b->reach + 1 <= b->height &&
                   halo->computing + halo->communication < spectrum->computing + spectrum->communication
               ? TESS_BLURS_HALO
               : TESS_BLURS_SPECTRUM;
}

tess_links tess_blurs_links(int per_node)
{
    return (tess_links){.per_node = per_node,
                        .inside = {.latency = 5e-6, .rate = 1.5e9, .rank_rate = 1.5e9},
                        .outside = {.latency = 15e-6, .rate = 3e9, .adapters = 1, .shared = 1.3}};
}
