#include "job/common/blur_exchange.h"

#include <stdio.h>

double tess_blur_exchange_seconds(const tess_blur_exchange *e, tess_blurs_way way)
{
    return e->costs[way].computing + e->costs[way].communication;
}

void tess_blur_exchange_say(const tess_blur_exchange *e, char *text, size_t bytes)
{
    char halo[48], why[96];
    const bool by_halo = e->way == TESS_BLURS_HALO;
    snprintf(halo, sizeof halo, "halos of %lld rows", (long long)e->reach);
    switch (e->because) {
    case TESS_BLURS_BY_COST:
        snprintf(why, sizeof why, ": %.3g ms a step; %s would take %.3g",
                 1e3 * tess_blur_exchange_seconds(e, e->way), by_halo ? "the spectrum" : halo,
                 1e3 * tess_blur_exchange_seconds(e, by_halo ? TESS_BLURS_SPECTRUM : TESS_BLURS_HALO));
        break;
    case TESS_BLURS_BY_MEMORY:
        snprintf(why, sizeof why, ", because %s do not fit the memory", halo);
        break;
    case TESS_BLURS_BY_ENVIRONMENT:
        snprintf(why, sizeof why, ", as TESSERA_BLURS says");
        break;
    }
    snprintf(text, bytes, "the blurs by %s%s", by_halo ? halo : "columns of their spectrum", why);
}

tess_json *tess_blur_exchange_record(const tess_blur_exchange *e)
{
    static const char *const reasons[] = {"cost", "memory", "TESSERA_BLURS"};
    tess_json *record = tess_json_object();
    tess_json_set_string(&record, "way", e->way == TESS_BLURS_HALO ? "halo" : "spectrum");
    tess_json_set_string(&record, "because", reasons[e->because]);
    tess_json_set_int(&record, "rows", e->reach);
    tess_json_set_double(&record, "halo_seconds", tess_blur_exchange_seconds(e, TESS_BLURS_HALO));
    tess_json_set_double(&record, "spectrum_seconds", tess_blur_exchange_seconds(e, TESS_BLURS_SPECTRUM));
    tess_json_set_int(&record, "halo_bytes", (int64_t)e->costs[TESS_BLURS_HALO].sent);
    tess_json_set_int(&record, "spectrum_bytes", (int64_t)e->costs[TESS_BLURS_SPECTRUM].sent);
    return record;
}
