/* Norms and attention as they are trained, on the card, in sizes of networks, against the CPU's kernels in fp32 on the
 * same values. */
#include "gpu.h"
#include "op_outputs.h"

typedef struct wide_case {
    const char *name;
    tess_op_kind kind;
    int64_t size[4], c; /* n, d, h, w; attention: channels of its output */
    int gap;
    size_t skip;
    int parts; /* groups or heads */
    tess_activation activation;
    bool more; /* scale and shift; heads' channels together */
    bool accumulate;
} wide_case;

static const wide_case wide_cases[] = {
    {"small", TESS_OP_BATCH_NORM_TRAIN, {2, 1, 5, 7}, 12, 0, 0, 0, TESS_RELU, false, false},
    {"wide", TESS_OP_BATCH_NORM_TRAIN, {4, 1, 65, 63}, 64, 0, 0, 0, TESS_RELU, false, false},
    {"odd", TESS_OP_BATCH_NORM_TRAIN, {3, 1, 33, 31}, 13, 0, 1, 0, TESS_LINEAR, false, false},
    {"view", TESS_OP_BATCH_NORM_TRAIN, {3, 1, 40, 9}, 32, 32, 32, 0, TESS_RELU, false, false},
    {"volume", TESS_OP_BATCH_NORM_TRAIN, {2, 5, 12, 9}, 24, 0, 0, 0, TESS_SILU, false, false},
    {"deep", TESS_OP_BATCH_NORM_TRAIN, {2, 1, 4, 4}, 2600, 0, 0, 0, TESS_LINEAR, false, false},
    {"small", TESS_OP_BATCH_NORM_GRAD, {2, 1, 5, 7}, 12, 0, 0, 0, TESS_LINEAR, false, false},
    {"wide", TESS_OP_BATCH_NORM_GRAD, {4, 1, 65, 63}, 64, 0, 0, 0, TESS_LINEAR, false, true},
    {"odd", TESS_OP_BATCH_NORM_GRAD, {3, 1, 33, 31}, 13, 0, 1, 0, TESS_LINEAR, false, true},
    {"view", TESS_OP_BATCH_NORM_GRAD, {3, 1, 40, 9}, 32, 32, 32, 0, TESS_LINEAR, false, false},
    {"volume", TESS_OP_BATCH_NORM_GRAD, {2, 5, 12, 9}, 24, 0, 0, 0, TESS_LINEAR, false, false},
    {"deep", TESS_OP_BATCH_NORM_GRAD, {2, 1, 4, 4}, 2600, 0, 0, 0, TESS_LINEAR, false, false},
    {"plain", TESS_OP_GROUP_NORM_GRAD, {2, 1, 16, 16}, 64, 0, 0, 32, TESS_LINEAR, false, false},
    {"silu", TESS_OP_GROUP_NORM_GRAD, {3, 1, 33, 65}, 64, 0, 0, 32, TESS_SILU, false, true},
    {"scale-shift", TESS_OP_GROUP_NORM_GRAD, {4, 1, 64, 64}, 128, 0, 0, 32, TESS_SILU, true, true},
    {"one-group", TESS_OP_GROUP_NORM_GRAD, {2, 1, 9, 13}, 100, 0, 0, 1, TESS_RELU, true, false},
    {"one-a-group", TESS_OP_GROUP_NORM_GRAD, {2, 1, 9, 13}, 15, 0, 1, 15, TESS_SILU, true, false},
    {"three-a-group", TESS_OP_GROUP_NORM_GRAD, {2, 1, 16, 18}, 96, 0, 0, 32, TESS_SILU, true, false},
    {"view", TESS_OP_GROUP_NORM_GRAD, {2, 1, 11, 40}, 64, 64, 64, 32, TESS_SILU, true, false},
    {"volume", TESS_OP_GROUP_NORM_GRAD, {2, 5, 6, 7}, 32, 0, 0, 8, TESS_SILU, true, false},
    {"deep", TESS_OP_GROUP_NORM_GRAD, {1, 1, 6, 5}, 2600, 0, 0, 8, TESS_SILU, true, false},
    {"eight", TESS_OP_ATTENTION_GRAD, {2, 1, 16, 16}, 64, 0, 0, 8, TESS_LINEAR, false, false},
    {"eight-odd", TESS_OP_ATTENTION_GRAD, {1, 1, 21, 29}, 16, 0, 0, 2, TESS_LINEAR, true, false},
    {"five", TESS_OP_ATTENTION_GRAD, {2, 1, 3, 7}, 15, 0, 0, 3, TESS_LINEAR, true, false},
    {"sixteen", TESS_OP_ATTENTION_GRAD, {1, 1, 9, 31}, 32, 0, 0, 2, TESS_LINEAR, false, false},
    {"thirty-two", TESS_OP_ATTENTION_GRAD, {1, 1, 8, 9}, 64, 0, 0, 2, TESS_LINEAR, true, false},
    {"view", TESS_OP_ATTENTION_GRAD, {2, 1, 7, 9}, 64, 32, 8, 4, TESS_LINEAR, false, false},
    {"sixty-four", TESS_OP_ATTENTION_GRAD, {1, 2, 5, 9}, 128, 0, 0, 2, TESS_LINEAR, true, false},
    {"hundred", TESS_OP_ATTENTION_GRAD, {1, 1, 9, 9}, 100, 0, 0, 1, TESS_LINEAR, false, false},
    {"two-hundred", TESS_OP_ATTENTION_GRAD, {1, 1, 5, 7}, 200, 0, 0, 1, TESS_LINEAR, true, false},
    {"five-hundred", TESS_OP_ATTENTION_GRAD, {1, 1, 5, 7}, 500, 0, 0, 1, TESS_LINEAR, false, false},
    {"thousand", TESS_OP_ATTENTION_GRAD, {1, 1, 3, 7}, 1000, 0, 0, 1, TESS_LINEAR, false, false},
    {"one-pixel", TESS_OP_ATTENTION_GRAD, {2, 1, 1, 1}, 16, 0, 0, 2, TESS_LINEAR, false, false},
};

