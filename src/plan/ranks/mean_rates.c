#include "plan/ranks/mean_rates.h"

#include <string.h>

#include "base/mem.h"
#include "plan/rates_impl.h"

/* The rates of this rank; per_pixel 0: it has none. */
static void find_mine(const tess_rates *rates, const tess_rate *list, int64_t count, tess_run_cost *mine)
{
    for (int64_t i = 0; i < count; i++)
        mine[i] = tess_rates_cost(rates, list[i].op_class);
}

static void take_mean(tess_rates *rates, const tess_rate *list, int64_t count, const tess_run_cost *all,
                      int size)
{
    for (int64_t i = 0; i < count; i++) {
        tess_run_cost sum = {0};
        int known = 0;
        for (int r = 0; r < size; r++) {
            const tess_run_cost *one = &all[r * count + i];
            sum.overhead += one->overhead;
            sum.per_pixel += one->per_pixel;
            known += one->per_pixel > 0;
        }
        tess_rates_replace(rates, list[i].op_class, sum.overhead / known, sum.per_pixel / known,
                           list[i].date);
    }
}

static tess_status share(tess_rates *rates, tess_dist *dist, tess_rate *list, int64_t count,
                         tess_run_cost *mine, tess_run_cost *all, tess_error *error)
{
    if (dist->rank == 0)
        memcpy(list, rates->rates, (size_t)count * sizeof *list);
    TESS_TRY(tess_dist_broadcast(dist, 0, list, (size_t)count * sizeof *list, error));
    find_mine(rates, list, count, mine);
    TESS_TRY(tess_dist_gather(dist, mine, (size_t)count * sizeof *mine, all, error));
    take_mean(rates, list, count, all, dist->size);
    if (dist->rank == 0)
        (void)tess_rates_save(rates, NULL);
    return TESS_OK;
}

tess_status tess_mean_rates(tess_rates *rates, tess_dist *dist, tess_error *error)
{
    int64_t count = rates->count;
    TESS_TRY(tess_dist_broadcast(dist, 0, &count, sizeof count, error));
    if (count == 0 || dist->size == 1)
        return TESS_OK;
    tess_rate *list = tess_small_alloc((size_t)count, sizeof *list);
    tess_run_cost *mine = tess_small_alloc((size_t)count, sizeof *mine),
                  *all = tess_small_alloc((size_t)count * (size_t)dist->size, sizeof *all);
    tess_status status =
        list && mine && all ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the rates");
    status = tess_dist_agree(dist, status, error);
    if (status == TESS_OK)
        status = share(rates, dist, list, count, mine, all, error);
    tess_small_free(list);
    tess_small_free(mine);
    tess_small_free(all);
    return status;
}
