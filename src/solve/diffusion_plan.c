/* What a sampler will do and need, before any memory is allocated. */
#include <math.h>

#include "base/checked.h"
#include "solve/diffusion_sampler_impl.h"

enum { ALIGN = 256, EMBEDDINGS = 64 /* noise levels at a time */ };

static size_t grow(size_t *end, int64_t count, size_t value)
{
    const size_t at = *end;
    *end = tess_align_size(at + (size_t)count * value, ALIGN);
    return at;
}

static void lay_out(tess_sampler *s)
{
    const tess_sampler_settings *set = &s->settings;
    const int64_t pixels = set->batch * set->height * set->width;
    tess_sampler_places *p = &s->places;
    size_t end = 0;
    p->cond = grow(&end, pixels * (set->net->channels - 1), sizeof(float));
    p->known = grow(&end, pixels * 2, sizeof(float));
    p->guess = grow(&end, set->steps.start_gamma > 0 ? pixels : 0, sizeof(float));
    p->items = grow(&end, set->batch * TESS_DIFFUSE_ITEMS, sizeof(int64_t));
    p->up = end;
    s->slot_bytes = end + tess_align_size((size_t)pixels * sizeof(float), ALIGN);
    p->previous = grow(&end, pixels, sizeof(float));
    p->control = grow(&end, TESS_DIFFUSE_CONTROLS, sizeof(double));
    p->index = grow(&end, 1, sizeof(int64_t));
    p->all = end;
    end = 0;
    s->tables.rows = grow(&end, s->steps.count * set->net->table, sizeof(float));
    s->tables.controls = grow(&end, s->steps.count * TESS_DIFFUSE_CONTROLS, sizeof(double));
    s->tables.start = grow(&end, TESS_DIFFUSE_CONTROLS, sizeof(double));
    s->tables.zero = grow(&end, 1, sizeof(int64_t));
    s->tables.all = end;
}

static tess_op copy_op(tess_tensor in, tess_tensor out)
{
    return (tess_op){.kind = TESS_OP_COMBINE,
                     .inputs = 1,
                     .outputs = 1,
                     .in = {in},
                     .out = {out},
                     .combine = {.a = 1, .low = -INFINITY, .high = INFINITY}};
}

static void describe_ops(const tess_sampler *s, tess_sampler_plan *plan)
{
    const tess_sampler_settings *set = &s->settings;
    const int64_t n = plan->n, h = set->height, w = set->width, others = set->net->channels - 1;
    const tess_tensor input = tess_net_plan_input_at(plan->net, 0, &plan->input_at),
                      vector = tess_net_plan_input_at(plan->net, 1, &plan->vector_at),
                      output = tess_net_plan_output(plan->net, &plan->output_at),
                      y = tess_tensor_channels(input, 1), image = tess_tensor_2d(TESS_F32, n, h, w, 1),
                      index = tess_tensor_2d(TESS_I64, 1, 1, 1, 1),
                      control = tess_tensor_2d(TESS_F64, 1, 1, 1, TESS_DIFFUSE_CONTROLS);
    plan->y_at = plan->input_at + (size_t)others * sizeof(float);
    plan->ops[TESS_SAMPLER_ROW] =
        (tess_op){.kind = TESS_OP_SELECT,
                  .inputs = 2,
                  .outputs = 1,
                  .in = {tess_tensor_2d(TESS_F32, s->steps.count, 1, 1, set->net->table), index},
                  .out = {vector}};
    plan->ops[TESS_SAMPLER_CONTROL] =
        (tess_op){.kind = TESS_OP_SELECT,
                  .inputs = 2,
                  .outputs = 1,
                  .in = {tess_tensor_2d(TESS_F64, s->steps.count, 1, 1, TESS_DIFFUSE_CONTROLS), index},
                  .out = {control}};
    plan->ops[TESS_SAMPLER_DIFFUSE] = (tess_op){.kind = TESS_OP_DIFFUSE,
                                                .inputs = 4,
                                                .outputs = 3,
                                                .in = {output, tess_tensor_2d(TESS_F32, n, h, w, 2), control,
                                                       tess_tensor_2d(TESS_I64, n, 1, 1, TESS_DIFFUSE_ITEMS)},
                                                .out = {y, image, index},
                                                .diffuse = {set->seed}};
    plan->ops[TESS_SAMPLER_COND] =
        copy_op(tess_tensor_2d(TESS_F32, n, h, w, others), tess_tensor_channels(input, others));
    plan->ops[TESS_SAMPLER_GUESS] = copy_op(image, y);
    plan->ops[TESS_SAMPLER_TAKE] = copy_op(y, image);
}

static tess_status ask(tess_sampler *s, const tess_op *op, tess_error *error)
{
    tess_op_needs needs;
    TESS_TRY(s->settings.device->ops->query(s->settings.device, op, &needs, error));
    s->workspace_bytes = needs.workspace > s->workspace_bytes ? needs.workspace : s->workspace_bytes;
    s->held_bytes += needs.held;
    return TESS_OK;
}