static operand vector(int64_t count, uint32_t item)
{
    return operand_random(tess_tensor_2d(TESS_F32, 1, 1, 1, count), 0, item);
}

static operand values_of(const wide_case *w, tess_dtype dtype, int64_t c, uint32_t item)
{
    return operand_view(dtype, w->size, c, w->gap, w->skip, item);
}

static void make_positive(operand *o)
{
    EACH(o->t, n, z, y, x, c)
    put(o, n, z, y, x, c, 0.5 + fabs(get(o, n, z, y, x, c)));
}

static train_call norm_call(const wide_case *w, tess_dtype dtype)
{
    train_call call = {.op = {.kind = w->kind, .outputs = 2, .activation = w->activation}};
    call.out[0] = values_of(w, dtype, w->c, 11);
    call.in[0] = values_of(w, dtype, w->c, 1);
    call.out[1] = vector(2 * w->c, 12);
    if (w->kind == TESS_OP_BATCH_NORM_TRAIN) {
        call.in[1] = vector(2 * w->c, 2);
        call.out[2] = vector(2 * w->c, 13);
        call.op.inputs = 2;
        call.op.outputs = 3;
    } else {
        call.in[1] = values_of(w, dtype, w->c, 2);
        call.in[2] = vector(2 * w->c, 3);
        call.in[3] = vector(2 * w->c, 4);
        call.op.inputs = 4;
    }
    call.op.batch_norm = (tess_op_batch_norm){1e-5, 0.1, w->accumulate};
    if (w->kind == TESS_OP_BATCH_NORM_GRAD)
        make_positive(&call.in[2]);
    if (w->kind == TESS_OP_GROUP_NORM_GRAD) {
        call.op.group_norm = (tess_op_group_norm){w->parts, 1e-5, w->accumulate};
        free(call.in[3].f.data);
        call.in[3] = operand_random(tess_tensor_2d(TESS_F32, w->size[0], 1, 1, 2 * w->c), 0, 4);
        call.out[2] = operand_random(tess_tensor_2d(TESS_F32, w->size[0], 1, 1, 2 * w->c), 0, 14);
        call.op.inputs = w->more ? 4 : 3;
        call.op.outputs = w->more ? 3 : 2;
    }
    return call;
}

/* Runs one op on the CPU's memory. */
static void run_on_cpu(tess_device *cpu, const tess_op *op, const tess_op_buffers *buffers)
{
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    tess_error error = {{0}};
    const bool done = cpu->ops->query(cpu, op, &needs, &error) == TESS_OK &&
                      cpu->ops->prepare(cpu, op, &prepared, &error) == TESS_OK;
    CHECK_MSG(done, "%s: %s", tess_op_kind_name(op->kind), error.text);
    if (!done)
        return;
    tess_op_buffers with = *buffers;
    tess_block workspace = train_block(cpu, NULL, needs.workspace);
    with.workspace = workspace.data;
    cpu->ops->run(cpu, prepared, &with, NULL);
    cpu->ops->release(cpu, prepared);
    cpu->memory->free(cpu, &workspace);
}

