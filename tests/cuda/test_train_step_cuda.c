/* Losses, the optimizers' steps and the average of the parameters on the card, against plain fp64 on the host. */
#include "gpu.h"
#include "op_outputs.h"

typedef struct loss_case {
    const char *name;
    int64_t size[4], c;
    int gap;
    size_t skip;
    tess_loss kind;
    int mask; /* channels of the mask: 0, 1 or all */
    bool accumulate;
} loss_case;

static const loss_case loss_cases[] = {
    {"mse", {2, 1, 9, 7}, 3, 0, 0, TESS_MSE, 0, false},
    {"mse-large", {3, 1, 64, 65}, 3, 0, 0, TESS_MSE, 0, true},
    {"mse-view", {2, 1, 8, 8}, 3, 5, 2, TESS_MSE, 0, true},
    {"l1", {1, 1, 33, 70}, 1, 0, 0, TESS_L1, 0, false},
    {"charbonnier", {2, 2, 9, 7}, 3, 0, 1, TESS_CHARBONNIER, 0, true},
    {"rmse", {3, 1, 64, 65}, 3, 0, 0, TESS_RMSE, 0, true},
    {"rmse-view", {2, 2, 8, 8}, 3, 5, 2, TESS_RMSE, 0, false},
    {"psnr", {3, 1, 64, 65}, 3, 0, 0, TESS_PSNR, 0, true},
    {"psnr-view", {2, 2, 8, 8}, 3, 5, 2, TESS_PSNR, 0, false},
    {"masked", {2, 1, 40, 41}, 3, 0, 0, TESS_MASKED_MSE, 3, false},
    {"masked-one", {2, 1, 40, 41}, 3, 0, 0, TESS_MASKED_MSE, 1, true},
    {"masked-view", {2, 1, 10, 11}, 4, 3, 0, TESS_MASKED_MSE, 4, false},
    {"bce", {2, 1, 30, 31}, 2, 0, 0, TESS_BCE_LOGITS, 0, false},
    {"bce-large", {2, 1, 64, 65}, 1, 0, 0, TESS_BCE_LOGITS, 0, true},
    {"mean", {2, 1, 64, 65}, 1, 0, 0, TESS_MEAN, 0, true},
    {"iou", {2, 1, 64, 65}, 1, 0, 0, TESS_IOU, 0, true},
    {"iou-view", {2, 2, 8, 8}, 3, 5, 2, TESS_IOU, 0, false},
};

static const double control[TESS_CONTROLS] = {[TESS_CONTROL_RATE] = 1e-3,
                                              [TESS_CONTROL_CORRECTION1] = 0.271,
                                              [TESS_CONTROL_CORRECTION2] = 0.003,
                                              [TESS_CONTROL_LOSS_SCALE] = 1024,
                                              [TESS_CONTROL_DECAY] = 0.97};

static double loss_of(const tess_op_loss *loss, double x, double y, double *slope)
{
    const double d = x - y, root = sqrt(d * d + loss->epsilon * loss->epsilon), s = 1 / (1 + exp(-x));
    switch (loss->kind) {
    case TESS_L1:
        *slope = d > 0 ? 1 : d < 0 ? -1 : 0;
        return fabs(d);
    case TESS_CHARBONNIER:
        *slope = d / root;
        return root;
    case TESS_BCE_LOGITS:
        *slope = (1 - y) * s - loss->positive * y * (1 - s);
        return -loss->positive * y * log(s) - (1 - y) * log(1 - s);
    case TESS_MEAN:
        *slope = 1;
        return x;
    case TESS_IOU: /* want_iou */
    case TESS_RMSE:
    case TESS_PSNR: /* want_rms */
    case TESS_MSE:
    case TESS_MASKED_MSE:
        break;
    }
    *slope = 2 * d;
    return d * d;
}