static tess_status add_net_plan(tess_sampler *s, const tess_bound *bound, tess_plan_shape shape,
                                tess_net_plan **out, tess_error *error)
{
    TESS_TRY(tess_net_plan_create(bound, shape, out, error));
    const size_t arena = tess_net_plan_arena_bytes(*out), workspace = tess_net_plan_workspace_bytes(*out);
    s->arena_bytes = arena > s->arena_bytes ? arena : s->arena_bytes;
    s->workspace_bytes = workspace > s->workspace_bytes ? workspace : s->workspace_bytes;
    for (int i = 0; i < tess_net_plan_op_count(*out); i++)
        TESS_TRY(ask(s, tess_net_plan_op(*out, i), error));
    return TESS_OK;
}

static tess_status add_plan(tess_sampler *s, int64_t n, tess_error *error)
{
    const tess_sampler_settings *set = &s->settings;
    tess_sampler_plan *plan = &s->plans[s->plan_count++];
    plan->n = n;
    TESS_TRY(add_net_plan(s, set->step, (tess_plan_shape){.n = n, .h = set->height, .w = set->width},
                          &plan->net, error));
    describe_ops(s, plan);
    for (int i = 0; i < TESS_SAMPLER_OPS; i++)
        TESS_TRY(ask(s, &plan->ops[i], error));
    return TESS_OK;
}

static tess_status check(const tess_sampler_settings *set, tess_error *error)
{
    const tess_diffusion_net *net = set->net;
    int64_t values = 0;
    if (net->channels < 2 || net->table < 1 || net->levels < 2)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "a sampler needs a network with conditioning and a noise level");
    if (set->height < 1 || set->width < 1 || set->height % net->grid || set->width % net->grid)
        return tess_fail(error, TESS_BAD_OPTION, "`tile` %lld x %lld: use multiples of %lld",
                         (long long)set->height, (long long)set->width, (long long)net->grid);
    if (set->batch < 1 || set->batch > (1 << (TESS_SAMPLER_PLANS - 2)) ||
        !tess_mul_i64(set->height, set->width, &values) || !tess_mul_i64(values, set->batch, &values) ||
        !tess_mul_i64(values, net->channels * (int64_t)sizeof(float), &values) || values > INT64_MAX / 16)
        return tess_fail(error, TESS_BAD_OPTION, "`batch` %lld of %lld x %lld: use fewer or smaller windows",
                         (long long)set->batch, (long long)set->height, (long long)set->width);
    return TESS_OK;
}

static tess_status plan_all(tess_sampler *s, tess_error *error)
{
    const tess_sampler_settings *set = &s->settings;
    TESS_TRY(check(set, error));
    TESS_TRY(tess_steps_make(&set->steps, &s->steps, error));
    s->settings.steps.schedule = NULL;
    lay_out(s);
    for (int64_t n = set->batch; n > 0; n = n > 1 && !set->one_size ? (n + 1) / 2 : 0)
        TESS_TRY(add_plan(s, n, error));
    const tess_net *embedding = set->net->embedding;
    return add_net_plan(s, set->embedding,
                        (tess_plan_shape){.n = tess_min_i64(s->steps.count, EMBEDDINGS),
                                          .h = tess_net_grid(embedding, TESS_HEIGHT),
                                          .w = tess_net_grid(embedding, TESS_WIDTH)},
                        &s->embedding, error);
}

tess_status tess_sampler_create(const tess_sampler_settings *settings, tess_sampler **out, tess_error *error)
{
    *out = NULL;
    tess_sampler *s = tess_small_alloc(1, sizeof *s);
    if (!s)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a sampler");
    s->settings = *settings;
    const tess_status status = plan_all(s, error);
    if (status != TESS_OK) {
        tess_sampler_destroy(s);
        return status;
    }
    *out = s;
    return TESS_OK;
}

tess_mem_bytes tess_sampler_bytes(const tess_sampler *s)
{
    tess_device *device = s->settings.device;
    tess_mem_bytes bytes = {{0}};
    bytes.by[TESS_MEM_ACTIVATIONS] = device->memory->granted(device, s->arena_bytes);
    bytes.by[TESS_MEM_WORKSPACE] = device->memory->granted(device, s->workspace_bytes) + s->held_bytes;
    bytes.by[TESS_MEM_WEIGHTS] = device->memory->granted(device, s->tables.all);
    bytes.by[TESS_MEM_IO] = device->memory->granted(device, s->places.all);
    bytes.by[device->host_memory ? TESS_MEM_IO : TESS_MEM_HOST] +=
        tess_block_granted(TESS_SAMPLER_SLOTS * s->slot_bytes);
    return bytes;
}

const tess_sampler_steps *tess_sampler_steps_of(const tess_sampler *sampler)
{
    return &sampler->steps;
}

const tess_net_plan *tess_sampler_net_plan(const tess_sampler *sampler)
{
    return sampler->plans[0].net;
}

double tess_sampler_flops(const tess_sampler *s, int64_t n)
{
    double all = tess_op_flops(&s->plans[0].ops[TESS_SAMPLER_DIFFUSE]);
    for (int i = 0; i < tess_net_plan_op_count(s->plans[0].net); i++)
        all += tess_op_flops(tess_net_plan_op(s->plans[0].net, i));
    return all / (double)s->plans[0].n * (double)n * (double)s->steps.count;
}
