#include "job/reconstruct/plan/rates.h"

#include <math.h>

#include "solve/data_term.h"

/* Seconds of one run of the operator, from its operations and the device's built-in rates. */
static double built_in(const tess_rates *rates, const tess_operator *op)
{
    const tess_device_facts *facts = tess_rates_facts(rates);
    return op->forward_flops / facts->flops + op->forward_bytes / facts->bytes;
}

double tess_physics_runs(const tess_operator *op, const tess_recipe *recipe)
{
    double gradients =
        (double)recipe->iterations * (double)(tess_data_term_exact(op) ? 1 : recipe->inner + 1) + 2;
    if (recipe->step == 0 && op->norm_squared == 0 && (recipe->inner == 0 || recipe->relax > 0))
        gradients += recipe->absolute_power ? TESS_START_POWER : 20;
    if (recipe->init == TESS_INIT_CG)
        gradients += TESS_START_CG;
    return gradients * (tess_data_term_exact(op) ? 1 : 2);
}

double tess_physics_seconds(const tess_rates *rates, const tess_operator *op, const tess_recipe *recipe,
                            bool *calibrated)
{
    return tess_physics_runs(op, recipe) * built_in(rates, op) *
           tess_rates_operator(rates, op->name, calibrated);
}

void tess_physics_keep_rate(tess_engine *engine, const tess_operator *op, const tess_recipe *recipe,
                            double seconds)
{
    const double runs = tess_data_term_exact(op) ? 1 : 2 * (double)(recipe->inner + 1);
    if (!isfinite(seconds) || !(seconds > 0))
        return;
    tess_rates_set_operator(engine->rates, op->name, seconds / (runs * built_in(engine->rates, op)));
    (void)tess_rates_save(engine->rates, NULL);
}
