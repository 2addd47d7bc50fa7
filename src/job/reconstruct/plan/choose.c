/* The work of a reconstruction: in each iteration the operator and its adjoint, and the network on the image. The measurements
 * go to the device once and the result comes back once. */
#include "job/reconstruct/plan/choose.h"

#include <stdio.h>

#include "job/common/choice.h"
#include "job/reconstruct/plan/rates.h"

typedef struct choosing {
    tess_engine *engine;
    const tess_reconstruct_settings *settings;
    const tess_recipe *recipe;
    tess_prior prior; /* a copy: the cut of the plan is chosen later */
    tess_work work;
} choosing;

static double bytes_of(const tess_tensor *t)
{
    return (double)t->n * (double)t->d * (double)t->h * (double)t->w * (double)t->c * (double)sizeof(float);
}

static tess_status list(choosing *c, const tess_operator *op, tess_error *error)
{
    const tess_reconstruct_settings *s = c->settings;
    const double runs = tess_physics_runs(op, c->recipe);
    tess_work_phase *phase = tess_work_begin(&c->work, "reconstruct", "iterations");
    tess_work_item physics = {.kind = TESS_WORK_OPERATOR,
                              .amount = {runs, runs, runs * op->forward_flops, runs * op->forward_bytes}};
    snprintf(physics.op_class, sizeof physics.op_class, "%s", op->name);
    tess_work_add(&c->work, phase, &physics);
    const tess_prior_request request = {.tile_depth = s->tile_depth,
                                        .tile_height = s->tile_height,
                                        .tile_width = s->tile_width,
                                        .halo = s->halo,
                                        .batch = s->batch,
                                        .limit = s->common.memory_limit ? s->common.memory_limit
                                                                        : tess_engine_free_limit(c->engine),
                                        .asked_limit = s->common.memory_limit};
    c->prior.image = op->image;
    const tess_status status = tess_prior_choose(&c->prior, &request, error);
    if (status != TESS_OK && status != TESS_OVER_LIMIT) /* then the least cut is what is predicted */
        return status;
    const tess_cut_request cut = {.planes = tess_prior_planes(&c->prior)};
    TESS_TRY(tess_work_add_cut(&c->work, phase, c->engine->rates, c->prior.model->bound, &cut,
                               &c->prior.choice, (double)c->recipe->iterations, error));
    const tess_cut windows = tess_cut_of(&c->prior.choice);
    phase->up = bytes_of(&op->measurement);
    phase->down = bytes_of(&op->image);
    phase->copies = 2;
    c->work.shapes = (double)tess_cut_shapes(&windows);
    c->work.weight_bytes = 4 * (double)c->prior.model->model.parameters;
    c->work.card_precision = tess_choice_card_precision(s->common.precision, "F16");
    return TESS_OK;
}

tess_status tess_reconstruct_choose(tess_engine *engine, const tess_reconstruct_settings *settings,
                                    const tess_problem *problem, const tess_recipe *recipe,
                                    const tess_prior *prior, tess_error *error)
{
    choosing c = {.engine = engine, .settings = settings, .recipe = recipe, .prior = *prior};
    tess_operator sketch, *op = NULL;
    bool known;
    if (!tess_choice_wants_work(engine))
        return TESS_OK;
    TESS_TRY(tess_problem_sketch(problem, engine->device, &sketch, &known, error));
    if (!known)
        TESS_TRY(tess_problem_operator(problem, engine->device, 0, &op, error));
    tess_status status = list(&c, known ? &sketch : op, error);
    tess_operator_destroy(op);
    if (status == TESS_OK)
        status = tess_choice_settle(engine, &settings->common, &c.work, error);
    tess_work_clear(&c.work);
    return status;
}

void tess_reconstruct_learn(const tess_prior *prior, const tess_budget *budget, double wall, double seconds)
{
    const tess_net *net = prior->model->model.net;
    const tess_choice_run run = {"reconstruct", wall, seconds, budget->seconds, prior->choice.calibrated};
    const tess_plan_shape shape = {.n = 1,
                                   .d = tess_net_grid(net, TESS_DEPTH),
                                   .h = tess_net_grid(net, TESS_HEIGHT),
                                   .w = tess_net_grid(net, TESS_WIDTH)};
    tess_choice_learn(prior->engine, &run);
    if (!prior->choice.calibrated)
        tess_choice_measure_net(prior->engine, prior->model->bound, shape, budget->planned.total, wall);
}
