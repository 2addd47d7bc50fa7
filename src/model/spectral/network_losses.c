/* network_losses.c: the losses of a pipeline, on values of its network and on parameters. */
#include "model/spectral/network_impl.h"

static tess_op_penalty penalty_of(const tess_builder *b, const tess_node *loss)
{
    const tess_spectral_plan *plan = b->plan;
    const tess_node *of = &plan->pipeline.nodes[loss->from];
    const bool linear = of->kind == TESS_NODE_LINEAR;
    const int rows = plan->channels[loss->from],
              columns = linear ? rows : tess_spectral_reads(plan, loss->from);
    tess_op_penalty p = {
        .weight = loss->values[TESS_LOSS_WEIGHT], .target = -1, .rows = rows, .columns = columns};
    if (loss->kind == TESS_NODE_ORTHOGONALITY)
        p.kind = TESS_ORTHOGONALITY;
    if (loss->kind == TESS_NODE_DISTINCTNESS)
        p.kind = TESS_DISTINCTNESS, p.epsilon = loss->values[TESS_DISTINCTNESS_EPS];
    if (loss->kind != TESS_NODE_ENTROPY && loss->kind != TESS_NODE_DIVERSITY)
        return p;
    p.kind = loss->kind == TESS_NODE_ENTROPY ? TESS_ENTROPY : TESS_DIVERSITY;
    p.rows = 1;
    p.softmax = tess_selector_softmax(of);
    if (p.kind == TESS_ENTROPY) {
        p.target = loss->values[TESS_ENTROPY_TARGET];
        p.epsilon = loss->values[TESS_ENTROPY_EPS];
    }
    return p;
}

static void add_penalty(tess_builder *b, const tess_node *loss)
{
    tess_builder_value(b, loss->from);
    if (b->trained[loss->from]) /* else it is a constant */
        tess_net_add_penalty(b->net, b->layer[loss->from], penalty_of(b, loss));
}

static void add_boundary(tess_builder *b, int i)
{
    const tess_node *loss = &b->plan->pipeline.nodes[i];
    const tess_value each = tess_builder_map(
        b, i, "radius", tess_builder_value(b, loss->from),
        (tess_op_channel_map){.form = TESS_CHANNEL_BOUNDARY, .epsilon = loss->values[TESS_SOFT_BOUNDARY_NU]},
        false);
    tess_net_add_loss(
        b->net,
        (tess_net_loss){each, TESS_LOSS_ALONE, {.kind = TESS_MEAN, .share = loss->values[TESS_LOSS_WEIGHT]}});
}

static void add_loss(tess_builder *b, int i, bool *masks)
{
    const tess_node *loss = &b->plan->pipeline.nodes[i];
    tess_op_loss op = {.share = loss->values[TESS_LOSS_WEIGHT]};
    switch (loss->kind) {
    case TESS_NODE_SOFT_BOUNDARY:
        add_boundary(b, i);
        return;
    case TESS_NODE_MSE: {
        op.kind = TESS_MSE;
        const tess_value target = tess_builder_value(b, loss->target);
        tess_net_add_loss(b->net, (tess_net_loss){tess_builder_value(b, loss->from), target, op});
        return;
    }
    case TESS_NODE_BCE:
        op.kind = TESS_BCE_LOGITS;
        op.positive = loss->values[TESS_BCE_POSITIVE];
        break;
    case TESS_NODE_IOU:
        op.kind = TESS_IOU;
        op.epsilon = loss->values[TESS_IOU_SMOOTH];
        break;
    default: /* of parameters */
        add_penalty(b, loss);
        return;
    }
    *masks = true;
    tess_net_add_loss(b->net, (tess_net_loss){tess_builder_value(b, loss->from), TESS_LOSS_OF_DATA, op});
}

/* True if a trained node lies at or before a node. */
static bool is_trained_before(const tess_builder *b, int node)
{
    bool any = false;
    for (int at = node; at != TESS_NODE_DATA; at = b->plan->pipeline.nodes[at].from)
        any |= b->trained[at];
    return any;
}

static tess_status add_losses(tess_builder *b, bool *masks, tess_error *error)
{
    const tess_pipeline *pipeline = &b->plan->pipeline;
    int losses = 0;
    for (int i = 0; i < pipeline->count; i++) {
        const tess_node *node = &pipeline->nodes[i];
        if (!tess_node_kinds[node->kind].loss)
            continue;
        TESS_TRY(tess_builder_reaches(b, node->from, error));
        if (node->target != TESS_NODE_NOTHING)
            TESS_TRY(tess_builder_reaches(b, node->target, error));
        if (node->target != TESS_NODE_NOTHING && is_trained_before(b, node->target))
            return tess_fail(error, TESS_BAD_INPUT,
                             "node '%s': target: must not be a node that is trained, or lie behind one",
                             node->name);
        add_loss(b, i, masks);
        losses++;
    }
    if (!losses)
        return tess_fail(error, TESS_BAD_INPUT,
                         "the pipeline has no loss; add a node such as bce, mse or soft_boundary");
    if (losses > TESS_NET_LOSSES)
        return tess_fail(error, TESS_UNSUPPORTED, "the pipeline has %d losses; %d are the most", losses,
                         TESS_NET_LOSSES);
    return TESS_OK;
}

tess_status tess_spectral_trainer(const tess_spectral_plan *plan, const bool *trained, tess_net **net,
                                  bool *masks, tess_error *error)
{
    tess_builder b;
    *net = NULL;
    *masks = false;
    TESS_TRY(tess_builder_begin(&b, plan, trained, error));
    tess_net_train(b.net);
    tess_status status = TESS_OK;
    for (int i = 0; i < plan->pipeline.count && status == TESS_OK; i++)
        if (trained[i] && tess_node_kinds[plan->pipeline.nodes[i].kind].gives != TESS_PORT_NONE)
            status = tess_builder_reaches(&b, i, error);
    if (status == TESS_OK)
        status = add_losses(&b, masks, error);
    if (status == TESS_OK)
        status = tess_net_finish(b.net, tess_builder_value(&b, tess_pipeline_score(&plan->pipeline)), error);
    if (status == TESS_OK)
        *net = b.net;
    else
        tess_net_destroy(b.net);
    return status;
}