static void want_rms(const train_call *call, operand want[3])
{
    const tess_op_loss *loss = &call->op.loss;
    const tess_tensor *t = &call->op.out[0];
    const double values = (double)(t->d * t->h * t->w * t->c), images = (double)t->n;
    const bool psnr = loss->kind == TESS_PSNR;
    double roots[8] = {0}, sum = 0;
    EACH(call->op.out[0], n, z, y, x, c)
    roots[n] += pow(get(&call->in[0], n, z, y, x, c) - get(&call->in[1], n, z, y, x, c), 2);
    for (int64_t n = 0; n < t->n; n++) {
        roots[n] = sqrt(roots[n] / values + loss->epsilon * loss->epsilon);
        sum += psnr ? 20 * log10(roots[n]) : roots[n];
    }
    EACH(call->op.out[0], n, z, y, x, c)
    put(&want[0], n, z, y, x, c,
        (get(&call->in[0], n, z, y, x, c) - get(&call->in[1], n, z, y, x, c)) / (roots[n] * values * images) *
            (psnr ? 20 / log(10) / roots[n] : 1) * loss->share * control[TESS_CONTROL_LOSS_SCALE]);
    double *total = want[1].f.data;
    *total = (loss->accumulate ? *total : 0) + loss->share * sum / images;
}

static void want_iou(const train_call *call, operand want[3])
{
    const tess_op_loss *loss = &call->op.loss;
    double both = loss->epsilon, any = loss->epsilon;
    EACH(call->op.out[0], n, z, y, x, c)
    {
        const double s = 1 / (1 + exp(-get(&call->in[0], n, z, y, x, c))),
                     t = get(&call->in[1], n, z, y, x, c);
        both += s * t;
        any += s + t - s * t;
    }
    EACH(call->op.out[0], n, z, y, x, c)
    {
        const double s = 1 / (1 + exp(-get(&call->in[0], n, z, y, x, c))),
                     t = get(&call->in[1], n, z, y, x, c);
        put(&want[0], n, z, y, x, c,
            loss->share * control[TESS_CONTROL_LOSS_SCALE] * s * (1 - s) * (both * (1 - t) - t * any) /
                (any * any));
    }
    double *total = want[1].f.data;
    *total = (loss->accumulate ? *total : 0) + loss->share * (1 - both / any);
}

static void want_loss(const train_call *call, operand want[3])
{
    const tess_op_loss *loss = &call->op.loss;
    const bool masked = call->op.inputs > 3;
    const operand *mask = &call->in[3];
    double count = 0, sum = 0;
    EACH(call->op.out[0], n, z, y, x, c)
    count += masked ? get(mask, n, z, y, x, mask->t.c == 1 ? 0 : c) : 1;
    EACH(call->op.out[0], n, z, y, x, c)
    {
        const double weight = masked ? get(mask, n, z, y, x, mask->t.c == 1 ? 0 : c) : 1;
        double slope;
        sum += weight *
               loss_of(loss, get(&call->in[0], n, z, y, x, c), get(&call->in[1], n, z, y, x, c), &slope);
        put(&want[0], n, z, y, x, c, weight * slope * loss->share * control[TESS_CONTROL_LOSS_SCALE] / count);
    }
    double *total = want[1].f.data;
    *total = (loss->accumulate ? *total : 0) + loss->share * sum / count;
}

static void check_loss(tess_device *device, const loss_case *l, tess_dtype dtype, tess_dtype result)
{
    const double before = 0.75;
    train_call call = {.op = {.kind = TESS_OP_LOSS,
                              .inputs = l->mask ? 4 : 3,
                              .outputs = 2,
                              .loss = {l->kind, 1e-3, 0.25, l->accumulate, 2.5}},
                       .in = {operand_view(dtype, l->size, l->c, l->gap, l->skip, 1),
                              operand_view(TESS_F32, l->size, l->c, 0, 0, 2),
                              operand_table(TESS_F64, 1, TESS_CONTROLS, control),
                              operand_view(TESS_F32, l->size, l->mask ? l->mask : 1, 0, 0, 3)},
                       .out = {operand_view(result, l->size, l->c, l->gap, l->skip, 4),
                               operand_table(TESS_F64, 1, 1, &before)}};
    EACH(call.in[3].t, n, z, y, x, c)
    put(&call.in[3], n, z, y, x, c, fmax(0, get(&call.in[3], n, z, y, x, c)));
    operand got[3], want[3];
    if (train_run(device, &call, got, l->name)) {
        train_want(&call, want);
        (tess_loss_by_image(l->kind) ? want_rms : l->kind == TESS_IOU ? want_iou : want_loss)(&call, want);
        train_compare(&call, got, want, (double[]){train_bound(result, 1e-6), 1e-12}, l->name);
    }
    train_free(&call);
}