static void *data_of(const operand *o)
{
    return (char *)o->f.data + o->skip * tess_dtype_size(o->t.dtype);
}

static operand as_fp32(const operand *from)
{
    operand o = *from;
    const size_t count = from->f.bytes / tess_dtype_size(from->t.dtype);
    o.t.dtype = TESS_F32;
    o.f = (field){malloc(count * sizeof(float)), count * sizeof(float)};
    for (size_t i = 0; i < count; i++)
        ((float *)o.f.data)[i] = value_in(from->t.dtype, from->f.data, i);
    return o;
}

/* The output of the forward op, which the backward op takes. */
static train_call attention_call(tess_device *cpu, const wide_case *w, tess_dtype dtype)
{
    train_call call = {.op = {.kind = w->kind, .inputs = 3, .outputs = 1, .attention = {w->parts, w->more}}};
    call.in[0] = values_of(w, dtype, w->c, 1);
    call.in[1] = values_of(w, dtype, 3 * w->c, 2);
    call.out[0] = values_of(w, dtype, 3 * w->c, 11);
    operand in = as_fp32(&call.in[1]), out = operand_view(TESS_F32, w->size, w->c, 0, 0, 3);
    tess_op op = {.kind = TESS_OP_ATTENTION, .inputs = 1, .outputs = 1, .attention = {w->parts, w->more}};
    op.kernel[0] = op.kernel[1] = op.kernel[2] = op.stride[0] = op.stride[1] = op.stride[2] = 1;
    op.in[0] = in.t;
    op.out[0] = out.t;
    run_on_cpu(cpu, &op, &(tess_op_buffers){.in = {data_of(&in)}, .out = {data_of(&out)}});
    call.in[2] = values_of(w, dtype, w->c, 3);
    EACH(out.t, n, z, y, x, c)
    put(&call.in[2], n, z, y, x, c, get(&out, n, z, y, x, c));
    free(in.f.data), free(out.f.data);
    return call;
}

static void want_from_cpu(tess_device *cpu, const train_call *call, operand want[TESS_OP_OUTPUTS])
{
    operand in[TESS_OP_INPUTS] = {0}, out[TESS_OP_OUTPUTS] = {0};
    tess_op op = call->op;
    tess_op_buffers buffers = {0};
    for (int i = 0; i < op.inputs; i++) {
        in[i] = as_fp32(&call->in[i]);
        op.in[i] = in[i].t;
        buffers.in[i] = data_of(&in[i]);
    }
    for (int i = 0; i < op.outputs; i++) {
        out[i] = as_fp32(&want[i]);
        op.out[i] = out[i].t;
        buffers.out[i] = data_of(&out[i]);
    }
    run_on_cpu(cpu, &op, &buffers);
    for (int i = 0; i < op.outputs; i++)
        EACH(want[i].t, n, z, y, x, c)
    put(&want[i], n, z, y, x, c, get(&out[i], n, z, y, x, c));
    for (int i = 0; i < op.inputs; i++)
        free(in[i].f.data);
    for (int i = 0; i < op.outputs; i++)
        free(out[i].f.data);
}

static void check_case(tess_device *device, tess_device *cpu, const wide_case *w, tess_dtype dtype)
{
    train_call call = w->kind == TESS_OP_ATTENTION_GRAD ? attention_call(cpu, w, dtype) : norm_call(w, dtype);
    operand got[TESS_OP_OUTPUTS], want[TESS_OP_OUTPUTS];
    if (train_run(device, &call, got, w->name)) {
        train_want(&call, want);
        want_from_cpu(cpu, &call, want);
        train_compare(&call, got, want, (double[]){train_bound(dtype, 2e-5), 2e-5, 2e-5}, w->name);
    }
    train_free(&call);
}

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status), *cpu = NULL;
    if (!device)
        return status;
    const tess_device_options options = {.memory = &test_counter, .threads = 2};
    CHECK(tess_registry_open("cpu", &options, &cpu, NULL) == TESS_OK);
    for (size_t i = 0; cpu && i < sizeof wide_cases / sizeof wide_cases[0]; i++) {
        check_case(device, cpu, &wide_cases[i], TESS_F32);
        check_case(device, cpu, &wide_cases[i], TESS_F16);
        check_case(device, cpu, &wide_cases[i], TESS_BF16);
    }
    tess_registry_close(cpu);
    tess_registry_close(device);
    return check_end();
}