/* A mask of zeros: no loss, no gradient, nothing that is not finite. */
static void check_empty_mask(tess_device *device)
{
    const int64_t size[4] = {1, 1, 5, 5};
    const double before = 0.5;
    train_call call = {
        .op = {.kind = TESS_OP_LOSS, .inputs = 4, .outputs = 2, .loss = {TESS_MASKED_MSE, 0, 1, true}},
        .in = {operand_view(TESS_F32, size, 3, 0, 0, 1), operand_view(TESS_F32, size, 3, 0, 0, 2),
               operand_table(TESS_F64, 1, TESS_CONTROLS, control), operand_view(TESS_F32, size, 1, 0, 0, 3)},
        .out = {operand_view(TESS_F32, size, 3, 0, 0, 4), operand_table(TESS_F64, 1, 1, &before)}};
    memset(call.in[3].f.data, 0, call.in[3].f.bytes);
    operand got[3], want[3];
    if (train_run(device, &call, got, "empty-mask")) {
        train_want(&call, want);
        EACH(call.op.out[0], n, z, y, x, c)
        put(&want[0], n, z, y, x, c, 0);
        train_compare(&call, got, want, (double[]){0, 0}, "empty-mask");
    }
    train_free(&call);
}

typedef struct step_case {
    const char *name;
    int64_t values;
    size_t skip;
    tess_op_optimize o;
    double squares; /* of the gradients: what the op is told */
    int outputs;
} step_case;

static const step_case step_cases[] = {
    {"adam", 4096, 0, {TESS_ADAM, 0.9, 0.999, 1e-8, 0, 0, 0, false}, 1e6, 3},
    {"adam-decay", 10007, 0, {TESS_ADAM, 0.9, 0.99, 1e-6, 0.02, 0, 0, false}, 1e6, 3},
    {"adamw-clip", 10007, 0, {TESS_ADAMW, 0.9, 0.999, 1e-8, 0.05, 0, 0.5, false}, 1e10, 3},
    {"adamw-below", 1001, 1, {TESS_ADAMW, 0.9, 0.999, 1e-8, 0.05, 0, 0.5, false}, 1e4, 3},
    {"sgd", 5003, 0, {TESS_SGD, 0, 0, 0, 0, 0, 0, false}, 1, 1},
    {"momentum", 5003, 0, {TESS_SGD, 0, 0, 0, 0.1, 0.9, 0, false}, 1, 2},
    {"nesterov", 5, 0, {TESS_SGD, 0, 0, 0, 0.1, 0.9, 1, true}, 1e9, 2},
    {"not-finite", 5003, 0, {TESS_ADAMW, 0.9, 0.999, 1e-8, 0.05, 0, 0.5, false}, INFINITY, 3},
    {"not-a-number", 5003, 0, {TESS_SGD, 0, 0, 0, 0.1, 0.9, 1, true}, NAN, 2},
};

static void want_step(const step_case *s, const double *ctl, double g, double *p, double *m, double *v)
{
    const tess_op_optimize *o = &s->o;
    const double norm = sqrt(s->squares) / ctl[TESS_CONTROL_LOSS_SCALE], rate = ctl[TESS_CONTROL_RATE];
    if (!isfinite(s->squares))
        return;
    g /= ctl[TESS_CONTROL_LOSS_SCALE];
    if (o->clip > 0 && norm + 1e-6 > o->clip)
        g *= o->clip / (norm + 1e-6);
    if (o->kind == TESS_ADAMW)
        *p *= 1 - rate * o->weight_decay;
    else
        g += o->weight_decay * *p;
    if (o->kind == TESS_SGD) {
        *m = o->momentum * *m + g;
        *p -= rate * (o->momentum == 0 ? g : o->nesterov ? g + o->momentum * *m : *m);
        return;
    }
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *v = o->beta2 * *v + (1 - o->beta2) * g * g;
    *p -= rate / ctl[TESS_CONTROL_CORRECTION1] * *m /
          (sqrt(*v) / sqrt(ctl[TESS_CONTROL_CORRECTION2]) + o->epsilon);
}

static void check_step(tess_device *device, const step_case *s)
{
    const tess_tensor flat = tess_tensor_2d(TESS_F32, 1, 1, 1, s->values);
    train_call call = {.op = {.kind = TESS_OP_OPTIMIZE, .inputs = 3, .outputs = s->outputs, .optimize = s->o},
                       .in = {operand_random(flat, s->skip, 1),
                              operand_table(TESS_F64, 1, TESS_CONTROLS, control),
                              operand_table(TESS_F64, 1, 1, &s->squares)},
                       .out = {operand_random(flat, s->skip, 3), operand_random(flat, s->skip, 4),
                               operand_random(flat, s->skip, 5)}};
    for (int64_t i = 0; i < s->values; i++) {
        put(&call.in[0], 0, 0, 0, 0, i, 1000 * get(&call.in[0], 0, 0, 0, 0, i));
        put(&call.out[2], 0, 0, 0, 0, i, fabs(get(&call.out[2], 0, 0, 0, 0, i)));
    }
    operand got[3], want[3];
    if (train_run(device, &call, got, s->name)) {
        train_want(&call, want);
        for (int64_t i = 0; i < s->values; i++) {
            double p = get(&call.out[0], 0, 0, 0, 0, i), m = get(&call.out[1], 0, 0, 0, 0, i),
                   v = get(&call.out[2], 0, 0, 0, 0, i);
            want_step(s, control, get(&call.in[0], 0, 0, 0, 0, i), &p, &m, &v);
            put(&want[0], 0, 0, 0, 0, i, p);
            if (s->outputs > 1)
                put(&want[1], 0, 0, 0, 0, i, m);
            if (s->outputs > 2)
                put(&want[2], 0, 0, 0, 0, i, v);
        }
        const double bound = isfinite(s->squares) ? 6e-7 : 0;
        train_compare(&call, got, want, (double[]){bound, bound, bound}, s->name);
    }
    train_free(&call);
}

static void check_average(tess_device *device, int64_t values, size_t skip, double squares)
{
    const tess_tensor flat = tess_tensor_2d(TESS_F32, 1, 1, 1, values);
    train_call call = {.op = {.kind = TESS_OP_AVERAGE, .inputs = 3, .outputs = 1},
                       .in = {operand_random(flat, skip, 1),
                              operand_table(TESS_F64, 1, TESS_CONTROLS, control),
                              operand_table(TESS_F64, 1, 1, &squares)},
                       .out = {operand_random(flat, skip, 3)}};
    const double decay = isfinite(squares) ? control[TESS_CONTROL_DECAY] : 1;
    operand got[3], want[3];
    if (train_run(device, &call, got, "average")) {
        train_want(&call, want);
        for (int64_t i = 0; i < values; i++)
            put(&want[0], 0, 0, 0, 0, i,
                decay * get(&call.out[0], 0, 0, 0, 0, i) + (1 - decay) * get(&call.in[0], 0, 0, 0, 0, i));
        train_compare(&call, got, want, (double[]){isfinite(squares) ? 6e-7 : 0}, "average");
    }
    train_free(&call);
}

/* The squared norm of all gradients: many parts, the last not full. */
static void check_squares(tess_device *device, int64_t values)
{
    const tess_tensor flat = tess_tensor_2d(TESS_F32, 1, 1, 1, values);
    const double before = 1;
    train_call call = {.op = {.kind = TESS_OP_DOT, .inputs = 2, .outputs = 1},
                       .in = {operand_random(flat, 0, 1), operand_random(flat, 0, 1)},
                       .out = {operand_table(TESS_F64, 1, 1, &before)}};
    operand got[3], want[3];
    if (train_run(device, &call, got, "squares")) {
        train_want(&call, want);
        double sum = 0;
        for (int64_t i = 0; i < values; i++)
            sum += get(&call.in[0], 0, 0, 0, 0, i) * get(&call.in[0], 0, 0, 0, 0, i);
        *(double *)want[0].f.data = sum;
        train_compare(&call, got, want, (double[]){1e-11}, "squares");
    }
    train_free(&call);
}

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    for (size_t i = 0; i < sizeof loss_cases / sizeof loss_cases[0]; i++) {
        check_loss(device, &loss_cases[i], TESS_F32, TESS_F32);
        check_loss(device, &loss_cases[i], TESS_F16, TESS_F16);
        check_loss(device, &loss_cases[i], TESS_BF16, TESS_F32);
    }
    check_empty_mask(device);
    for (size_t i = 0; i < sizeof step_cases / sizeof step_cases[0]; i++)
        check_step(device, &step_cases[i]);
    check_average(device, 9001, 0, 1);
    check_average(device, 515, 3, 1);
    check_average(device, 515, 0, INFINITY);
    check_squares(device, 1);
    check_squares(device, 1000003);
    tess_registry_close(device);
    return check_end();
}
